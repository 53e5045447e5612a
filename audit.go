package sluice

import (
	"encoding/json"
	"time"
)

// Act says who wants a change, and why. Stores write it to the audit with the change.
type Act struct {
	// By names the person or program. Required. At most [MaxLabelBytes].
	By string
	// Reason says why, in at most 1,000 bytes. Requeue, Resolve, Terminate and DeleteQueue of [Client] need one.
	Reason string
	// ID names one call. Default: a new ID. A store does not repeat an act that it receives again after a lost
	// answer, so do not use one ID for two calls.
	ID ID
	// BesideOpenRun lets Requeue start a job although an orphan run of it may still be open; see engine.OrphanRun.
	// The audit keeps for which runs a person decided so. Default: the job waits until those runs have ended.
	BesideOpenRun bool
	// Undo makes Store.Requeue take back a requeue. [Client.UndoRequeue] sets it.
	Undo bool
}

// Object is the kind of thing that an audit entry is about. Package audit has the kinds.
type Object string

// AuditEntry is one entry of the audit. Stores add entries and never change them; package audit deletes old ones.
type AuditEntry struct {
	// Seq numbers the entries of a store, in the order in which the store wrote them.
	Seq int64 `json:"seq"`
	// At is when the store wrote the entry, by its own clock. Actor is the By of the act.
	At    time.Time `json:"at"`
	Actor string    `json:"actor"`
	// Object is the kind of thing that the entry is about.
	Object Object `json:"object"`
	// Name names the object. For a job it is the name of the queue, for an operation the operation's id, for an
	// alert the result of alert.RuleName. For a policy it is queues, and for the audit keep or head.
	Name string `json:"name"`
	// Event is a move of the state machine, [EventReschedule], or an event of package audit.
	Event Event `json:"event"`
	// JobID, Generation, From and To describe the move of a job. Zero: the entry is about no job, or about no move.
	JobID      ID    `json:"job_id,omitzero"`
	Generation int   `json:"generation,omitempty"`
	From       State `json:"from,omitempty"`
	To         State `json:"to,omitempty"`
	// Reason is the reason of the act, or the store's own. Empty: none.
	Reason string `json:"reason,omitempty"`
	// Before and After are the object before and after the change, as JSON. Empty: the entry has none.
	Before json.RawMessage `json:"before,omitempty"`
	After  json.RawMessage `json:"after,omitempty"`
	// ActID is the ID of the act. Zero: no act caused the entry.
	ActID ID `json:"act_id,omitzero"`
}

// CheckAppended returns the rule that an entry for AppendAudit of [Store] breaks, as an [ErrInvalid]. An appended
// entry must not describe a move: only the verb that makes a move writes its entry.
func (e AuditEntry) CheckAppended() error {
	switch {
	case e.Object == "":
		return invalid("object", "an entry must name its object")
	case e.Event == "":
		return invalid("event", "an entry must name its event")
	case e.From != "" || e.To != "" || MoveOf(e.Event).To != "":
		return invalid("event", "an entry must not be a move; the store writes moves itself")
	}
	return nil
}

// AuditFilter chooses audit entries. The zero value chooses all.
type AuditFilter struct {
	// Zero: any. The Actor ada finds `ada by token shop`, too. Actor and Event have no index: see Search of package audit.
	Object      Object
	Name, Actor string
	JobID       ID
	Event       Event
	// Before is the last Seq of the previous page; default: begin with the newest. After is a Seq to stop before.
	Before, After int64
	// Limit is the size of a page, 1 to 10,000. Default: 100.
	Limit int
}

// Change lets change edit the settings. If the edit gives a queue its first engine and leaves the audit alone,
// Change sets Audit to [AuditFull].
//
// The reason: the engine keeps the details of a run, and only a full audit keeps when a job was claimed, dispatched
// and ended.
func (s *Settings) Change(change func(*Settings) error) error {
	if err := CheckGiven("change", change); err != nil {
		return err
	}
	probe, before := *s, *s
	probe.Audit = AuditFull
	silent := before.Engine == "" && before.Audit == AuditNotable && change(&probe) == nil && probe.Engine != "" && probe.Audit == AuditFull
	if err := change(s); err != nil {
		return err
	}
	if silent && s.Engine != "" {
		s.Audit = AuditFull
	}
	return nil
}
