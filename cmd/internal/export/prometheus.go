// Package export writes the alert rules for Prometheus, and a dashboard for Grafana. Both come from
// the rules in effect and from one table of expressions, so they report the same as `sluice
// alerts`.
//
// Begin with [PrometheusRules] and [GrafanaDashboard]. [Condition] is the expression of one rule.
//
// Read next: docs/alerts.md for the rules, and package alert for their meaning.
package export

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/alert"
)

// expression is a metric of alert rules as Prometheus computes it.
type expression struct {
	// value is the metric's value, by queue if it is a queue's; $window is the rule's window.
	value string
	// only narrows the queues if the condition is more than value and threshold.
	only string
	// differs describes, for people, how the result differs from upkeep's. Empty: no difference.
	differs string
}

// Every process reads the gauges, so the highest value counts. Counters are per process, so their
// sum counts.
const (
	notPaused = ` unless on (queue) max by (queue) (sluice_queue_paused) > 0`
	byEngine  = `max by (queue) (sluice_queue_holders{role="dispatcher"}) > 0`
	ready     = `max by (queue) (sluice_jobs{state="ready"})`
	oldest    = `max by (queue) (sluice_oldest_due_seconds)`
	rateLimit = `max by (queue) (sluice_rate_limit)`
)

// expressions are the expressions by metric.
var expressions = map[string]expression{
	alert.MetricReady:     {value: ready, only: notPaused},
	alert.MetricOldestAge: {value: oldest, only: notPaused},
	alert.MetricDrainTime: {value: ready + " / on (queue) " + rateLimit, only: notPaused},
	alert.MetricPace: {
		value: moves("claim") + " / on (queue) " + rateLimit,
		only:  " and on (queue) " + oldest + " > $seconds" + notPaused,
	},
	alert.MetricStalled: {
		value: ready,
		only: " and on (queue) " + oldest + " > $seconds and on (queue) sum by (queue) (sluice_queue_holders) > 0 unless on (queue) max by (queue) (sluice_in_flight) > 0" +
			" unless on (queue) " + moves("claim") + " > 0" + notPaused,
	},
	alert.MetricUnserved: {
		value: ready,
		only:  " unless on (queue) sum by (queue) (sluice_queue_holders) > 0 unless on (queue) max by (queue) (sluice_jobs{state=\"claimed\"}) > 0" + notPaused,
	},
	alert.MetricPausedReady: {value: ready, only: " and on (queue) max by (queue) (sluice_queue_paused) > 0", differs: "a pause that ends by itself counts too"},
	alert.MetricDead:        {value: `max by (queue) (sluice_jobs{state="dead"})`},
	alert.MetricUncertain:   {value: `max by (queue) (sluice_jobs{state="uncertain"})`},
	alert.MetricSuccessRate: {
		value: `1 - sum by (queue) (rate(sluice_moves_total{event="bury"}[$window])) / on (queue) (sum by (queue) (rate(sluice_moves_total{event=~"complete|bury"}[$window])) > 0)`,
	},
	alert.MetricDeadRate:      {value: moves("bury")},
	alert.MetricRecoveredRate: {value: moves("recover"), differs: "jobs that are buried by their last recovery are not counted"},
	alert.MetricStartFailures: {value: `sum by (queue) (rate(sluice_engine_start_failures_total[$window]))`},
	alert.MetricLeaseExpiry: {
		value: moves("recover") + " / on (queue) (" + moves("claim") + " > 0)",
	},
	alert.MetricRunP95:        {value: `histogram_quantile(0.95, sum by (queue, le) (rate(sluice_run_seconds_bucket[$window])))`, differs: "every end of an attempt counts, not completions alone"},
	alert.MetricBreakerOpen:   {value: `max by (queue) (sluice_breaker_open)`},
	alert.MetricSettingsWrong: {value: `max by (queue) (sluice_queue_settings_wrong)`},
	alert.MetricWaiting:       {value: `max by (queue) (sluice_waiting_used)`},
	alert.MetricUpkeepMissing: {value: `(1 - clamp_max(max(sluice_holders{role="upkeep"}), 1)) * 1e9`, differs: "it tells while nobody does it: the figure is 0, or more than any threshold"},
	alert.MetricConditions:    {value: `sum(max by (role) (sluice_holders_with_conditions))`},
	alert.MetricQueues:        {value: `max(sluice_queues_used)`},
	alert.MetricOldestTx:      {value: `max(sluice_postgres_oldest_transaction_seconds)`},
	alert.MetricDeadRows:      {value: `max(sluice_postgres_dead_rows)`},
	alert.MetricWAL:           {value: `max(sluice_sqlite_wal_bytes)`},
	alert.MetricConnections:   {value: `max(sluice_postgres_connections_used)`},
	alert.MetricClock:         {value: `max(abs(sluice_postgres_clock_difference_seconds))`},
}

// moves is the number of a queue's moves of one kind per second.
func moves(event string) string {
	return `sum by (queue) (rate(sluice_moves_total{event="` + event + `"}[$window]))`
}

// limitedQueues excludes queues in which jobs wait on purpose.
const limitedQueues = ` unless on (queue) sluice_rate_limit unless on (queue) sluice_in_flight_limit unless on (queue) sluice_tenant_concurrency`

// scopes narrow the queues to those that a rule covers.
var scopes = map[alert.Scope]string{
	alert.CoversWorkers: " unless on (queue) " + byEngine, alert.CoversEngines: " and on (queue) " + byEngine,
	alert.CoversUnlimited:        limitedQueues,
	alert.CoversUnlimitedWorkers: limitedQueues + " unless on (queue) " + byEngine,
	alert.CoversUnlimitedEngines: limitedQueues + " and on (queue) " + byEngine,
	alert.CoversRated:            " and on (queue) sluice_rate_limit",
}

// Condition returns a rule's condition for Prometheus. Except lists the queues that have their own
// rule of the same name.
func Condition(r alert.Rule, except []string) (string, error) {
	e, known := expressions[r.Metric]
	if !known {
		return "", fmt.Errorf("metric %q: %w", r.Metric, sluice.ErrNotFound)
	}
	threshold := number(r.Threshold)
	condition := e.value + " " + r.Op + " " + threshold
	if r.RateShare > 0 {
		// In queues with a rate, a share of the rate may be the lower threshold.
		condition = "(" + condition + ") or (" + e.value + " " + r.Op + " on (queue) " + number(r.RateShare) + " * " + rateLimit + ")"
		condition = "(" + condition + ")"
	}
	condition += e.only
	if r.Queue == "" {
		condition += scopes[r.Covers]
	}
	text := strings.NewReplacer("$window", promDuration(max(r.Window, time.Minute)), "$seconds", number(r.Window.Seconds())).Replace(condition)
	metric, err := alert.MetricNamed(r.Metric)
	except = quoted(except)
	if err == nil && metric.OfQueue {
		except = append(except, internalQueues)
	}
	return narrowed(text, r.Queue, except), nil
}

// Value returns a metric's expression alone, for a chart.
func Value(metric string, window time.Duration) string {
	return strings.NewReplacer("$window", promDuration(max(window, time.Minute))).Replace(expressions[metric].value)
}

// Differs describes how the expression of a metric differs from upkeep's value. Empty: no
// difference.
func Differs(metric string) string { return expressions[metric].differs }

// internalQueues matches the queues that no rule covers, within a string.
const internalQueues = `sluice\\..*`

// narrowed restricts an expression to one queue, or to all queues but those that match except.
func narrowed(expr, queue string, except []string) string {
	switch {
	case queue != "":
		return "(" + expr + `) and on (queue) sluice_queue_paused{queue="` + queue + `"}`
	case len(except) > 0:
		return "(" + expr + `) unless on (queue) sluice_queue_paused{queue=~"` + strings.Join(except, "|") + `"}`
	}
	return expr
}

// quoted quotes names for a regular expression within a string.
func quoted(names []string) []string {
	out := make([]string, len(names))
	for i, name := range names {
		out[i] = strings.ReplaceAll(name, ".", `\\.`)
	}
	return out
}

func number(value float64) string { return strconv.FormatFloat(value, 'f', -1, 64) }

// promDuration formats a duration as Prometheus does.
func promDuration(d time.Duration) string {
	if d%time.Second != 0 {
		return strconv.FormatInt(d.Milliseconds(), 10) + "ms"
	}
	return strconv.FormatInt(int64(d/time.Second), 10) + "s"
}

// ruleFile, group and rule are the parts of a rule file of Prometheus.
type ruleFile struct {
	Groups []group `yaml:"groups"`
}

type group struct {
	Name  string `yaml:"name"`
	Rules []rule `yaml:"rules"`
}

type rule struct {
	Alert       string            `yaml:"alert"`
	Expr        string            `yaml:"expr"`
	For         string            `yaml:"for,omitempty"`
	Labels      map[string]string `yaml:"labels"`
	Annotations map[string]string `yaml:"annotations"`
}

// PrometheusRules writes the rules in effect as a rule file, without disabled ones.
func PrometheusRules(rules []alert.Rule) ([]byte, error) {
	own := make(map[string][]string)
	for _, r := range rules {
		if r.Queue != "" {
			own[r.Name] = append(own[r.Name], r.Queue)
		}
	}
	out := group{Name: "sluice"}
	for _, r := range rules {
		if r.Disabled {
			continue
		}
		var except []string
		if r.Queue == "" {
			except = own[r.Name]
		}
		condition, err := Condition(r, except)
		if err != nil {
			return nil, fmt.Errorf("rule %q: %w", r.Object(), err)
		}
		out.Rules = append(out.Rules, promRule(r, condition))
	}
	var text bytes.Buffer
	text.WriteString("# Made by `sluice export prometheus-rules` from the rules of alerts; change these, and make it anew.\n")
	encoder := yaml.NewEncoder(&text)
	encoder.SetIndent(2)
	if err := encoder.Encode(ruleFile{[]group{out}}); err != nil {
		return nil, err
	}
	return text.Bytes(), encoder.Close()
}

func promRule(r alert.Rule, condition string) rule {
	out := rule{
		Alert: AlertName(r.Name), Expr: condition, Labels: map[string]string{"severity": string(r.Severity), "rule": r.Name},
		Annotations: map[string]string{"summary": r.Summary, "runbook": r.RunbookIn(r.Queue)},
	}
	if r.For > 0 {
		out.For = promDuration(r.For)
	}
	if metric, err := alert.MetricNamed(r.Metric); err == nil {
		subject := "the store"
		if metric.OfQueue {
			subject = "queue {{ $labels.queue }}"
			out.Annotations["runbook"] = strings.ReplaceAll(r.Runbook, "QUEUE", "{{ $labels.queue }}")
		}
		out.Annotations["description"] = subject + ": " + r.Summary + " (" + r.Metric + " {{ $value | humanize }} " + r.Op + " " + number(r.Threshold) + ")"
	}
	return out
}

// AlertName returns the name of a rule in Prometheus: dead-letters is SluiceDeadLetters.
func AlertName(rule string) string {
	name := "Sluice"
	for _, word := range strings.FieldsFunc(rule, func(r rune) bool { return strings.ContainsRune("-._:", r) }) {
		name += strings.ToUpper(word[:1]) + word[1:]
	}
	return name
}
