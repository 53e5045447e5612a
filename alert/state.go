package alert

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/health"
)

// Alert is what is known of a rule in a queue, or in the store.
type Alert struct {
	Rule string `json:"rule"`
	// Queue is empty for a rule about the store.
	Queue string `json:"queue,omitempty"`
	State State  `json:"state"`
	// Since is when it came into its state, PendingSince since when its condition has held; zero: it does not.
	Since        time.Time `json:"since"`
	PendingSince time.Time `json:"pending_since,omitzero"`
	// FiredAt and ResolvedAt are when it fired last, and when that was over.
	FiredAt    time.Time `json:"fired_at,omitzero"`
	ResolvedAt time.Time `json:"resolved_at,omitzero"`
	// Told says that receivers were told that it fires, and not yet that it is over.
	Told bool `json:"told"`
	// Value and Threshold are the figures as they were looked at last, at the instant At.
	Value     float64         `json:"value"`
	Threshold float64         `json:"threshold"`
	Severity  health.Severity `json:"severity"`
	At        time.Time       `json:"at"`
	// Detail says more of the figure, such as which table has the most; empty: there is no more.
	Detail string `json:"detail,omitempty"`
	// Version counts how often it was stored; 0: it never was.
	Version int64 `json:"-"`
}

// Reading is a figure at an instant.
type Reading struct {
	Value float64
	// Unknown says that there is no figure: it could not be read, or there is nothing that it would tell of. The alert
	// stays as it is then.
	Unknown bool
	// Detail says more, for people.
	Detail string
}

// Change is a change of an alert that people are notified of.
type Change string

// The changes. The audit and the log are told of each, receivers of those that Reaches says.
const (
	Fires    Change = "firing"
	Resolves Change = "resolved"
	Hides    Change = "silenced"
	// HeadOfAudit is no alert: receivers are told of the head of the audit's chain.
	HeadOfAudit Change = "audit head"
)

// Reaches reports whether receivers are told of a change of an alert, as it was before. That one is over is only told to
// whom it was told that it fires.
func (c Change) Reaches(before Alert) bool {
	return c == Fires || c == Resolves && before.Told
}

// Event is what the audit calls the change.
func (c Change) Event() sluice.Event { return sluice.Event("alert " + string(c)) }

// alertMemory is for how long a condition counts as having held although nobody has looked. A leader of upkeep that takes
// over goes on from what the last one saw; after a night without any, a condition is seen anew.
const memory = time.Hour

// Next gives an alert as it is after a look, and what people are to be told, if anything; an empty change is nothing.
// Whoever was told that it fires is told when that is over, silence or not.
func (a Alert) Next(rule Rule, threshold float64, reading Reading, hidden bool, now time.Time) (Alert, Change) {
	if a.State == "" {
		a.State, a.Since = Inactive, now
	}
	breaks := rule.Breaks(reading.Value, threshold)
	if reading.Unknown {
		if a.State == Inactive || a.State == Pending {
			return a, ""
		}
		breaks = true // what fires does so until it is known to be over
	} else {
		if !a.PendingSince.IsZero() && now.Sub(a.At) > memory && a.State == Pending {
			a.PendingSince = now
		}
		a.Value, a.Detail, a.At = reading.Value, reading.Detail, now
	}
	a.Threshold, a.Severity = threshold, rule.Severity
	if !breaks {
		return a.end(now)
	}
	if a.PendingSince.IsZero() {
		a.PendingSince = now
	}
	if a.State == Inactive {
		a.State, a.Since = Pending, now
	}
	if a.State == Pending && now.Sub(a.PendingSince) < rule.For {
		return a, ""
	}
	return a.fire(hidden, now)
}

// fire is what becomes of an alert whose condition has held for long enough.
func (a Alert) fire(hidden bool, now time.Time) (Alert, Change) {
	if a.State == Pending {
		a.FiredAt = now
	}
	switch {
	case hidden && a.State != Silenced:
		a.State, a.Since = Silenced, now
		return a, Hides
	case hidden || a.State == Firing:
		return a, ""
	}
	a.State, a.Since = Firing, now
	if a.Told {
		return a, "" // it was silenced for a while after they were told
	}
	a.Told = true
	return a, Fires
}

// end is what becomes of an alert whose condition does not hold, or whose rule is gone.
func (a Alert) end(now time.Time) (Alert, Change) {
	a.PendingSince = time.Time{}
	if a.State == Inactive {
		return a, ""
	}
	was := a.State
	a.State, a.Since = Inactive, now
	if was == Pending {
		return a, ""
	}
	a.ResolvedAt, a.Told = now, false
	return a, Resolves
}

// Withdraw gives an alert whose rule is no longer looked at: it was disabled or deleted, or its queue is none that the
// rule covers.
func (a Alert) Withdraw(now time.Time) (Alert, Change) {
	a.At, a.Detail = now, "the rule is no longer looked at here"
	return a.end(now)
}

// Name names the alert: its rule, and its queue if it has one.
func (a Alert) Name() string { return RuleName(a.Rule, a.Queue) }

// Message is what a receiver is told. Its JSON is what a webhook gets (severity, metric, value, threshold,
// message).
type Message struct {
	// ID tells this message from every other: one that comes twice is the same.
	ID     sluice.ID `json:"id"`
	Event  Change    `json:"event"`
	Rule   string    `json:"rule"`
	Queue  string    `json:"queue,omitempty"`
	Metric string    `json:"metric"`
	Op     string    `json:"op"`
	// Value and Threshold are the figures; of one that is over, the last.
	Value     float64         `json:"value"`
	Threshold float64         `json:"threshold"`
	Severity  health.Severity `json:"severity"`
	// Message is one sentence for people, Runbook what to do, one step a line.
	Message string `json:"message"`
	Runbook string `json:"runbook,omitempty"`
	// AuditHead is the head of the audit's chain, for `sluice audit verify`; only where Event is HeadOfAudit.
	AuditHead string `json:"audit_head,omitempty"`
	// FiredAt is since when it fires, At when this was seen, by the store's clock.
	FiredAt time.Time `json:"fired_at,omitzero"`
	At      time.Time `json:"at"`
}

// HeadMessage makes what receivers are told of the head of the audit's chain.
func HeadMessage(head string, at time.Time) Message {
	return Message{
		ID: sluice.NewID(), Event: HeadOfAudit, Rule: "audit-head", Severity: health.SeverityNote, AuditHead: head, At: at,
		Message: "the audit is sealed up to " + head + "; keep this, it is no alert",
	}
}

// Message makes what is told of a change of an alert.
func (a Alert) Message(rule Rule, change Change, now time.Time) Message {
	m := Message{
		ID: sluice.NewID(), Event: change, Rule: a.Rule, Queue: a.Queue, Metric: rule.Metric, Op: rule.Op, Value: a.Value, Threshold: a.Threshold,
		Severity: a.Severity, Runbook: rule.RunbookIn(a.Queue), FiredAt: a.FiredAt, At: now,
	}
	what := "the store"
	if a.Queue != "" {
		what = "queue " + a.Queue
	}
	state := figure(a.Value) + " " + rule.Op + " " + figure(a.Threshold)
	if change == Resolves {
		state = "over; last " + figure(a.Value)
	}
	m.Message = fmt.Sprintf("%s: %s (%s %s)", what, rule.Says, rule.Metric, state)
	if a.Detail != "" {
		m.Message += ": " + sluice.Brief(a.Detail)
	}
	return m
}

// Entry is the line that tells the audit of a message.
func (m Message) Entry(by string) sluice.AuditEntry {
	after, _ := json.Marshal(m) // it holds nothing that cannot be written
	return sluice.AuditEntry{Object: audit.ObjectAlert, Name: RuleName(m.Rule, m.Queue), Event: m.Event.Event(), Actor: by, Reason: m.Message, After: after}
}
