package wire

import (
	"errors"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/alert"
	"github.com/sluice-queue/sluice/health"
)

// AlertBook is all that is stored of alerts.
type AlertBook struct {
	// Rules are the stored rules, without presets, by name and queue. Alerts are sorted by rule and queue.
	Rules  []AlertRuleView `json:"rules"`
	Alerts []AlertView     `json:"alerts"`
	// Silences are those that have not ended. Receivers are those whom upkeep notifies.
	Silences  []alert.Silence        `json:"silences"`
	Receivers []alert.ReceiverStatus `json:"receivers"`
	// Now is the store's clock.
	Now time.Time `json:"now"`
}

// AlertRuleView is a stored rule.
type AlertRuleView struct {
	// Rule is the rule.
	Rule alert.Rule `json:"rule"`
	// ChangedAt, ChangedBy and Reason describe the last change.
	ChangedAt time.Time `json:"changed_at,omitzero"`
	ChangedBy string    `json:"changed_by,omitempty"`
	Reason    string    `json:"reason,omitempty"`
}

// AlertView is a stored alert.
type AlertView struct {
	alert.Alert
	// Version counts how often the alert was stored.
	Version int64 `json:"version"`
}

// AlertRuleViewOf shows a rule.
func AlertRuleViewOf(r alert.Rule) AlertRuleView {
	return AlertRuleView{r, r.ChangedAt, r.ChangedBy, r.Reason}
}

// Read reads the view.
func (v AlertRuleView) Read() alert.Rule {
	r := v.Rule
	r.ChangedAt, r.ChangedBy, r.Reason = v.ChangedAt, v.ChangedBy, v.Reason
	return r
}

// AlertBookOf shows a book.
func AlertBookOf(book alert.Book) AlertBook {
	out := AlertBook{
		Rules: []AlertRuleView{}, Alerts: []AlertView{}, Now: book.Now,
		Silences: append([]alert.Silence{}, book.Silences...), Receivers: append([]alert.ReceiverStatus{}, book.Receivers...),
	}
	for _, r := range book.Rules {
		out.Rules = append(out.Rules, AlertRuleViewOf(r))
	}
	for _, a := range book.Alerts {
		out.Alerts = append(out.Alerts, AlertView{a, a.Version})
	}
	return out
}

// Read reads the book.
func (b AlertBook) Read() alert.Book {
	out := alert.Book{Silences: b.Silences, Receivers: b.Receivers, Now: b.Now}
	for _, view := range b.Rules {
		out.Rules = append(out.Rules, view.Read())
	}
	for _, view := range b.Alerts {
		view.Alert.Version = view.Version
		out.Alerts = append(out.Alerts, view.Alert)
	}
	return out
}

// SaveAlertRuleBody is a rule to store.
type SaveAlertRuleBody struct {
	// Rule is the rule, with the version that the caller read. Missing: the rule is new.
	Rule alert.Rule `json:"rule"`
	ReasonBody
}

// SilenceBody says which alerts are silent, and for how long.
type SilenceBody struct {
	// ID names the silence. Missing: a new one.
	ID sluice.ID `json:"id,omitzero"`
	// Rule and Queue choose the alerts. Missing: any.
	Rule  string `json:"rule,omitempty" maxLength:"64"`
	Queue string `json:"queue,omitempty" maxLength:"64"`
	// All silences every alert.
	All bool `json:"all,omitempty"`
	// For is how long, such as 2h.
	For string `json:"for" maxLength:"20"`
	// Reason says why, for the audit.
	Reason string `json:"reason" minLength:"1" maxLength:"1000"`
}

// EvaluationView is the evaluation of a rule, in answers and in the output of the command line.
type EvaluationView struct {
	// Rule names the rule. Queue is its queue; missing: the store.
	Rule  string `json:"rule"`
	Queue string `json:"queue,omitempty"`
	// Metric is the evaluated figure.
	Metric string `json:"metric"`
	// Value is the figure. Null: it is not known.
	Value *float64 `json:"value"`
	// Op is > or <, and Threshold the bound.
	Op        string  `json:"op"`
	Threshold float64 `json:"threshold"`
	// Severity says how much the alert matters.
	Severity health.Severity `json:"severity"`
	// Breaks says that the figure is past the threshold.
	Breaks bool `json:"breaks"`
	// Detail describes the figure, and Error says why there is none.
	Detail string `json:"detail,omitempty"`
	Error  string `json:"error,omitempty"`
}

// EvaluationList lists evaluations.
type EvaluationList struct {
	// Rules are the evaluations, in the order of the rules.
	Rules []EvaluationView `json:"rules"`
}

// EvaluationViewOf shows an evaluation, with its error as it is.
func EvaluationViewOf(f alert.Finding) EvaluationView {
	out := EvaluationView{Rule: f.Rule.Name, Queue: f.Queue.Name, Metric: f.Rule.Metric, Op: f.Rule.Op, Threshold: f.Threshold, Severity: f.Rule.Severity, Detail: f.Reading.Detail}
	if f.Err != nil {
		out.Error = f.Err.Error()
	}
	if !f.Reading.Unknown {
		out.Value, out.Breaks = &f.Reading.Value, f.Rule.Breaks(f.Reading.Value, f.Threshold)
	}
	return out
}

// Read reads the view. Of the rule and the queue it has what the view has.
func (v EvaluationView) Read() alert.Finding {
	var out alert.Finding
	out.Rule = alert.Rule{Name: v.Rule, Metric: v.Metric, Op: v.Op, Severity: v.Severity}
	out.Queue.Name, out.Threshold = v.Queue, v.Threshold
	out.Reading = alert.Reading{Unknown: v.Value == nil, Detail: v.Detail}
	if v.Value != nil {
		out.Reading.Value = *v.Value
	}
	if v.Error != "" {
		out.Err = errors.New(v.Error)
	}
	return out
}
