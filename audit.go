package sluice

import (
	"encoding/json"
	"time"
)

// Act says who wants a change, and why. It is written to the audit with the change.
type Act struct {
	// By names the person or program. Required.
	By string
	// Reason says why. Required for a requeue.
	Reason string
	// ID tells this act from every other. Default: a new one. The same act sent again, after an
	// answer was lost, does not repeat what it did; so an id is for one call alone.
	ID ID
	// BesideOpenRun lets Requeue start jobs beside runs of theirs that may still be open; see engine.OrphanRun. The audit tells
	// for which runs a person decided so. Default: the next run waits until those have ended.
	BesideOpenRun bool
	// Undo lets Requeue take back what it did: see Client.UndoRequeue.
	Undo bool
}

// Object is the kind of thing an audit entry tells of.
type Object string

// AuditEntry is one line of the audit, which is only ever added to.
type AuditEntry struct {
	Seq    int64     `json:"seq"`
	At     time.Time `json:"at"`
	Actor  string    `json:"actor"`
	Object Object    `json:"object"`
	// Name is that of the queue, tenant or tier; for a job it is the name of its queue, for an alert what alert.RuleName gives,
	// for an operation its id, for a policy queues, for the audit keep or head.
	Name string `json:"name"`
	// Event is a move of the state machine, or one of the words below.
	Event      Event           `json:"event"`
	JobID      ID              `json:"job_id,omitzero"`
	Generation int             `json:"generation,omitempty"`
	From       State           `json:"from,omitempty"`
	To         State           `json:"to,omitempty"`
	Reason     string          `json:"reason,omitempty"`
	Before     json.RawMessage `json:"before,omitempty"`
	After      json.RawMessage `json:"after,omitempty"`
	ActID      ID              `json:"act_id,omitzero"`
}

// CheckAppended says which rule an entry breaks that somebody wants to add with Note: the moves are told of by the verbs
// that make them, or the audit would tell of what never happened.
func (e AuditEntry) CheckAppended() error {
	switch {
	case e.Object == "":
		return invalid("object", "an entry must say what it tells of")
	case e.Event == "":
		return invalid("event", "an entry must say what happened")
	case e.From != "" || e.To != "" || MoveOf(e.Event).To != "":
		return invalid("event", "a move is told of by the verb that makes it")
	}
	return nil
}

// AuditFilter chooses audit entries. The zero value chooses all.
type AuditFilter struct {
	Object Object
	Name   string
	JobID  ID
	// Before is the last Seq of the page before this one.
	Before int64
	// Limit is the size of a page, 1 to 10,000. Default 100.
	Limit int
}

// Change lets change edit the settings. A change that gives a queue an engine, and says nothing of the audit, makes the
// audit full: what a run did is known elsewhere, and only the audit tells when it was claimed, dispatched and ended.
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
