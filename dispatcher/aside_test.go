package dispatcher_test

import (
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/engine"
	"github.com/sluice-queue/sluice/presence"
)

// poison makes the engine answer ErrUnavailable to each start of one job, and start the runs of all others.
func (e *scripted) poison(id sluice.ID, asked *int) {
	e.say(func(run engine.Run) (error, bool) {
		if run.Job == id {
			*asked++
			return engine.ErrUnavailable, false
		}
		return nil, true
	})
}

// TestJobWhoseStartIsNeverAnsweredIsSetAside enqueues one job whose start is never answered, and later a few other jobs
// at a time.
func TestJobWhoseStartIsNeverAnsweredIsSetAside(t *testing.T) {
	inBank(t, func(b *bank) {
		b.engine.report.Retention = 24 * time.Hour
		asked := 0
		lost := b.enqueue(1, sluice.EnqueueOptions{})[0]
		b.engine.poison(lost, &asked)
		b.run(1)
		b.wait(30 * time.Second)
		for i := range 10 {
			b.enqueue(5, sluice.EnqueueOptions{})
			b.wait(6 * time.Second)
			b.want(sluice.StateDispatched, 5*(i+1))
		}
		if trouble := b.trouble(presence.RoleDispatcher); trouble != "" {
			b.Errorf("the dispatcher says %q although its engine works", trouble)
		}
		before := asked
		b.wait(20 * time.Minute)
		if again := asked - before; again < 3 || again > 12 {
			b.Errorf("the engine was asked again %d times in 20 minutes, want each five minutes or so", again)
		}
		b.enqueue(5, sluice.EnqueueOptions{})
		b.wait(2 * time.Second)
		b.want(sluice.StateDispatched, 55)
		if job := b.job(lost); job.State != sluice.StateClaimed || job.Attempts != 0 {
			b.Errorf("the one that is never answered is %s after %d attempts", job.State, job.Attempts)
		}
		b.engine.say(nil)
		b.wait(6 * time.Minute)
		b.want(sluice.StateDispatched, 56)
	})
}

// TestManyStartsThatAreNeverAnsweredHoldUpNoOther loses a quarter of all starts.
func TestManyStartsThatAreNeverAnsweredHoldUpNoOther(t *testing.T) {
	inBank(t, func(b *bank) {
		b.set(func(s *sluice.Settings) { s.Batch = 20 })
		b.engine.report.Retention = 24 * time.Hour
		b.enqueue(200, sluice.EnqueueOptions{})
		lost := make(map[sluice.ID]bool)
		b.engine.say(func(run engine.Run) (error, bool) {
			if run.Job[15]%4 == 0 {
				lost[run.Job] = true
				return engine.ErrUnavailable, false
			}
			return nil, true
		})
		b.run(1)
		b.wait(time.Minute)
		b.want(sluice.StateDispatched, 200-len(lost))
		b.want(sluice.StateClaimed, len(lost))
		b.engine.say(nil)
		b.wait(20 * time.Minute)
		b.want(sluice.StateDispatched, 200)
	})
}
