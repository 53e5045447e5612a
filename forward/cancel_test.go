package forward_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/engine"
	"github.com/sluice-queue/sluice/forward"
)

// TestCancelledOnTheWay cancels a job here after it arrived at the centre. The forwarder must cancel it there, too.
func TestCancelledOnTheWay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSea(t)
		id := s.add(sluice.EnqueueOptions{})
		s.centre.fail(s.centre.after, "enqueue", sluice.ErrUnavailable)
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- s.forwarder.Run(ctx) }()
		time.Sleep(time.Second)
		if err := s.edge.Cancel(t.Context(), []sluice.ID{id}, sluice.Act{By: "ada"}); err != nil {
			t.Fatal(err)
		}
		s.centre.fail(s.centre.after, "enqueue", nil)
		time.Sleep(5 * time.Minute)
		s.is(s.edge, id, sluice.StateCancelled)
		s.is(s.mainland, id, sluice.StateCancelled)
		if runs, err := engine.Given(s.local).OrphanRuns(t.Context(), queue, engine.OrphanRun{}, 10); err != nil || len(runs) > 0 {
			t.Errorf("left behind: %v, %v", runs, err)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// TestCentreThatRefusesToCancelTakesJobs has a centre refuse to cancel a job, as a server does whose token may only enqueue.
func TestCentreThatRefusesToCancelTakesJobs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSea(t)
		id, refusal := s.add(sluice.EnqueueOptions{}), errors.New("the token may not do this")
		s.centre.fail(s.centre.after, "enqueue", sluice.ErrUnavailable)
		if _, err := s.forwarder.Once(t.Context()); !errors.Is(err, sluice.ErrUnavailable) {
			t.Fatal(err)
		}
		if err := s.edge.Cancel(t.Context(), []sluice.ID{id}, sluice.Act{By: "ada"}); err != nil {
			t.Fatal(err)
		}
		s.centre.fail(s.centre.after, "enqueue", nil)
		s.centre.fail(s.centre.before, "cancel", refusal)
		time.Sleep(5 * time.Minute)
		next := s.add(sluice.EnqueueOptions{})
		s.forwarder = s.other()
		if sent, err := s.forwarder.Once(t.Context()); !errors.Is(err, refusal) || sent != (forward.Sent{Claimed: 1, Forwarded: 1}) {
			t.Errorf("sent %+v, %v; want one job, and the refusal", sent, err)
		}
		s.is(s.mainland, next, sluice.StateQueued)
		s.centre.fail(s.centre.before, "cancel", nil)
		time.Sleep(time.Minute)
		s.once(forward.Sent{})
		s.is(s.mainland, id, sluice.StateCancelled)
	})
}

// TestRequeuedAfterItWasCancelledOnTheWay cancels a job here after it arrived at the centre, and requeues it here once it is
// cancelled there. The job must wait at the centre again, and a later cancel there must stand.
func TestRequeuedAfterItWasCancelledOnTheWay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSea(t)
		id := s.add(sluice.EnqueueOptions{})
		s.centre.fail(s.centre.after, "enqueue", sluice.ErrUnavailable)
		if _, err := s.forwarder.Once(t.Context()); !errors.Is(err, sluice.ErrUnavailable) {
			t.Fatal(err)
		}
		ids, ada := []sluice.ID{id}, sluice.Act{By: "ada", Reason: "after all"}
		if err := s.edge.Cancel(t.Context(), ids, ada); err != nil {
			t.Fatal(err)
		}
		s.centre.fail(s.centre.after, "enqueue", nil)
		time.Sleep(5 * time.Minute)
		s.forwarder = s.other()
		s.once(forward.Sent{})
		s.is(s.mainland, id, sluice.StateCancelled)
		if err := s.edge.Requeue(t.Context(), ids, ada); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		s.local.fail(s.local.before, "settle", sluice.ErrUnavailable)
		if _, err := s.forwarder.Once(t.Context()); !errors.Is(err, sluice.ErrUnavailable) {
			t.Fatal(err)
		}
		s.is(s.mainland, id, sluice.StateQueued)

		// The answer was lost here, and the job is sent again. Meanwhile somebody cancelled it there for good.
		if err := s.mainland.Cancel(t.Context(), ids, ada); err != nil {
			t.Fatal(err)
		}
		s.local.fail(s.local.before, "settle", nil)
		s.once(forward.Sent{Forwarded: 1})
		s.is(s.edge, id, sluice.StateCompleted)
		s.is(s.mainland, id, sluice.StateCancelled)
	})
}
