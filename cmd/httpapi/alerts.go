package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/access"
	"github.com/sluice-queue/sluice/alert"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/health"
	"github.com/sluice-queue/sluice/internal/wire"
)

// alerts adds the routes of alerts, their rules and silences.
func (a *API) alerts() {
	route := func(r Route) Route { r.Group, r.noun = "alerts", "rule"; return r }
	add(a, route(Route{
		Method: "GET", Path: "/alerts", Name: "list-alerts", Summary: "list alerts",
		Text:  "Lists the alerts of upkeep's last evaluation, with the silences and receivers.",
		Needs: access.Look, Commands: []string{"alerts ls", "alerts silences"},
	}), listAlerts)
	add(a, route(Route{
		Method: "GET", Path: "/alerts/history", Name: "list-alert-history", Summary: "list what fired and ended, and who changed rules",
		Needs: access.Look, Commands: []string{"alerts history"},
	}), func(ctx context.Context, c *call, in *alertHistoryInput) (auditList, error) {
		filter := sluice.AuditFilter{Object: audit.ObjectAlert, Before: in.Before, Limit: in.Limit}
		if in.Rule != "" {
			filter.Name = alert.RuleName(in.Rule, in.Queue)
		}
		found, err := c.api.client().Audit(ctx, filter)
		return auditList{Entries: orEmpty(found)}, err
	})
	add(a, route(Route{
		Method: "POST", Path: "/alerts/test", Name: "test-alerts", Summary: "evaluate all rules now",
		Text: "Stores nothing, and notifies nobody.", Needs: access.Look, Commands: []string{"alerts test"},
	}), testAlerts)
	add(a, Route{
		Method: "POST", Path: "/alerts/receivers/test", Name: "test-receiver", Group: "alerts", Summary: "send a receiver a test message",
		Text:  "Answers when the receiver has taken the message; an error says why it has not. The message says that nothing is wrong. Only for receivers that this server has.",
		Needs: access.Operate, Commands: []string{"alerts test"}, noun: "receiver",
	}, testReceiver)
	add(a, route(Route{
		Method: "GET", Path: "/alerts/rules", Name: "list-rules", Summary: "list the rules of alerts",
		Needs: access.Look, Commands: []string{"alerts rules"},
	}), func(ctx context.Context, c *call, _ *nothing) (ruleList, error) {
		book, err := alert.Read(ctx, c.api.store)
		return ruleList{orEmpty(book.Rules)}, err
	})
	add(a, route(Route{
		Method: "PATCH", Path: "/alerts/rules/{rule}", Name: "set-rule", Summary: "add or change a rule", Text: "A new name adds a rule, which needs a metric.",
		Needs: access.Operate, Commands: []string{"alerts set"},
	}), func(ctx context.Context, c *call, in *ruleInput) (alert.Rule, error) {
		_, after, err := alert.SetRule(ctx, c.api.store, in.Rule, in.Body.Queue, c.act(in.Body.Reason), func(r *alert.Rule) error {
			return in.Body.Set.each(func(name, text string) error {
				field, err := alert.FieldNamed(name)
				if err != nil {
					return err
				}
				return field.Parse(r, text)
			})
		})
		return after, err
	})
	for _, verb := range []string{"enable", "disable"} {
		add(a, route(Route{
			Method: "POST", Path: "/alerts/rules/{rule}/" + verb, Name: verb + "-rule", Summary: verb + " a rule",
			Needs: access.Operate, Commands: []string{"alerts " + verb},
		}), func(ctx context.Context, c *call, in *ruleActInput) (alert.Rule, error) {
			return c.switchRule(ctx, in, verb == "disable")
		})
	}
	add(a, route(Route{
		Method: "DELETE", Path: "/alerts/rules/{rule}", Name: "reset-rule", Summary: "reset a rule", Text: "Restores a preset, and deletes any other rule.",
		Needs: access.Operate, Commands: []string{"alerts reset"},
	}), func(ctx context.Context, c *call, in *resetRuleInput) (done, error) {
		return done{true}, alert.ResetRule(ctx, c.api.store, in.Rule, in.Queue, c.act(in.Reason))
	})
	a.silenceRoutes()
	a.alertKeeping(route)
}

// alertKeeping adds the routes for programs that keep rules themselves.
func (a *API) alertKeeping(route func(Route) Route) {
	add(a, route(Route{
		Method: "GET", Path: "/alerts/book", Name: "get-alert-book", Summary: "read all that is stored of alerts",
		Text: "For programs; people want list-alerts and list-rules. Without the presets.", Needs: access.Look, Commands: []string{"alerts ls"},
	}), func(ctx context.Context, c *call, _ *nothing) (wire.AlertBook, error) {
		book, err := alert.Given(c.api.store).AlertBook(ctx)
		book.Receivers = c.receivers(book)
		return wire.AlertBookOf(book), err
	})
	add(a, route(Route{
		Method: "PUT", Path: "/alerts/rules/{rule}", Name: "save-rule", Summary: "store a rule",
		Text: "For programs. Stores the rule if its version is still that of the body; without one it makes the rule.", Needs: access.Operate, Commands: []string{"alerts set"},
	}), func(ctx context.Context, c *call, in *saveRuleInput) (wire.AlertRuleView, error) {
		rule, act := in.Body.Rule, c.act(in.Body.Reason)
		rule.Name = in.Rule
		if err := errors.Join(act.Check(), rule.Check()); err != nil {
			return wire.AlertRuleView{}, err
		}
		saved, err := alert.Given(c.api.store).SaveAlertRule(ctx, rule, act)
		return wire.AlertRuleViewOf(saved), err
	})
}

// saveRuleInput stores a rule.
type saveRuleInput struct {
	Rule string `path:"rule" doc:"the rule" maxLength:"64"`
	Body wire.SaveAlertRuleBody
}

func (a *API) silenceRoutes() {
	add(a, Route{
		Method: "POST", Path: "/alerts/silences", Name: "start-silence", Group: "alerts", Summary: "silence alerts for a while",
		Text:  "Needs a reason, and a rule, a queue or all. Receivers hear nothing meanwhile; the alerts still show.",
		Needs: access.Operate, Commands: []string{"alerts silence"}, noun: "rule", status: 201,
	}, func(ctx context.Context, c *call, in *silenceInput) (alert.Silence, error) {
		b := in.Body
		if named := b.Rule != "" || b.Queue != ""; named == b.All {
			return alert.Silence{}, &sluice.InvalidError{Field: "rule", Rule: "name a rule or a queue, or set all"}
		}
		during, err := positive("for", b.For)
		if err != nil {
			return alert.Silence{}, err
		}
		return alert.StartSilence(ctx, c.api.store, alert.Silence{ID: b.ID, Rule: b.Rule, Queue: b.Queue, During: during}, c.act(b.Reason))
	})
	add(a, Route{
		Method: "DELETE", Path: "/alerts/silences/{id}", Name: "stop-silence", Group: "alerts", Summary: "end a silence early",
		Needs: access.Operate, Commands: []string{"alerts unsilence"}, noun: "silence",
	}, func(ctx context.Context, c *call, in *idReasonInput) (done, error) {
		return done{true}, alert.StopSilence(ctx, c.api.store, in.ID, c.act(in.Reason))
	})
}

// alertList lists alerts.
type alertList struct {
	// Alerts are sorted by rule and queue. An alert that was never pending is missing.
	Alerts []alert.Alert `json:"alerts"`
	// Silences are those that have not ended.
	Silences []alert.Silence `json:"silences"`
	// Receivers are those whom upkeep notifies.
	Receivers []alert.ReceiverStatus `json:"receivers"`
	// Now is the store's clock. If the newest `at` of an alert is much older, nobody evaluates.
	Now time.Time `json:"now"`
}

// receivers lists the receivers of a book, without what nobody may read of their errors.
func (c *call) receivers(book alert.Book) []alert.ReceiverStatus {
	out := []alert.ReceiverStatus{}
	for _, r := range book.Receivers {
		r.Error = c.api.options.Clean(r.Error)
		out = append(out, r)
	}
	return out
}

// alertsInput chooses alerts.
type alertsInput struct {
	Queue string `query:"queue" doc:"only this queue" maxLength:"64"`
	All   bool   `query:"all" doc:"also alerts that are over"`
}

func listAlerts(ctx context.Context, c *call, in *alertsInput) (alertList, error) {
	book, err := alert.Read(ctx, c.api.store)
	out := alertList{Alerts: []alert.Alert{}, Silences: orEmpty(book.Silences), Receivers: c.receivers(book), Now: book.Now}
	for _, one := range book.Alerts {
		if (in.Queue == "" || one.Queue == in.Queue) && (in.All || one.State != alert.Inactive) {
			out.Alerts = append(out.Alerts, one)
		}
	}
	return out, err
}

// alertHistoryInput chooses entries about alerts.
type alertHistoryInput struct {
	Rule   string `query:"rule" doc:"only this rule" maxLength:"64"`
	Queue  string `query:"queue" doc:"the rule's queue; without it, the rule for all queues" maxLength:"64"`
	Before int64  `query:"before" doc:"the last seq of the page before" minimum:"0"`
	Limit  int    `query:"limit" doc:"the most entries" minimum:"1" maximum:"1000" default:"100"`
}

func testAlerts(ctx context.Context, c *call, _ *nothing) (wire.EvaluationList, error) {
	found, err := alert.New(c.api.store, alert.Options{Logger: c.api.options.Logger}).Read(ctx)
	out := wire.EvaluationList{Rules: []wire.EvaluationView{}}
	for _, f := range found {
		one := wire.EvaluationViewOf(f)
		one.Error = c.api.options.Clean(sluice.Brief(one.Error))
		out.Rules = append(out.Rules, one)
	}
	return out, err
}

// testReceiverInput names a receiver.
type testReceiverInput struct{ Body testReceiverBody }

// testReceiverBody names a receiver.
type testReceiverBody struct {
	// Receiver is its name, as list-alerts shows it.
	Receiver string `json:"receiver" minLength:"1" maxLength:"200"`
}

// testTime is how long a receiver may take for a test message. A person waits for the answer.
const testTime = 8 * time.Second

func testReceiver(ctx context.Context, c *call, in *testReceiverInput) (done, error) {
	ctx, stop := context.WithTimeout(ctx, testTime)
	defer stop()
	name := in.Body.Receiver
	for _, r := range c.api.options.Receivers {
		if r.Name() != name {
			continue
		}
		if err := alert.Test(ctx, r, c.by); err != nil {
			why := c.api.options.Clean(sluice.Brief(name + " did not take the test message: " + err.Error()))
			return done{}, problemOf(http.StatusBadGateway, "not_delivered", why, "mend the receiver or its address, and test it again")
		}
		return done{true}, nil
	}
	return done{}, problemOf(http.StatusNotFound, "no_receiver", "this server does not have the receiver "+name, "on the machine of the upkeep that has it, use sluice alerts test --alert-webhook ADDRESS")
}

// ruleList lists rules.
type ruleList struct {
	// Rules are the rules in effect, by name and queue.
	Rules []alert.Rule `json:"rules"`
}

// ruleView is a rule in JSON.
type ruleView struct {
	// Name names the rule. Queue is its only queue; missing: all queues of covers.
	Name  string `json:"name"`
	Queue string `json:"queue,omitempty"`
	// Metric names the evaluated figure.
	Metric string `json:"metric"`
	// Op is > or <: the side of the threshold on which the condition holds.
	Op        string  `json:"op"`
	Threshold float64 `json:"threshold"`
	// RateShare limits the threshold to this share of the queue's rate.
	RateShare float64 `json:"rate_share,omitempty"`
	// For is how long the condition must hold before the alert fires, and Window how far back the metric looks.
	For    string `json:"for"`
	Window string `json:"window,omitempty"`
	// Severity says how much the alert matters.
	Severity health.Severity `json:"severity"`
	// Covers says which queues the rule covers. Missing: all.
	Covers alert.Scope `json:"covers,omitempty"`
	// Summary is one sentence about the fault, and Runbook the steps to take.
	Summary string `json:"summary,omitempty"`
	Runbook string `json:"runbook,omitempty"`
	// Source lists what asked for a preset.
	Source string `json:"source,omitempty"`
	// Disabled rules are not evaluated.
	Disabled bool `json:"disabled"`
	// Version counts the changes. Missing: nobody has changed the rule.
	Version int64 `json:"version,omitempty"`
}

// ruleInput changes a rule.
type ruleInput struct {
	Rule string `path:"rule" doc:"the rule" maxLength:"64"`
	Body ruleBody
}

// ruleBody changes a rule.
type ruleBody struct {
	wire.ReasonBody
	// Queue is the queue whose rule changes. Missing: the rule of all queues.
	Queue string `json:"queue,omitempty" maxLength:"64"`
	// Set has new values by the names of a rule's fields, as people write them, such as threshold: 100.
	Set figures `json:"set" minProperties:"1" maxProperties:"20"`
}

// ruleActInput acts on a rule.
type ruleActInput struct {
	Rule string `path:"rule" doc:"the rule" maxLength:"64"`
	Body ruleActBody
}

// ruleActBody says where.
type ruleActBody struct {
	wire.ReasonBody
	// Queue is the queue of the rule. Missing: the rule of all queues.
	Queue string `json:"queue,omitempty" maxLength:"64"`
}

func (c *call) switchRule(ctx context.Context, in *ruleActInput, disabled bool) (alert.Rule, error) {
	_, after, err := alert.SetRule(ctx, c.api.store, in.Rule, in.Body.Queue, c.act(in.Body.Reason), func(r *alert.Rule) error {
		if r.Metric == "" {
			return fmt.Errorf("rule %.80q: %w", in.Rule, sluice.ErrNotFound)
		}
		r.Disabled = disabled
		return nil
	})
	return after, err
}

// resetRuleInput names a rule.
type resetRuleInput struct {
	Rule   string `path:"rule" doc:"the rule" maxLength:"64"`
	Queue  string `query:"queue" doc:"the queue of the rule; without it, the rule of all queues" maxLength:"64"`
	Reason string `query:"reason" doc:"why, for the audit" maxLength:"1000"`
}

// silenceInput silences alerts.
type silenceInput struct{ Body wire.SilenceBody }

// idReasonInput names something by its id, and a reason.
type idReasonInput struct {
	JobInput
	Reason string `query:"reason" doc:"why, for the audit" maxLength:"1000"`
}
