package operation_test

import (
	"testing"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/operation"
)

func TestTheTotalOfAnOperationIsKnownOnlyIfSomebodyCounted(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		of    operation.Operation
		total int
		known bool
	}{
		"counted":                     {operation.Operation{State: operation.StateRunning, Expected: 7, Done: 2, Failed: 1}, 7, true},
		"stopped early":               {operation.Operation{State: operation.StateStopped, Expected: 7, Done: 2}, 7, true},
		"all of it, not yet noticed":  {operation.Operation{State: operation.StateRunning, Expected: 7, Done: 6, Skipped: 1}, 7, true},
		"limited":                     {operation.Operation{State: operation.StateRunning, Expected: 70, Limit: 7, Done: 7}, 7, true},
		"nobody counted":              {operation.Operation{State: operation.StateStopped, Done: 2}, 2, false},
		"nobody counted, nothing yet": {operation.Operation{State: operation.StateRunning}, 0, false},
		"more than were counted":      {operation.Operation{State: operation.StateRunning, Expected: 7, Done: 8}, 8, false},
		"some left uncounted":         {operation.Operation{State: operation.StateRunning, Expected: 7, ExpectedMore: true, Done: 2}, 7, false},
		"as many as were counted":     {operation.Operation{State: operation.StateRunning, Expected: 7, ExpectedMore: true, Done: 7}, 7, false},
		"limited to fewer":            {operation.Operation{State: operation.StateRunning, Expected: 7, ExpectedMore: true, Limit: 5, Done: 2}, 5, true},
		"limited to more":             {operation.Operation{State: operation.StateRunning, Expected: 7, ExpectedMore: true, Limit: 9, Done: 2}, 7, false},
		"up to a limit":               {operation.Operation{State: operation.StateRunning, Expected: 7, ExpectedMore: true, Limit: 9, Done: 9}, 9, true},
		"done":                        {operation.Operation{State: operation.StateDone, Done: 2}, 2, true},
		"done, others were elsewhere": {operation.Operation{State: operation.StateDone, Expected: 7, Done: 2}, 2, true},
	} {
		if total, known := c.of.Total(); total != c.total || known != c.known {
			t.Errorf("%s: %d, %t, want %d, %t", name, total, known, c.total, c.known)
		}
		c.of.Rate = sluice.RatePerSecond(1)
		if _, known := c.of.ETA(); known && !c.known {
			t.Errorf("%s: it says when it will be done", name)
		}
	}
}
