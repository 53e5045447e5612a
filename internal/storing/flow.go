package storing

import (
	"slices"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/flow"
)

// FlowOf returns the ID of the flow whose jobs these are. Zero: of none. A store that has the flow stores none of them, because
// another start may have had other nodes.
func FlowOf(jobs []sluice.Insert) sluice.ID {
	last := slices.IndexFunc(jobs, func(j sluice.Insert) bool { return j.Queue == flow.EndQueue })
	if last < 0 {
		return sluice.ID{}
	}
	return jobs[last].ID
}

// Known returns the receipts of jobs that are stored already. Again: an earlier try may have stored them, so they are no
// duplicates.
func Known(jobs []sluice.Insert, again bool) []sluice.Receipt {
	receipts := make([]sluice.Receipt, len(jobs))
	for i := range jobs {
		receipts[i] = sluice.Receipt{ID: jobs[i].ID, Duplicate: !again}
	}
	return receipts
}
