package console

import (
	"cmp"
	"context"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/sluice-queue/sluice/alert"
	"github.com/sluice-queue/sluice/cmd/internal/draw"
)

func alertPages() []page {
	return []page{
		{name: "alerts", path: "/alerts", title: "Alerts", letter: "a", load: loadAlerts},
		{name: "rule", path: "/alerts/{rule}", title: "Alert rule", load: loadRule},
	}
}

// alertsView is the view of /alerts.
type alertsView struct {
	Alerts    []alert.Alert
	Silences  []alert.Silence
	Receivers []receiver
	Rules     []rule
	History   []auditEntry
	// Stale says that nobody seems to evaluate the rules.
	Stale bool
}

// receiver is told of alerts.
type receiver struct {
	Name    string    `json:"name"`
	Waiting int       `json:"waiting"`
	Oldest  time.Time `json:"oldest"`
	Error   string    `json:"error"`
	Seen    time.Time `json:"seen"`
}

// rule says when an alert fires.
type rule struct {
	Name      string      `json:"name"`
	Queue     string      `json:"queue"`
	Metric    string      `json:"metric"`
	Op        string      `json:"op"`
	Threshold float64     `json:"threshold"`
	RateShare float64     `json:"rate_share"`
	For       string      `json:"for"`
	Window    string      `json:"window"`
	Severity  string      `json:"severity"`
	Covers    alert.Scope `json:"covers"`
	Summary   string      `json:"summary"`
	Runbook   string      `json:"runbook"`
	Version   int         `json:"version"`
	Disabled  bool        `json:"disabled"`
}

// covered says in words which queues are in the scope of a rule.
var covered = map[alert.Scope]string{
	alert.CoversAll: "all queues", alert.CoversWorkers: "queues of workers", alert.CoversEngines: "queues with an engine",
	alert.CoversUnlimited: "queues without limits", alert.CoversUnlimitedWorkers: "queues of workers, without limits",
	alert.CoversUnlimitedEngines: "queues with an engine, without limits", alert.CoversRated: "queues with a rate", alert.CoversStore: "the store",
}

// Of says what the rule is about.
func (r rule) Of() string { return cmp.Or(r.Queue, covered[r.Covers], string(r.Covers)) }

// Steps are the lines of the runbook.
func (r rule) Steps() []string {
	return strings.FieldsFunc(r.Runbook, func(c rune) bool { return c == '\n' })
}

// staleAfter is how old the newest evaluation may be. Upkeep evaluates every 15 s.
const staleAfter = 2 * time.Minute

func loadAlerts(ctx context.Context, v *visit) (any, error) {
	var read struct {
		Alerts    []alert.Alert   `json:"alerts"`
		Silences  []alert.Silence `json:"silences"`
		Receivers []receiver      `json:"receivers"`
		Now       time.Time       `json:"now"`
	}
	var rules struct {
		Rules []rule `json:"rules"`
	}
	v.cli("sluice alerts ls")
	if err := v.get(ctx, "/alerts", nil, &read); err != nil {
		return nil, err
	}
	v.cli("sluice alerts rules")
	if err := v.get(ctx, "/alerts/rules", nil, &rules); err != nil {
		return nil, err
	}
	v.cli("sluice alerts history")
	history, err := v.entries(ctx, cacheFor, "/alerts/history", url.Values{"limit": {"20"}})
	if err != nil {
		return nil, err
	}
	view := alertsView{History: history, Alerts: read.Alerts, Silences: read.Silences, Receivers: read.Receivers, Rules: rules.Rules}
	var newest time.Time
	for _, a := range read.Alerts {
		if a.At.After(newest) {
			newest = a.At
		}
	}
	order := []alert.State{alert.Firing, alert.Pending, alert.Silenced} // what wants attention comes first
	slices.SortStableFunc(view.Alerts, func(a, b alert.Alert) int {
		return cmp.Compare(slices.Index(order, a.State), slices.Index(order, b.State))
	})
	view.Stale = len(read.Alerts) > 0 && read.Now.Sub(newest) > staleAfter
	return view, nil
}

// ruleView is the view of /alerts/{rule}.
type ruleView struct {
	Rule    rule
	Alerts  []alert.Alert
	History []auditEntry
	// Charts has the value against the threshold. Empty: Choices are queues to choose, or there are none.
	Charts           []chart
	Windows, Choices []choice
}

func (view ruleView) charts() []chart { return view.Charts }

func loadRule(ctx context.Context, v *visit) (any, error) {
	var view ruleView
	name, queue := v.pathOf("rule"), v.query.Get("queue")
	var rules struct {
		Rules []rule `json:"rules"`
	}
	if err := v.get(ctx, "/alerts/rules", nil, &rules); err != nil {
		return nil, err
	}
	for _, r := range rules.Rules {
		if r.Name == name && (r.Queue == queue || r.Queue == "" && view.Rule.Name == "") {
			view.Rule = r
		}
	}
	if view.Rule.Name == "" {
		return nil, missing("rule", name)
	}
	v.cli("sluice alerts rules " + quoted(name))
	var read struct {
		Alerts []alert.Alert `json:"alerts"`
	}
	if err := v.get(ctx, "/alerts", url.Values{"all": {"true"}}, &read); err != nil {
		return nil, err
	}
	for _, a := range read.Alerts {
		if a.Rule == name && (queue == "" || a.Queue == queue) {
			view.Alerts = append(view.Alerts, a)
		}
	}
	query := url.Values{"rule": {name}, "limit": {"50"}}
	if queue != "" {
		query.Set("queue", queue)
	}
	v.cli("sluice alerts history " + quoted(name))
	var err error
	if view.History, err = v.entries(ctx, cacheFor, "/alerts/history", query); err != nil {
		return view, err
	}
	return view, view.draw(ctx, v)
}

func alertActs() []act {
	one := []field{{name: "queue", label: "Queue", hint: "empty: all queues of the rule"}}
	return []act{
		{
			name: "silence-alert", label: "Silence", route: "start-silence", command: "sluice alerts silence {rule} --queue={queue} --for={for} --reason={reason}",
			sentence: "Nobody is told of the alert {rule} for a while. It still shows here.", needsReason: true,
			fields: append([]field{{name: "for", label: "For", hint: "such as 2h", required: true, value: "1h"}, {name: "rule", label: "Rule", required: true}}, one...),
		},
		{
			name: "end-silence", label: "End the silence", route: "stop-silence", command: "sluice alerts unsilence {id} --reason={reason}",
			sentence: "People are told of the alert again.",
		},
		{
			name: "set-rule", label: "Change", route: "set-rule", command: "sluice alerts set {rule} threshold={threshold} for={hold} severity={severity} --queue={queue} --reason={reason}",
			sentence: "Change the rule {rule}.",
			fields: append([]field{
				{name: "threshold", label: "Threshold", kind: "number", hint: "empty: as it is"},
				{name: "hold", label: "For", hint: "how long the condition must hold, such as 5m; empty: as it is"},
				{name: "severity", label: "Severity", kind: "select", options: []string{"", "warning", "error", "critical"}},
			}, one...),
			body: ruleBody,
		},
		{
			name: "new-rule", label: "New rule", route: "set-rule", needsReason: true,
			command:  "sluice alerts set {rule} metric={metric} op={op} threshold={threshold} for={hold} severity={severity} summary={summary} --queue={queue} --reason={reason}",
			sentence: "Add a rule. Upkeep evaluates it from its next round on.",
			fields: append([]field{
				{name: "rule", label: "Name", hint: "such as many-retries", required: true},
				{name: "metric", label: "Metric", kind: "select", options: metricNames(), required: true},
				{name: "op", label: "Fires when it is", kind: "select", options: []string{">", "<"}},
				{name: "threshold", label: "Threshold", kind: "number", required: true},
				{name: "hold", label: "For", hint: "how long the condition must hold, such as 5m; empty: at once"},
				{name: "severity", label: "Severity", kind: "select", options: []string{"warning", "error", "critical"}},
				{name: "summary", label: "What it means", hint: "people read it in the alert"},
			}, one...),
			body: ruleBody,
		},
		{
			name: "disable-rule", label: "Disable", route: "disable-rule", undo: "enable-rule", command: "sluice alerts disable {rule} --queue={queue} --reason={reason}",
			sentence: "The rule {rule} is not evaluated any more, and its alerts end.", fields: one,
		},
		{
			name: "enable-rule", label: "Enable", route: "enable-rule", undo: "disable-rule", command: "sluice alerts enable {rule} --queue={queue} --reason={reason}",
			sentence: "The rule {rule} is evaluated again.", fields: one,
		},
		{
			name: "reset-rule", label: "Reset", route: "reset-rule", command: "sluice alerts reset {rule} --queue={queue} --reason={reason}",
			sentence: "The rule {rule} is as it was at first.", fields: one,
		},
		{
			name: "test-alerts", label: "Evaluate all rules now", route: "test-alerts", noReason: true, command: "sluice alerts test",
			sentence: "Evaluate all rules now, without telling anybody.", done: evaluated,
		},
		{
			name: "test-receiver", label: "Send a test", route: "test-receiver", noReason: true,
			sentence: "Send {receiver} a message which says that nothing is wrong. The answer of the receiver shows here.",
			fields:   []field{{name: "receiver", label: "Receiver", required: true}},
			done:     func(answered) string { return "The receiver took the test message" },
		},
	}
}

// metricNames are what rules can be about.
func metricNames() (names []string) {
	for _, m := range alert.Metrics() {
		names = append(names, m.Name)
	}
	return names
}

// ruleBody has the fields of a rule that somebody filled in.
func ruleBody(values url.Values) (map[string]any, error) {
	set := map[string]string{}
	for field, name := range map[string]string{"metric": "metric", "op": "op", "threshold": "threshold", "hold": "for", "severity": "severity", "summary": "summary"} {
		if text := strings.TrimSpace(values.Get(field)); text != "" {
			set[name] = text
		}
	}
	body := map[string]any{"set": set}
	if queue := values.Get("queue"); queue != "" {
		body["queue"] = queue
	}
	return body, nil
}

// evaluated says which rules are past their thresholds.
func evaluated(a answered) string {
	rules, _ := a["rules"].([]any)
	var broken []string
	for _, one := range rules {
		if r, is := one.(map[string]any); is && r["breaks"] == true {
			broken = append(broken, strings.Trim(asText(r["rule"])+"/"+asText(r["queue"]), "/"))
		}
	}
	if len(broken) == 0 {
		return draw.Plural(len(rules), "rule") + ": no figure is past its threshold"
	}
	return "Past their thresholds: " + strings.Join(broken, ", ")
}
