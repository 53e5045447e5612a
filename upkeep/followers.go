package upkeep

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/engine"
	"github.com/sluice-queue/sluice/internal/event"
	"github.com/sluice-queue/sluice/presence"
)

// followers are the followers of all queues. They work outside the rounds, so that recovery does not wait for
// engines.
type followers struct {
	all sync.WaitGroup

	mu     sync.Mutex
	queues map[string]*follower
}

// of returns the follower of a queue.
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

// calm clears the conditions of following runs: the processes that follow the runs now report them.
func (all *followers) calm() {
	all.mu.Lock()
	defer all.mu.Unlock()
	for _, f := range all.queues {
		f.calm()
	}
}

// followBeside follows the runs at some engines outside the rounds, for each queue that is due. If the round
// has not read the queues, followBeside does.
func (u *Upkeep) followBeside(ctx context.Context, queues []sluice.Queue, engines map[string]engine.Engine) {
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

// begin reports whether it is time to follow the runs, and no follower of the queue is at work. A queue whose
// engine changed is followed at once. Engines that are new here are asked for all their runs, because no
// process may have asked for a long time.
func (f *follower) begin(name string, engines map[string]engine.Engine) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	same := maps.EqualFunc(f.engines, engines, func(engine.Engine, engine.Engine) bool { return true })
	if f.running || same && name == f.engine && time.Now().Before(f.at) {
		return false
	}
	if !same {
		f.engines, f.walked, f.endedAll = engines, false, false
		f.strayID, f.endAfter = sluice.ID{}, engine.OrphanRun{}
	}
	f.running, f.engine = true, name
	return true
}

// pause returns how long a queue may be left alone. The pause is follow_interval, or less if the engine would
// forget runs in between. If the queue's engine is not followed here, and no runs are at the engines that are,
// the pause is at least idleInterval.
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

// followSlack makes a follow interval that is a multiple of upkeep's own interval begin with its round.
const followSlack = 50 * time.Millisecond

func (f *follower) tell(ctx context.Context, done Followed, err error) {
	switch {
	case err != nil && ctx.Err() != nil: // the engine is not at fault
	case isEngineFault(err):
		f.away.set(presence.EngineCondition(f.queue, f.engine, time.Now(), "the runs cannot be followed", err))
	default:
		f.away.clear()
	}
	if err != nil {
		f.upkeep.failed(ctx, "follow runs of queue "+f.queue, err)
	}
	if len(done.Settled) > 0 || done.Ended > 0 {
		f.upkeep.log.Emit(event.RunsFollowed, f.queue, "settled", done.Settled, "unknown", done.Unknown, "ending", done.Ending, "ended", done.Ended)
	}
}

// followIf follows the runs of every queue if all work is to be done.
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
