package export

import (
	"fmt"
	"strings"

	"github.com/sluice-queue/sluice/alert"
)

// question is a row of the dashboard: a question of the person who reads it.
type question struct {
	asks   string
	charts []chart
}

// chart answers a part of a question.
type chart struct {
	title string
	unit  string
	lines []line
	// metrics are the metrics of alert rules that the chart shows. The threshold of the first is
	// drawn; the description names the rules of all.
	metrics []string
}

// line is a line of a chart.
type line struct{ expr, legend string }

// questions are the rows of the dashboard, the most frequent first.
var questions = []question{
	{"Is work flowing?", []chart{
		{"Alerts that fire", "short", []line{{`sum by (severity) (max by (severity) (sluice_alerts{state="firing"}))`, "{{severity}}"}}, nil},
		{"Jobs that end", "ops", []line{
			{ended("complete"), "{{queue}} completed"},
			{ended("bury"), "{{queue}} dead"},
		}, []string{alert.MetricStalled}},
		{"Claims against the rate", "ops", []line{
			{ended("claim"), "{{queue}} claimed"},
			{`max by (queue) (sluice_rate_limit{queue=~"$queue"})`, "{{queue}} rate"},
		}, []string{alert.MetricPace}},
		{"Jobs by state", "short", []line{{`sum by (state) (max by (queue, state) (sluice_jobs{queue=~"$queue"}))`, "{{state}}"}}, nil},
		{"Who works", "short", []line{
			{`max by (role) (sluice_holders)`, "{{role}}"},
			{`max by (role) (sluice_holders_with_conditions) > 0`, "{{role}} in trouble"},
		}, []string{alert.MetricConditions, alert.MetricUpkeepMissing, alert.MetricUnserved}},
		{"Slots that are busy", "percentunit", []line{{`max by (role) (sluice_holder_busy) / max by (role) (sluice_holder_slots)`, "{{role}}"}}, nil},
	}},
	{"Is it late?", []chart{
		{"Since when the oldest job is ready", "s", []line{{`max by (queue) (sluice_oldest_due_seconds{queue=~"$queue"})`, "{{queue}}"}}, []string{alert.MetricOldestAge}},
		{"Jobs that are ready", "short", []line{{`max by (queue) (sluice_jobs{queue=~"$queue",state="ready"})`, "{{queue}}"}}, []string{alert.MetricReady, alert.MetricDrainTime}},
		{"Wait from due to claim", "s", quantiles("sluice_wait_seconds"), nil},
		{"From due to end", "s", quantiles("sluice_total_seconds"), nil},
	}},
	{"What fails?", []chart{
		{"Jobs that completed, of those that ended", "percentunit", []line{{ended("complete") + ` / sum by (queue) (rate(sluice_moves_total{queue=~"$queue",event=~"complete|bury"}[$__rate_interval]))`, "{{queue}}"}}, []string{alert.MetricSuccessRate}},
		{"Dead letters, and jobs whose outcome nobody knows", "short", []line{
			{`max by (queue) (sluice_jobs{queue=~"$queue",state="dead"})`, "{{queue}} dead"},
			{`max by (queue) (sluice_jobs{queue=~"$queue",state="uncertain"}) > 0`, "{{queue}} uncertain"},
		}, []string{alert.MetricDead, alert.MetricUncertain}},
		{"Why jobs die, and are tried again", "ops", []line{
			{`sum by (event, reason) (rate(sluice_moves_total{queue=~"$queue",event=~"bury|retry|recover"}[$__rate_interval])) > 0`, "{{event}} {{reason}}"},
		}, []string{alert.MetricDeadRate, alert.MetricRecoveredRate, alert.MetricLeaseExpiry}},
		{"How long runs take", "s", quantiles("sluice_run_seconds"), []string{alert.MetricRunP95}},
		{"Starts that an engine refused, and open breakers", "short", []line{
			{`sum by (queue) (rate(sluice_engine_start_failures_total{queue=~"$queue"}[$__rate_interval])) > 0`, "{{queue}} starts per second"},
			{`max by (queue) (sluice_breaker_open{queue=~"$queue"}) > 0`, "{{queue}} breaker"},
		}, []string{alert.MetricStartFailures, alert.MetricBreakerOpen}},
	}},
	{"Who is held back?", []chart{
		{"Jobs that may not start, by what holds them", "short", []line{{`sum by (reason) (max by (queue, reason) (sluice_blocked_jobs{queue=~"$queue"}))`, "{{reason}}"}}, []string{alert.MetricPausedReady}},
		{"In flight against the limit", "short", []line{
			{`max by (queue) (sluice_in_flight{queue=~"$queue"})`, "{{queue}}"},
			{`max by (queue) (sluice_in_flight_limit{queue=~"$queue"})`, "{{queue}} limit"},
		}, nil},
		{"Tenants with the most jobs in flight", "short", []line{
			{`topk(10, max by (queue, tenant) (sluice_tenant_in_flight{queue=~"$queue"}))`, "{{tenant}} in {{queue}}"},
			{`max by (queue) (sluice_tenants_at_limit{queue=~"$queue"})`, "{{queue}}: tenants at their concurrency"},
		}, nil},
		{"Claims that a limit held back", "ops", []line{{`sum by (queue, by) (rate(sluice_claims_limited_total{queue=~"$queue"}[$__rate_interval]))`, "{{queue}} {{by}}"}}, nil},
	}},
	{"Is the store well?", []chart{
		{"Calls of the store, p95", "s", []line{{`histogram_quantile(0.95, sum by (call, le) (rate(sluice_store_call_seconds_bucket[$__rate_interval])))`, "{{call}}"}}, nil},
		{"Calls that failed", "ops", []line{
			{`sum by (call, kind) (rate(sluice_store_errors_total[$__rate_interval])) > 0`, "{{call}}: {{kind}}"},
			{`sum by (engine, kind) (rate(sluice_engine_errors_total[$__rate_interval])) > 0`, "engine {{engine}}: {{kind}}"},
		}, nil},
		{"What `sluice doctor` finds", "short", []line{{`max by (check, severity) (sluice_health_findings)`, "{{severity}}: {{check}}"}}, []string{alert.MetricSettingsWrong, alert.MetricClock}},
		{"How long the oldest transaction is open (PostgreSQL)", "s", []line{{`max(sluice_postgres_oldest_transaction_seconds)`, "oldest"}}, []string{alert.MetricOldestTx}},
		{"Dead rows (PostgreSQL)", "short", []line{{`max by (table) (sluice_postgres_dead_rows)`, "{{table}}"}}, []string{alert.MetricDeadRows}},
		{"What is used up: connections, queues, waiting jobs of a queue", "percentunit", []line{
			{`max(sluice_postgres_connections_used)`, "connections"},
			{`max(sluice_queues_used)`, "queues"},
			{`max by (queue) (sluice_waiting_used)`, "jobs in {{queue}}"},
		}, []string{alert.MetricConnections, alert.MetricQueues, alert.MetricWaiting}},
		{"The write-ahead log and free space (SQLite)", "bytes", []line{
			{`max(sluice_sqlite_wal_bytes)`, "log"},
			{`min(sluice_sqlite_disk_free_bytes)`, "free on the disk"},
		}, []string{alert.MetricWAL}},
	}},
}

// ended counts a kind of move by queue.
func ended(event string) string {
	return `sum by (queue) (rate(sluice_moves_total{queue=~"$queue",event="` + event + `"}[$__rate_interval]))`
}

// quantiles returns the lines of a histogram.
func quantiles(histogram string) []line {
	var out []line
	for _, q := range []struct{ share, legend string }{{"0.5", "p50"}, {"0.95", "p95"}, {"0.99", "p99"}} {
		out = append(out, line{`histogram_quantile(` + q.share + `, sum by (le) (rate(` + histogram + `_bucket{queue=~"$queue"}[$__rate_interval])))`, q.legend})
	}
	return out
}

// judges returns the rules on the metrics of a chart, by metric, without the rules of single
// queues.
func (c chart) judges(rules []alert.Rule) []alert.Rule {
	var out []alert.Rule
	for _, metric := range c.metrics {
		for _, r := range rules {
			if r.Metric == metric && !r.Disabled && r.Queue == "" {
				out = append(out, r)
			}
		}
	}
	return out
}

// describe lists the alerts that fire by the chart, and the action for each.
func describe(rules []alert.Rule) string {
	var texts []string
	for _, r := range rules {
		texts = append(texts, fmt.Sprintf("**%s** (%s): %s (%s %s %s).\n\n%s", AlertName(r.Name), r.Severity, r.Summary, r.Metric, r.Op, number(r.Threshold), r.Runbook))
	}
	return strings.Join(texts, "\n\n")
}

// bound returns the rule whose threshold is drawn: the only rule of the first metric.
func (c chart) bound(rules []alert.Rule) *alert.Rule {
	if len(rules) == 0 || rules[0].Metric != c.metrics[0] || len(rules) > 1 && rules[1].Metric == rules[0].Metric || !c.measures(rules[0]) {
		return nil
	}
	return &rules[0]
}

// measures reports whether a rule compares the values of a chart with its threshold.
func (c chart) measures(r alert.Rule) bool {
	metric, err := alert.MetricNamed(r.Metric)
	return err == nil && units[metric.Unit] == c.unit && r.Threshold > 0
}
