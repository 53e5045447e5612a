package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/sluice-queue/sluice/batch"
	"github.com/sluice-queue/sluice/cmd/internal/draw"
	"github.com/sluice-queue/sluice/operation"
)

func TestWhatIsNotDoneIsNeverWhole(t *testing.T) {
	t.Parallel()
	for share, want := range map[[2]int]string{{0, 7}: " 0 %", {1, 1000}: " 1 %", {29, 100}: "29 %", {999, 1000}: " 99 %", {1000, 1000}: "100 %"} {
		if bar := shareBar(share[0], share[1]); !strings.HasSuffix(bar, want) {
			t.Errorf("%d of %d: %s, want %s", share[0], share[1], bar, want)
		}
		var out bytes.Buffer
		b := batch.Batch{Counts: batch.Counts{Total: share[1], Completed: share[0]}}
		if err := (&app{stdout: &out}).printBatch(batchDetail{Batch: b, Progress: b.Progress()}); err != nil || !strings.Contains(out.String(), strings.TrimSpace(want)+"\n") {
			t.Errorf("%d of %d: %v, %s", share[0], share[1], err, &out)
		}
	}
}

func TestJobsLeftThatNobodyCountedAreNotNone(t *testing.T) {
	t.Parallel()
	for want, op := range map[string]operation.Operation{
		"-": {State: operation.StateRunning, Done: 5},
		"5": {State: operation.StateRunning, Done: 5, Expected: 10},
		"0": {State: operation.StateDone, Done: 5, Expected: 10},
	} {
		if left := leftOf(op); left != want {
			t.Errorf("left %s, want %s", left, want)
		}
	}
	more := operation.Operation{State: operation.StateRunning, Done: 5, Expected: 10, ExpectedMore: true}
	total, known := more.Total()
	if left, of := leftOf(more), draw.Total(total, known, more.ExpectedMore); left != "-" || of != "at least 10" {
		t.Errorf("left %s of %s", left, of)
	}
}
