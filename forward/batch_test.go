package forward_test

import (
	"testing"
	"testing/synctest"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/batch"
	"github.com/sluice-queue/sluice/forward"
)

// TestBatchCountsWhatIsForwarded forwards the jobs of a batch. The batch counts them where it is; the centre knows no batch.
func TestBatchCountsWhatIsForwarded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSea(t)
		act := sluice.Act{By: "ada"}
		b, err := batch.Open(t.Context(), s.local, batch.Batch{Name: "import"}, act)
		if err != nil {
			t.Fatal(err)
		}
		settings := sluice.DefaultSettings()
		settings.PayloadLimit = 10
		if _, err := s.mainland.EnsureQueue(t.Context(), queue, settings, act); err != nil {
			t.Fatal(err)
		}
		s.add(sluice.EnqueueOptions{Batch: b.ID}) // larger than the centre takes
		small, err := s.edge.Enqueue(t.Context(), sluice.NewJob{Queue: queue, Payload: []byte(`{}`), EnqueueOptions: sluice.EnqueueOptions{Batch: b.ID}})
		if err != nil {
			t.Fatal(err)
		}
		s.once(forward.Sent{Claimed: 2, Forwarded: 1, Refused: 1})
		if job := s.is(s.mainland, small.ID, sluice.StateQueued); !job.Batch.IsZero() {
			t.Errorf("at the centre, the job is in batch %s", job.Batch)
		}
		got, err := batch.Read(t.Context(), s.local, b.ID)
		if want := (batch.Counts{Total: 2, Completed: 1, Dead: 1}); err != nil || got.Counts != want {
			t.Errorf("the batch counts %+v, %v; want %+v", got.Counts, err, want)
		}
	})
}
