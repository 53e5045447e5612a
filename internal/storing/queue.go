package storing

import "github.com/sluice-queue/sluice"

// SQLAct is the act of a change that somebody made by plain SQL.
func SQLAct() sluice.Act { return sluice.Act{By: "sql", Reason: "changed by plain SQL"} }

// Change is an audit entry of a saved queue.
type Change struct {
	// Before is nil for a new queue.
	Before, After any
	Act           sluice.Act
}

// QueueChanges returns the audit entries of saving a queue, in order. Saved is the queue that next replaces; nil: next is
// new. A change by plain SQL that the audit lacks comes before the change itself.
func QueueChanges(saved *sluice.Queue, next sluice.Queue, act sluice.Act) []Change {
	if saved == nil {
		return []Change{{After: next.ForAudit(), Act: act}}
	}
	var all []Change
	if saved.Unrecorded() {
		all = append(all, Change{saved.RecordedForAudit(), saved.ForAudit(), SQLAct()})
	}
	return append(all, Change{saved.ForAudit(), next.ForAudit(), act})
}
