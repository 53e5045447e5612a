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
	// BesideOpenRun lets Requeue start jobs beside runs of theirs that may still be open; see StrayRun. The audit tells
	// for which runs a person decided so. Default: the next run waits until those have ended.
	BesideOpenRun bool
	// Undo lets Requeue take back what it did: see Client.UndoRequeue.
	Undo bool
}

// Object is the kind of thing an audit entry tells of.
type Object string

// The kinds.
const (
	ObjectJob    Object = "job"
	ObjectQueue  Object = "queue"
	ObjectTenant Object = "tenant"
	ObjectTier   Object = "tier"
	ObjectAlert  Object = "alert"
	// ObjectOperation: its name is the operation's id.
	ObjectOperation Object = "operation"
	// ObjectPolicy is what counts for the whole store. Its name is queues, for the QueuePolicy.
	ObjectPolicy Object = "policy"
	// ObjectAudit is the audit itself. Its name is keep for how long entries are kept and what retention deletes, head for
	// heads of the chain that were told outside of the store.
	ObjectAudit Object = "audit"
)

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

// What the audit tells beside the moves.
const (
	// EventLost: a write was refused because its token is not the job's.
	EventLost Event = "lost"
	// EventReschedule: a waiting job got another due_at.
	EventReschedule Event = "reschedule"
	// EventPrune: a person had a finished job deleted before its time, or retention deleted entries of the audit.
	EventPrune Event = "prune"
	// EventMissing: a claim, or who follows runs, found that somebody had deleted the row of a job, and took away what was
	// left of it.
	EventMissing Event = "job missing"
	// EventTerminate: a person asked upkeep to end a stray run by force. After names the run.
	EventTerminate Event = "terminate"
	// EventBeside: a person let a job run beside a stray run of it. After names the run.
	EventBeside Event = "beside open run"
	// EventChange: a queue, tenant, tier, rule of alerts, or the state or terms of an operation, was changed.
	EventChange Event = "change"
	// EventDelete: a tenant, a tier or what somebody said of a rule of alerts was deleted.
	EventDelete Event = "delete"
	// EventBatch: a dispatcher claimed jobs of a queue and handed them to its engine. After has the counts.
	EventBatch Event = "dispatch batch"
	// EventBreaker: a dispatcher stopped claiming, because the engine of a queue cannot be used, or goes on again. The
	// reason says which, and why.
	EventBreaker Event = "breaker"
	// EventAlertFires, EventAlertResolves and EventAlertHides: an alert fires, is over, or would fire and is silenced.
	EventAlertFires    Event = "alert firing"
	EventAlertResolves Event = "alert resolved"
	EventAlertHides    Event = "alert silenced"
	// EventSilence and EventUnsilence: somebody silenced alerts for a while, or ended that. After says which.
	EventSilence   Event = "silence"
	EventUnsilence Event = "unsilence"
	// EventHead: a head of the audit's chain was told in the log and to the receivers of alerts. After has it.
	EventHead Event = "head told"
	// EventContinue: the store was moved, and its chain goes on from the head of the other store's. After has the head, and
	// the last entry that it covers.
	EventContinue Event = "chain continued"
	// EventAlertUntold: a receiver could not be told of an alert for so long that it was given up.
	EventAlertUntold Event = "alert untold"
)

// CheckNote says which rule an entry breaks that somebody wants to add with Note: the moves are told of by the verbs
// that make them, or the audit would tell of what never happened.
func (e AuditEntry) CheckNote() error {
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
