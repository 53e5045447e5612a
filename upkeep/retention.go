package upkeep

import (
	"context"
	"fmt"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/engine"
	"github.com/sluice-queue/sluice/presence"
)

// retentionInterval is how long an engine's retention is cached.
const retentionInterval = 10 * time.Minute

// retention is how long an engine keeps ended runs, by its last report.
type retention struct {
	keeps time.Duration
	at    time.Time
}

// retentionOf returns how long an engine keeps ended runs.
func (f *follower) retentionOf(ctx context.Context, remote engine.Engine, target engine.Target, where string) (time.Duration, error) {
	known, found := f.keeps[where]
	if found && time.Since(known.at) < retentionInterval {
		return known.keeps, nil
	}
	report, err := remote.Check(ctx, target)
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

// guard reports runs of a queue that cannot be followed safely. Dispatchers then start no more of them. Runs
// under way are followed all the same, as often as their engine's retention demands: late is better than never.
func (f *follower) guard(ctx context.Context, q sluice.Queue) error {
	where := engine.Location(q.Settings)
	remote, target, err := f.engineAt(q, where, 0)
	if err != nil {
		f.unsafe.clear()
		return nil //nolint:nilerr // this upkeep does not follow the engine; a process that follows it reports the error
	}
	keeps, err := f.retentionOf(ctx, remote, target, where)
	if err != nil {
		return err
	}
	unsafe := engine.CheckFollowing(q.Settings, engine.Report{Retention: keeps})
	if unsafe == nil {
		f.unsafe.clear()
		return nil
	}
	if f.unsafe.set(presence.NewCondition(presence.ConditionUnsafe, q.Name, q.Settings.Engine, time.Now(), unsafe.Error())) {
		f.upkeep.failed(ctx, "follow runs of queue "+f.queue+" safely", unsafe)
	}
	return nil
}

// inTime returns an interval between looks, shortened if an engine would forget a run too early.
func (f *follower) inTime(interval time.Duration) time.Duration {
	if f.least == 0 {
		return interval
	}
	return min(interval, f.least/engine.FollowRounds)
}
