package upkeep

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sluice-queue/sluice"
)

// retentionInterval is how long an engine's retention is remembered.
const retentionInterval = 10 * time.Minute

// retention is how long an engine keeps runs that ended, as it said last.
type retention struct {
	keeps time.Duration
	at    time.Time
}

// retentionOf says how long an engine keeps runs that ended.
func (f *follower) retentionOf(ctx context.Context, engine sluice.Engine, target sluice.RunTarget, where string) (time.Duration, error) {
	known, found := f.keeps[where]
	if found && time.Since(known.at) < retentionInterval {
		return known.keeps, nil
	}
	report, err := engine.Check(ctx, target)
	if err != nil {
		return 0, fmt.Errorf("ask %s how long it keeps runs: %w", where, err)
	}
	f.keeps[where] = retention{report.Retention, time.Now()}
	f.least = 0
	for _, known := range f.keeps {
		if known.keeps > 0 && (f.least == 0 || known.keeps < f.least) {
			f.least = known.keeps
		}
	}
	return report.Retention, nil
}

// guard says so if the runs of a queue cannot be followed safely. No dispatcher starts more of them then. Those that are
// under way are followed all the same, as often as their engine's memory asks for: late is better than never.
func (f *follower) guard(ctx context.Context, q sluice.Queue) error {
	where := sluice.EngineOf(q.Settings)
	engine, target, err := f.engineAt(q, where, 0)
	if err != nil {
		f.worry("")
		return nil //nolint:nilerr // none is started there; for those at another engine, who asks for them tells
	}
	keeps, err := f.retentionOf(ctx, engine, target, where)
	if err != nil {
		return err
	}
	unsafe := ""
	if err := sluice.CheckFollowing(q.Settings, sluice.EngineReport{Retention: keeps}); err != nil {
		unsafe = err.Error()
	}
	if f.worry(unsafe) && unsafe != "" {
		f.upkeep.failed(ctx, "follow runs of queue "+f.queue+" safely", errors.New(unsafe))
	}
	return nil
}

// worry notes why runs cannot be followed safely, and reports whether that is news.
func (f *follower) worry(unsafe string) (news bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	news = unsafe != f.unsafe
	f.unsafe = unsafe
	return news
}

// trouble is what keeps upkeep from following runs, or from doing it safely, for people; empty: nothing does.
func (u *Upkeep) trouble() string {
	u.standing.mu.Lock()
	unfollowed := u.standing.unfollowed
	u.standing.mu.Unlock()
	u.runs.mu.Lock()
	defer u.runs.mu.Unlock()
	var all []string
	for queue, f := range u.runs.queues {
		f.mu.Lock()
		if f.unsafe != "" {
			all = append(all, sluice.TroubleOf(queue, f.unsafe))
		}
		f.mu.Unlock()
	}
	slices.Sort(all)
	if unfollowed != "" {
		all = append(all, unfollowed)
	}
	return sluice.JoinTroubles(all)
}

// inTime is an interval between looks, shortened where an engine would forget a run before enough of them.
func (f *follower) inTime(interval time.Duration) time.Duration {
	if f.least == 0 {
		return interval
	}
	return min(interval, f.least/sluice.FollowLooks)
}
