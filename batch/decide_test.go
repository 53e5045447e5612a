package batch_test

import (
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/batch"
)

// TestNobodyCanTellTheIDOfACallback decides twice about the same end of a batch. With the same ID twice, whoever knows the batch could
// store another job with it. The callback would then be a duplicate.
func TestNobodyCanTellTheIDOfACallback(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	look := batch.Look{Batch: batch.Batch{ID: sluice.NewID(), ClosedAt: at, Callbacks: batch.Callbacks{OnComplete: &batch.Callback{Queue: "reports"}}}}
	_, one := look.Decide(at)
	_, other := look.Decide(at)
	if len(one) != 1 || len(other) != 1 || one[0].ID == other[0].ID || !one[0].ID.Time().Equal(at) {
		t.Errorf("there are %d and %d callbacks, want one each, with two IDs of %s", len(one), len(other), at)
	}
}
