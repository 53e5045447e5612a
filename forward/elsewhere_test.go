package forward_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/forward"
)

// TestJobsOnTheWayElsewhereHoldUpNoOthers leaves more jobs on their way to another centre than one look lists, one half of
// them cancelled.
func TestJobsOnTheWayElsewhereHoldUpNoOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSea(t)
		options := s.forwardToCentre
		options.Centre = "elsewhere"
		s.centre.fail(s.centre.after, "enqueue", sluice.ErrUnavailable)
		elsewhere := make([]sluice.ID, 1200)
		for i := range elsewhere {
			elsewhere[i] = s.add(sluice.EnqueueOptions{})
		}
		for _, there := range []forward.Options{options, options, options, s.forwardToCentre} {
			if there.Centre == "hq" {
				if err := s.edge.Cancel(t.Context(), elsewhere[:600], sluice.Act{By: "ada"}); err != nil {
					t.Fatal(err)
				}
				elsewhere = append(elsewhere, s.add(sluice.EnqueueOptions{}), s.add(sluice.EnqueueOptions{}))
			}
			if _, err := forward.New(s.local, s.centre, there).Once(t.Context()); !errors.Is(err, sluice.ErrUnavailable) {
				t.Fatalf("it ended with %v", err)
			}
		}
		sent, cancelled := elsewhere[1200], elsewhere[1201]
		if err := s.edge.Cancel(t.Context(), []sluice.ID{cancelled}, sluice.Act{By: "ada"}); err != nil {
			t.Fatal(err)
		}
		s.centre.fail(s.centre.after, "enqueue", nil)
		time.Sleep(time.Hour)
		s.once(forward.Sent{Forwarded: 1})
		s.is(s.edge, sent, sluice.StateCompleted)
		s.is(s.mainland, sent, sluice.StateQueued)
		s.is(s.mainland, cancelled, sluice.StateCancelled)
	})
}

// TestOnceFinishesWhatManyDeadForwardersBegan leaves more jobs on their way than one look lists, one half of them
// cancelled.
func TestOnceFinishesWhatManyDeadForwardersBegan(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSea(t)
		s.centre.fail(s.centre.after, "enqueue", sluice.ErrUnavailable)
		ids := make([]sluice.ID, 1200)
		for i := range ids {
			ids[i] = s.add(sluice.EnqueueOptions{})
		}
		for range 3 {
			if _, err := s.other().Once(t.Context()); !errors.Is(err, sluice.ErrUnavailable) {
				t.Fatalf("it ended with %v", err)
			}
		}
		if err := s.edge.Cancel(t.Context(), ids[600:], sluice.Act{By: "ada"}); err != nil {
			t.Fatal(err)
		}
		s.centre.fail(s.centre.after, "enqueue", nil)
		time.Sleep(time.Hour)
		s.once(forward.Sent{Forwarded: 600})
		for i, id := range ids {
			if i < 600 {
				s.is(s.edge, id, sluice.StateCompleted)
				s.is(s.mainland, id, sluice.StateQueued)
			} else {
				s.is(s.mainland, id, sluice.StateCancelled)
			}
		}
	})
}
