package forward_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/forward"
)

// TestProcessThatStoodStillSendsNothingAgainThatTheCentreMayHaveDeleted lets 8 days pass between the read of the centre's
// clock and the send.
func TestProcessThatStoodStillSendsNothingAgainThatTheCentreMayHaveDeleted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSea(t)
		id := s.add(sluice.EnqueueOptions{})
		s.centre.fail(s.centre.after, "enqueue", sluice.ErrUnavailable)
		if _, err := s.forwarder.Once(t.Context()); !errors.Is(err, sluice.ErrUnavailable) {
			t.Fatal(err)
		}
		s.centre.fail(s.centre.after, "enqueue", nil)
		if err := s.mainland.Cancel(t.Context(), []sluice.ID{id}, sluice.Act{By: "ada"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		s.centre.pause = func() {
			s.centre.pause = nil
			time.Sleep(8 * 24 * time.Hour)
			if pruned, err := s.centre.Prune(t.Context(), "", 100); err != nil || pruned.Deleted != 1 {
				t.Error(pruned, err)
			}
		}
		if sent, err := s.other().Once(t.Context()); err == nil || sent != (forward.Sent{}) {
			t.Errorf("sent %+v, %v", sent, err)
		}
		if _, err := s.mainland.Job(t.Context(), id); !errors.Is(err, sluice.ErrNotFound) {
			t.Errorf("it is there again: %v", err)
		}
		time.Sleep(time.Hour)
		if sent, err := s.other().Once(t.Context()); err != nil || sent != (forward.Sent{Uncertain: 1}) {
			t.Errorf("sent %+v, %v", sent, err)
		}
	})
}
