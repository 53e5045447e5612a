package upkeep

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/event"
)

// followers are the followers of all queues. They work beside the rounds, so that recovery does not wait for engines.
type followers struct {
	all sync.WaitGroup

	mu     sync.Mutex
	queues map[string]*follower
}

// of gives the follower of a queue.
func (u *Upkeep) of(queue string) *follower {
	u.runs.mu.Lock()
	defer u.runs.mu.Unlock()
	f := u.runs.queues[queue]
	if f == nil {
		f = u.newFollower(queue)
		u.runs.queues[queue] = f
	}
	return f
}

// calm forgets what troubles the following of runs: it is the business of those that follow them now.
func (all *followers) calm() {
	all.mu.Lock()
	defer all.mu.Unlock()
	for _, f := range all.queues {
		f.calm()
	}
}

// followBeside follows the runs at some engines, of each queue for which it is time, while the rounds go on. The queues are
// read if the round has not read them.
func (u *Upkeep) followBeside(ctx context.Context, queues []sluice.Queue, engines map[string]sluice.Engine) {
	if len(engines) == 0 {
		u.runs.calm()
		return
	}
	if queues == nil {
		var err error
		if queues, err = u.store.Queues(ctx, sluice.QueueFilter{}); err != nil {
			u.failed(ctx, "read the queues", err)
			return
		}
	}
	for _, q := range queues {
		f := u.of(q.Name)
		if !f.begin(q.Settings.Engine, engines) {
			continue
		}
		u.runs.all.Go(func() {
			defer func() { f.end(f.pause(q.Settings)) }()
			done, err := f.follow(ctx, q)
			f.tell(ctx, done, err)
		})
	}
}

// begin reports whether it is time to follow, and nobody does. A queue that was given another engine is not left to wait,
// and engines that were not followed until now are asked for all their runs: nobody may have looked for long.
func (f *follower) begin(engine string, engines map[string]sluice.Engine) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	same := maps.EqualFunc(f.engines, engines, func(sluice.Engine, sluice.Engine) bool { return true })
	if f.running || same && engine == f.engine && time.Now().Before(f.at) {
		return false
	}
	if !same {
		f.engines, f.walked, f.endedAll = engines, false, false
		f.strayID, f.endAfter = sluice.ID{}, sluice.StrayRun{}
	}
	f.running, f.engine = true, engine
	return true
}

// pause is how long a queue can be left alone: as long as its settings say, and less where its engine would forget runs
// in between; one whose engine is not followed here, and that has nothing at those that are, is looked at now and then.
func (f *follower) pause(s sluice.Settings) time.Duration {
	if f.idle && f.engines[s.Engine] == nil {
		return max(s.FollowInterval, idleInterval)
	}
	return f.inTime(s.FollowInterval)
}

func (f *follower) end(interval time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.running, f.at = false, time.Now().Add(interval-followSlack)
}

// followSlack makes a follow interval that is a multiple of upkeep's own begin with its round.
const followSlack = 50 * time.Millisecond

func (f *follower) tell(ctx context.Context, done Followed, err error) {
	switch {
	case err != nil && ctx.Err() != nil: // the engine is not to blame
	case isEngineFault(err):
		f.away.set(sluice.EngineCondition(f.queue, f.engine, time.Now(), "the runs cannot be followed", err))
	default:
		f.away.clear()
	}
	if err != nil {
		f.upkeep.failed(ctx, "follow runs of queue "+f.queue, err)
	}
	if len(done.Settled) > 0 || done.Ended > 0 {
		f.upkeep.log.Tell(event.RunsFollowed, f.queue, "settled", done.Settled, "unknown", done.Unknown, "ending", done.Ending, "ended", done.Ended)
	}
}

// followIf follows the runs of every queue, where everything is to be done.
func (u *Upkeep) followIf(ctx context.Context, queues []sluice.Queue, all bool, done *Done) error {
	if !all || len(u.options.Engines) == 0 {
		return nil
	}
	var failed []error
	for _, q := range queues {
		out, err := u.strictFollower(q.Name).follow(ctx, q)
		for _, n := range out.Settled {
			done.Followed += n
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("follow runs of queue %q: %w", q.Name, err))
		}
	}
	return errors.Join(failed...)
}
