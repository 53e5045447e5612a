package upkeep

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/event"
	"github.com/sluice-queue/sluice/schedule"
)

const (
	// leastFires and mostFires are how many schedules one transaction fires: few at first, so that workers begin while upkeep
	// goes on, and a tenth of those fired so far once there are many, which costs less. Of 10,000 schedules of one instant on
	// PostgreSQL, 1 in 100 jobs began after more than 1.7 to 2.1 s; with 200 at first, 2.0 to 2.3 s.
	leastFires, mostFires = 500, 1000
	// fireInterval is the longest time between two looks for due schedules. A new or changed schedule that is due
	// before the next known one waits for so long.
	fireInterval = time.Second
	// fireRest is the pause before another look if another upkeep has the due schedules.
	fireRest = 50 * time.Millisecond
	// firesAtOnce is how many transactions fire beside each other after a look that left due schedules.
	firesAtOnce = 2
)

// firing fires schedules outside the rounds, at their instants.
type firing struct {
	all  sync.WaitGroup
	stop context.CancelFunc // nil: this upkeep does not fire
}

// nextFires returns how many schedules to fire in one transaction after others that were due at the same time.
func nextFires(fired int) int { return min(mostFires, max(leastFires, fired/10)) }

// fireBeside fires schedules outside the rounds, whether this upkeep leads or not, until rest. The store lets each fire
// happen once, so no fire waits until another upkeep has taken over the lead of a dead one.
func (u *Upkeep) fireBeside(ctx context.Context) {
	if f := &u.firing; f.stop == nil {
		ctx, stop := context.WithCancel(ctx)
		f.stop = stop
		f.all.Go(func() { u.fireUntil(ctx) })
	}
}

// rest ends the firing of schedules after the present one.
func (f *firing) rest() {
	if f.stop != nil {
		f.stop()
		f.stop = nil
	}
}

// end ends the firing of schedules, and waits for the last.
func (f *firing) end() {
	f.rest()
	f.all.Wait()
}

// fireUntil fires schedules until ctx ends.
func (u *Upkeep) fireUntil(ctx context.Context) {
	inARow := 0
	for ctx.Err() == nil {
		fired, err := u.fireMore(ctx, inARow)
		if err != nil {
			u.failed(ctx, "fire schedules", err)
		}
		if inARow += fired.Schedules; fired.Wait != 0 {
			inARow = 0
		}
		select {
		case <-ctx.Done():
		case <-time.After(untilLook(fired, err)):
		}
	}
}

// untilLook returns how long to wait before the next look.
func untilLook(fired schedule.Fired, err error) time.Duration {
	switch {
	case err != nil || fired.Wait < 0:
		return fireInterval
	case fired.Wait == 0 && fired.Schedules == 0:
		return fireRest
	}
	return min(fired.Wait, fireInterval)
}

// fireMore fires due schedules, after others that were due at the same time: then in several transactions at once, so that
// the server works on some while this process reads others.
func (u *Upkeep) fireMore(ctx context.Context, inARow int) (all schedule.Fired, err error) {
	if inARow == 0 {
		return u.fireDue(ctx, leastFires)
	}
	var firing sync.WaitGroup
	var mu sync.Mutex
	for range firesAtOnce {
		firing.Go(func() {
			one, failed := u.fireDue(ctx, nextFires(inARow))
			mu.Lock()
			defer mu.Unlock()
			all.Schedules += one.Schedules
			all.Wait = one.Wait // the last to end knows what the others have left
			err = errors.Join(err, failed)
		})
	}
	firing.Wait()
	return all, err
}

// fireDue fires due schedules in one transaction, at most limit. A store without schedules has none.
func (u *Upkeep) fireDue(ctx context.Context, limit int) (schedule.Fired, error) {
	fired, err := schedule.Given(u.store).FireSchedules(ctx, limit, u.options.PayloadChecker)
	if errors.Is(err, sluice.ErrNotFound) {
		return schedule.Fired{Wait: -1}, nil
	}
	if err != nil {
		return fired, fmt.Errorf("fire schedules: %w", err)
	}
	if fired.Jobs+fired.Skipped+fired.Missed+fired.Refused > 0 {
		u.log.Emit(event.SchedulesFired, "", "schedules", fired.Schedules, "jobs", fired.Jobs, "skipped", fired.Skipped, "missed", fired.Missed,
			"refused", fired.Refused)
	}
	for name, reason := range fired.Refusals {
		u.log.Emit(event.FireRefused, "", "schedule", name, "reason", reason)
	}
	for _, name := range fired.Paused {
		u.log.Emit(event.SchedulePaused, "", "schedule", name)
	}
	return fired, nil
}

// fireAll fires all schedules that are due now.
func (u *Upkeep) fireAll(ctx context.Context, done *Done) error {
	for inARow := 0; ; {
		fired, err := u.fireDue(ctx, nextFires(inARow))
		inARow += fired.Schedules
		done.Fired += fired.Jobs
		if err != nil || fired.Schedules == 0 {
			return err
		}
	}
}
