package alert

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/health"
)

// Alert is the state of a rule in a queue, or in the store.
type Alert struct {
	// Rule names the rule.
	Rule string `json:"rule"`
	// Queue is the queue. Empty: the rule is about the store.
	Queue string `json:"queue,omitempty"`
	State State  `json:"state"`
	// Since is when the alert came into its state. PendingSince is since when its condition holds; zero: the
	// condition does not hold.
	Since        time.Time `json:"since"`
	PendingSince time.Time `json:"pending_since,omitzero"`
	// FiredAt is when the alert fired last, and ResolvedAt when that was over.
	FiredAt    time.Time `json:"fired_at,omitzero"`
	ResolvedAt time.Time `json:"resolved_at,omitzero"`
	// Told says that receivers have the message that it fires, and no message yet that it is over.
	Told bool `json:"notified"`
	// Value and Threshold are the figures at the last evaluation, at the instant At.
	Value     float64         `json:"value"`
	Threshold float64         `json:"threshold"`
	Severity  health.Severity `json:"severity"`
	At        time.Time       `json:"at"`
	// Detail describes the figure, such as which table has the most. Empty: none.
	Detail string `json:"detail,omitempty"`
	// Version counts how often the alert was stored. 0: never.
	Version int64 `json:"-"`
}

// Reading is a figure at an instant.
type Reading struct {
	Value float64
	// Unknown says that there is no figure: the read failed, or there is nothing to measure. The alert then stays
	// as it is.
	Unknown bool
	// Detail describes the figure for people.
	Detail string
}

// Change is a change of an alert that people see.
type Change string

// The changes. The audit and the log get each of them. [Change.Reaches] says which of them receivers get.
const (
	Fires    Change = "firing"
	Resolves Change = "resolved"
	Hides    Change = "silenced"
	// HeadOfAudit is no alert: receivers get the head of the audit's chain.
	HeadOfAudit Change = "audit head"
)

// Reaches reports whether receivers get a change of an alert, given the alert before it. They get the end of an
// alert only if they got its begin.
func (c Change) Reaches(before Alert) bool {
	return c == Fires || c == Resolves && before.Told
}

// Event returns the event of the change in the audit.
func (c Change) Event() sluice.Event { return sluice.Event("alert " + string(c)) }

// memory is for how long a condition counts as held without any look. A new leader of upkeep goes on from the last
// one's looks. After a night without upkeep, each condition begins anew.
const memory = time.Hour

// Next returns an alert as it is after a look, and the change that people see. Empty: no change. Receivers that got
// the begin of an alert get its end too, even under a silence.
func (a Alert) Next(rule Rule, threshold float64, reading Reading, hidden bool, now time.Time) (Alert, Change) {
	if a.State == "" {
		a.State, a.Since = Inactive, now
	}
	breaks := rule.Breaks(reading.Value, threshold)
	if reading.Unknown {
		if a.State == Inactive || a.State == Pending {
			return a, ""
		}
		breaks = true // a firing alert fires until its end is known
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

// fire returns an alert whose condition has held for long enough.
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
		return a, "" // receivers have the message already, from before a silence
	}
	a.Told = true
	return a, Fires
}

// end returns an alert whose condition does not hold, or whose rule is gone.
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

// Withdraw returns an alert that no rule evaluates any more: its rule was disabled or deleted, or does not cover
// its queue.
func (a Alert) Withdraw(now time.Time) (Alert, Change) {
	a.At, a.Detail = now, "the rule is no longer looked at here"
	return a.end(now)
}

// Name returns the rule, and the queue if there is one; see [RuleName].
func (a Alert) Name() string { return RuleName(a.Rule, a.Queue) }

// Message is a message to receivers. A webhook gets it as JSON.
type Message struct {
	// ID names the message. A message that comes twice has the same ID.
	ID     sluice.ID `json:"id"`
	Event  Change    `json:"event"`
	Rule   string    `json:"rule"`
	Queue  string    `json:"queue,omitempty"`
	Metric string    `json:"metric"`
	Op     string    `json:"op"`
	// Value and Threshold are the figures. If the alert is over, Value is the last one.
	Value     float64         `json:"value"`
	Threshold float64         `json:"threshold"`
	Severity  health.Severity `json:"severity"`
	// Message is one sentence for people. Runbook is the steps to take, one per line.
	Message string `json:"message"`
	Runbook string `json:"runbook,omitempty"`
	// AuditHead is the head of the audit's chain, for `sluice audit verify`. Only the Event HeadOfAudit has it.
	AuditHead string `json:"audit_head,omitempty"`
	// FiredAt is when the alert fired. At is when the Watcher saw the change. Both are by the store's clock.
	FiredAt time.Time `json:"fired_at,omitzero"`
	At      time.Time `json:"at"`
}

// HeadMessage makes the message about the head of the audit's chain.
func HeadMessage(head string, at time.Time) Message {
	return Message{
		ID: sluice.NewID(), Event: HeadOfAudit, Rule: "audit-head", Severity: health.SeverityNote, AuditHead: head, At: at,
		Message: "the audit is sealed up to " + head + "; keep this, it is no alert",
	}
}

// Message makes the message about a change of an alert.
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
	m.Message = fmt.Sprintf("%s: %s (%s %s)", what, rule.Summary, rule.Metric, state)
	if a.Detail != "" {
		m.Message += ": " + sluice.Brief(a.Detail)
	}
	return m
}

// Entry returns the audit entry of a message.
func (m Message) Entry(by string) sluice.AuditEntry {
	after, _ := json.Marshal(m) // it holds nothing that cannot be written
	return sluice.AuditEntry{Object: audit.ObjectAlert, Name: RuleName(m.Rule, m.Queue), Event: m.Event.Event(), Actor: by, Reason: m.Message, After: after}
}
