package metric

import (
	"fmt"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
)

// The types of metrics.
const (
	TypeCounter   = "counter"
	TypeGauge     = "gauge"
	TypeHistogram = "histogram"
)

// Description describes a metric. The metrics table of the docs is generated from it.
type Description struct {
	// Name, Type and Labels are as in Prometheus.
	Name   string
	Type   string
	Labels []string
	// Help is one sentence for people.
	Help string
	// Source names the requirements of the source designs that ask for the metric.
	Source string

	buckets []float64
}

// The bounds of histograms. Waits may last days; a call of the store should take less than a tenth of a second.
var (
	spans    = []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600, 4 * 3600, 24 * 3600}
	calls    = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}
	attempts = []float64{0, 1, 2, 3, 4, 5, 8, 13, 21}
	batches  = []float64{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000}
)

// counted are the metrics of observers: the work of this process, counted and timed.
var counted = []Description{
	{"sluice_moves_total", TypeCounter, []string{"queue", "event", "reason"}, "Moves of jobs that this process made, by event and, where there is one, reason.", "A-75, A-77, A-78, B-25, D-14, D-57", nil},
	{"sluice_wait_seconds", TypeHistogram, []string{"queue"}, "How long jobs waited from when they were due to each claim.", "B-28, C-65", spans},
	{"sluice_run_seconds", TypeHistogram, []string{"queue"}, "How long jobs were held, from claim to whatever ended it.", "C-65, C-68", spans},
	{"sluice_total_seconds", TypeHistogram, []string{"queue"}, "How long jobs took from when they were due to their end.", "C-65", spans},
	{"sluice_attempts", TypeHistogram, []string{"queue"}, "Failed attempts of each job that ended.", "B-28", attempts},
	{"sluice_batch_jobs", TypeHistogram, []string{"queue"}, "Jobs of each claim that got some.", "A-73, D-57", batches},
	{"sluice_cycle_seconds", TypeHistogram, []string{"queue"}, "How long each cycle of a dispatcher or forwarder took that had something to do.", "A-74, D-14, D-57", spans},
	{"sluice_step_seconds", TypeHistogram, []string{"step"}, "How long steps took: handle (a handler), cycle (a dispatcher), forward, upkeep.", "A-74, D-57", spans},
	{"sluice_step_errors_total", TypeCounter, []string{"step"}, "Steps that ended with an error; of handle, attempts that failed.", "A-77, B-27", nil},
	{"sluice_claims_limited_total", TypeCounter, []string{"queue", "by"}, "Claims that a limit held back although jobs were due: by rate, or by in_flight, which is the queue's limit or a tenant's concurrency.", "A-76, B-26", nil},
	{"sluice_duplicates_total", TypeCounter, []string{"queue"}, "Enqueues that found their key or id taken.", "", nil},
	{"sluice_lease_renewals_total", TypeCounter, []string{"queue"}, "Claims whose lease was renewed.", "C-65", nil},
	{"sluice_leases_lost_total", TypeCounter, []string{"queue"}, "Claims that their holder found lost when it renewed them.", "C-65, C-67", nil},
	{"sluice_store_call_seconds", TypeHistogram, []string{"call"}, "How long calls of the store took.", "", calls},
	{"sluice_store_errors_total", TypeCounter, []string{"call", "kind"}, "Calls of the store, or jobs in them, that failed: unavailable, timeout, lost, conflict, invalid, refused (not found, not allowed or a duplicate), cancelled (by the caller), other.", "A-79", nil},
	{"sluice_engine_call_seconds", TypeHistogram, []string{"engine", "call"}, "How long calls of an engine took.", "", calls},
	{"sluice_engine_errors_total", TypeCounter, []string{"engine", "call", "kind"}, "Calls of an engine, or runs in them, that failed; the kinds are those of the store, and busy.", "B-27", nil},
	{"sluice_engine_start_failures_total", TypeCounter, []string{"queue"}, "Runs that an engine did not start when it was asked to.", "B-27, D-14, D-57", nil},
	{"sluice_build_info", TypeGauge, []string{"version"}, "1, with the version of this program.", "", nil},
}

// looked are the metrics of the gauges: the state of the store.
var looked = []Description{
	{"sluice_queues", TypeGauge, nil, "Stored queues. Of those beyond Options.MaxQueues nothing else is told.", "", nil},
	{"sluice_queues_used", TypeGauge, nil, "Stored queues, of those that the store takes, 0 to 1; more where the bound was lowered since.", "", nil},
	{"sluice_jobs", TypeGauge, []string{"queue", "state"}, "Jobs by state: ready, scheduled, blocked, claimed, dispatched, uncertain, dead. Counting stops at 10,000: from there on ready, scheduled and blocked are as upkeep counted them last, and the others are so many or more.", "C-65, D-58", nil},
	{"sluice_waiting_used", TypeGauge, []string{"queue"}, "Waiting jobs, of those that the queue's max_waiting allows, 0 to 1; absent without a limit.", "", nil},
	{"sluice_refused_total", TypeCounter, []string{"queue"}, "Jobs that this process did not enqueue because the queue or the tenant was full.", "", nil},
	{"sluice_shed_total", TypeCounter, []string{"queue"}, "Waiting jobs that this process cancelled to make room in a full queue.", "", nil},
	{"sluice_oldest_due_seconds", TypeGauge, []string{"queue"}, "How long ago the job was due that is ready and waits longest; 0: none is ready.", "C-65", nil},
	{"sluice_rate_limit", TypeGauge, []string{"queue"}, "Jobs that the queue's rate lets start in a second; absent without a rate.", "", nil},
	{"sluice_rate_tokens", TypeGauge, []string{"queue"}, "Tokens that the queue's rate has; absent without a rate.", "", nil},
	{"sluice_in_flight", TypeGauge, []string{"queue"}, "Jobs that are claimed or dispatched; from 10,000 on, as upkeep counted them last.", "C-65", nil},
	{"sluice_in_flight_limit", TypeGauge, []string{"queue"}, "Jobs that may be in flight; absent without a limit.", "", nil},
	{"sluice_limit_in_flight", TypeGauge, []string{"limit"}, "Claimed and dispatched jobs of all queues that share the limit.", "", nil},
	{"sluice_limit_concurrency", TypeGauge, []string{"limit"}, "Jobs of these queues that may be in flight; absent without a concurrency.", "", nil},
	{"sluice_limit_closed", TypeGauge, []string{"limit"}, "1 while the limit is closed.", "", nil},
	{"sluice_tenants_at_limit", TypeGauge, []string{"queue"}, "Tenants that have as many jobs in flight as they may, as claims last found them.", "A-76, B-26", nil},
	{"sluice_tenant_in_flight", TypeGauge, []string{"queue", "tenant"}, "Jobs in flight of the tenants that have the most of them.", "A-76, B-26", nil},
	{"sluice_tenant_concurrency", TypeGauge, []string{"queue", "tenant"}, "Jobs that these tenants may have in flight; absent without a concurrency.", "A-76", nil},
	{"sluice_blocked_jobs", TypeGauge, []string{"queue", "reason"}, "Jobs that cannot be claimed now: order (of their order key) and after (another job) are those in state blocked; paused, rate and in_flight are the ready ones that the queue holds back.", "A-76", nil},
	{"sluice_queue_paused", TypeGauge, []string{"queue"}, "1 while the queue is paused.", "", nil},
	{"sluice_queue_settings_wrong", TypeGauge, []string{"queue"}, "1 while a setting that plain SQL stored breaks a rule, and does not count.", "", nil},
	{"sluice_queue_holders", TypeGauge, []string{"queue", "role"}, "Workers, dispatchers and forwarders that serve the queue and were seen in the last 30 s.", "", nil},
	{"sluice_queue_holders_not_counted", TypeGauge, []string{"queue", "role"}, "Those of them that do not count what they do: where it is above 0, `sluice stats` says `not counted`.", "", nil},
	{"sluice_breaker_open", TypeGauge, []string{"queue"}, "Dispatchers whose breaker is open: the engine of the queue cannot be used.", "B-27", nil},
	{"sluice_holders", TypeGauge, []string{"role"}, "Processes that were seen in the last 30 s.", "", nil},
	{"sluice_holders_with_conditions", TypeGauge, []string{"role"}, "Those of them that are kept from a part of their work and say so.", "B-27", nil},
	{"sluice_holder_slots", TypeGauge, []string{"role"}, "How many jobs they may have at once.", "", nil},
	{"sluice_holder_busy", TypeGauge, []string{"role"}, "How many jobs they have.", "C-65", nil},
	{"sluice_alerts", TypeGauge, []string{"state", "severity"}, "Alerts of the product's own rules that are pending, firing or silenced.", "C-69, D-59", nil},
	{"sluice_health_findings", TypeGauge, []string{"check", "severity"}, "1 for each finding of `sluice doctor` about the store that is not well.", "", nil},
	{"sluice_gauges_age_seconds", TypeGauge, []string{"source"}, "How long ago the gauges of a source were read. Those that are too old are not told.", "", nil},
	{"sluice_gauges_read_seconds", TypeGauge, []string{"source"}, "How long the last reading of a source took.", "", nil},
	{"sluice_gauges_errors_total", TypeCounter, []string{"source"}, "Readings of a source that failed.", "", nil},
}

// healthMetrics are the figures of sluice.Health, by the kind of the store. Their metrics are sluice_KIND_NAME.
var healthMetrics = []struct{ kind, name, label, help string }{
	{"postgres", "oldest_transaction_seconds", "", "How long the oldest transaction of the database has been open."},
	{"postgres", "prepared_transaction_seconds", "", "How long the oldest prepared transaction has waited for its end."},
	{"postgres", "standby_xmin_age", "", "How many transactions ago standbys hold back vacuum."},
	{"postgres", "slot_wal_bytes", "slot", "The log that a replication slot keeps."},
	{"postgres", "live_rows", "table", "Rows of a table, by the server's estimate."},
	{"postgres", "dead_rows", "table", "Dead rows of a table that are not removed yet, by the server's estimate."},
	{"postgres", "table_bytes", "table", "Size of a table with its indexes."},
	{"postgres", "vacuum_age_seconds", "table", "How long ago a table was vacuumed."},
	{"postgres", "analyze_age_seconds", "table", "How long ago a table was analyzed."},
	{"postgres", "index_bytes", "index", "Size of an index."},
	{"postgres", "index_bloat_bytes", "index", "How much of an index is empty, by estimate."},
	{"postgres", "connections", "", "Connections to the server."},
	{"postgres", "connection_limit", "", "Connections that the server allows."},
	{"postgres", "connections_used", "", "The largest share of a limit of connections that is used: the server's, the database's or the role's."},
	{"postgres", "clock_difference_seconds", "", "How far this machine's clock and the server's are apart."},
	{"postgres", "schema_version", "", "Step of the schema that the database is at."},
	{"postgres", "notifications", "", "1 where processes wake each other, 0 where they only poll."},
	{"postgres", "notification_queue_used", "", "How full the server's queue of notifications is, of 1."},
	{"postgres", "wraparound_age", "", "Age of the database's oldest row, in transactions."},
	{"postgres", "pool_connections", "", "Connections of this process."},
	{"postgres", "pool_in_use", "", "Connections of this process that are in use."},
	{"postgres", "pool_limit", "", "Connections that this process may have."},
	{"postgres", "pool_acquires_total", "", "How often this process took a connection."},
	{"postgres", "pool_waits_total", "", "How often it had to wait for one."},
	{"postgres", "pool_wait_seconds_total", "", "How long it has waited for connections."},
	{"postgres", "pool_cancelled_total", "", "How often it gave up waiting for one."},
	{"sqlite", "writer_queue", "", "Writes of this process that wait for the writer."},
	{"sqlite", "writer_wait_seconds", "", "How long the last look at the health waited for the write lock."},
	{"sqlite", "busy_waits_total", "", "How often this process waited for the write lock of others."},
	{"sqlite", "busy_wait_seconds_total", "", "How long it has waited for the write lock of others."},
	{"sqlite", "busy_share", "", "Share of its time that this process has waited for the write lock of others."},
	{"sqlite", "wal_bytes", "", "Size of the write-ahead log."},
	{"sqlite", "checkpoints_total", "", "How often this process brought the write-ahead log into the file."},
	{"sqlite", "checkpoint_age_seconds", "", "Since when nothing was brought from the write-ahead log into the file, though there was something."},
	{"sqlite", "free_pages", "", "Free pages of the file."},
	{"sqlite", "file_bytes", "", "Size of the file."},
	{"sqlite", "free_bytes", "", "Size of its free pages."},
	{"sqlite", "disk_free_bytes", "", "Free space of the disk."},
	{"sqlite", "schema_version", "", "Step of the schema that the file is at."},
}

// Names lists every metric, in the order of the documentation.
func Names() []Description {
	all := slices.Concat(counted, looked)
	for _, f := range healthMetrics {
		d := Description{Name: "sluice_" + f.kind + "_" + f.name, Type: TypeGauge, Help: f.help}
		if f.label != "" {
			d.Labels = []string{f.label}
		}
		if isTotal(f.name) {
			d.Type = TypeCounter
		}
		all = append(all, d)
	}
	return all
}

func isTotal(name string) bool {
	const total = "_total"
	return len(name) > len(total) && name[len(name)-len(total):] == total
}

// described finds a metric that must exist.
func described(name string) Description {
	for _, d := range Names() {
		if d.Name == name {
			return d
		}
	}
	panic(fmt.Sprintf("metric %q is not described", name))
}

func counterOf(name string) *prometheus.CounterVec {
	d := described(name)
	return prometheus.NewCounterVec(prometheus.CounterOpts{Name: d.Name, Help: d.Help}, d.Labels)
}

func histogramOf(name string) *prometheus.HistogramVec {
	d := described(name)
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: d.Name, Help: d.Help, Buckets: d.buckets}, d.Labels)
}

func gaugeOf(name string) *prometheus.GaugeVec {
	d := described(name)
	return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: d.Name, Help: d.Help}, d.Labels)
}
