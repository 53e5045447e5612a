package dispatcher_test

import (
	"strings"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/engine"
	"github.com/sluice-queue/sluice/store/memory"
)

// lose replaces the bank's store with an empty one, as a failover does that loses the last writes.
func (b *bank) lose(settings func(*sluice.Settings)) {
	b.Helper()
	b.stop()
	b.wait(time.Minute)
	b.store = memory.New(memory.Options{})
	b.client = sluice.NewClient(b.store, sluice.ClientOptions{})
	b.set(settings)
}

func byKey(s *sluice.Settings) { s.RunRef = "pay-{key}" }

func TestRunOfAJobThatTheStoreHasLostIsAdoptedByItsTwin(t *testing.T) {
	for name, c := range map[string]struct {
		twin   string
		ends   bool // the run ends before the job's twin is enqueued
		later  time.Duration
		cancel bool
		want   sluice.State
	}{
		"the same work":                              {`{"cents":1}`, false, 0, false, sluice.StateCompleted},
		"the same work, done by now":                 {`{"cents":1}`, true, 0, false, sluice.StateCompleted},
		"the same work, cancelled":                   {`{"cents":1}`, false, 0, true, sluice.StateCancelled},
		"other work under the same key":              {`{"cents":2}`, false, 0, false, sluice.StateDead},
		"work of so long ago that it may be another": {`{"cents":1}`, false, 7 * 24 * time.Hour, false, sluice.StateDead},
	} {
		t.Run(name, func(t *testing.T) {
			inBank(t, func(b *bank) {
				b.set(byKey)
				first := b.enqueue(1, sluice.EnqueueOptions{Key: "invoice-7"})[0]
				b.run(1)
				b.wait(2 * time.Second)
				b.want(sluice.StateDispatched, 1)
				b.lose(byKey)
				if c.ends {
					b.engine.end(engine.Completed)
				}
				b.wait(c.later)
				twin, err := b.client.Enqueue(b.Context(), sluice.NewJob{Queue: "payment", Payload: []byte(c.twin), EnqueueOptions: sluice.EnqueueOptions{Key: "invoice-7"}})
				if err != nil {
					b.Fatal(err)
				}
				b.run(1)
				b.wait(3 * time.Second)
				if told := b.reasons(sluice.EventDispatch); c.want != sluice.StateDead && (len(told) != 1 || !strings.HasPrefix(told[0], "adopted: the run was begun for job "+first.String())) {
					b.Errorf("the audit tells %q", told)
				}
				if c.cancel {
					b.cancel(twin.ID)
				} else if c.want != sluice.StateDead {
					b.engine.end(engine.Completed)
				}
				b.wait(time.Minute)
				if job := b.job(twin.ID); job.State != c.want {
					b.Errorf("the job is %s: %s", job.State, job.Error)
				}
				if state := b.engine.state("pay-invoice-7"); c.cancel && state != engine.Cancelled {
					b.Errorf("its run is %s", state)
				}
				if b.engine.most() != 1 || len(b.engine.refs()) != 1 {
					b.Errorf("the runs are %v", b.engine.refs())
				}
			})
		})
	}
}

func TestRunOfAJobThatTheStoreKnowsIsNobodyElses(t *testing.T) {
	inBank(t, func(b *bank) {
		b.set(byKey)
		b.enqueue(1, sluice.EnqueueOptions{Key: "invoice-7"})
		b.run(1)
		b.wait(2 * time.Second)
		b.engine.end(engine.Completed)
		b.wait(5 * time.Second)
		b.want(sluice.StateCompleted, 1)
		again := b.enqueue(1, sluice.EnqueueOptions{Key: "invoice-7"})[0] // its key is free again
		b.wait(5 * time.Second)
		if job := b.job(again); job.State != sluice.StateDead || !strings.Contains(job.Error, engine.ErrRefTaken.Error()) {
			b.Errorf("the job is %s: %s", job.State, job.Error)
		}
	})
}

func TestTwinWhoseDispatcherDiedIsGivenItsRunByUpkeep(t *testing.T) {
	inBank(t, func(b *bank) {
		b.set(byKey)
		b.enqueue(1, sluice.EnqueueOptions{Key: "invoice-7"})
		b.run(1)
		b.wait(2 * time.Second)
		b.lose(byKey)
		b.enqueue(1, sluice.EnqueueOptions{Key: "invoice-7"})
		b.abandonAs(false, byKey)
		b.run(1)
		b.wait(2 * time.Minute)
		b.want(sluice.StateDispatched, 1)
		b.engine.end(engine.Completed)
		b.wait(time.Minute)
		b.want(sluice.StateCompleted, 1)
	})
}
