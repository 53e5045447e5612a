package metric

// SourceName maps a metric named in a source design to a Prometheus query.
type SourceName struct {
	// Source is the number of the requirement, Name the metric's name in the design.
	Source, Name string
	// Query is the query for the metric.
	Query string
	// Note describes the difference; empty: none.
	Note string
}

const (
	lastHour = "[1h]"
	// ended are the jobs that completed or were buried, by queue.
	ended = `sum by (queue) (rate(sluice_moves_total{event=~"complete|bury"}` + lastHour + `))`
	// done are the jobs that completed.
	done = `sum by (queue) (rate(sluice_moves_total{event="complete"}` + lastHour + `))`
)

// SourceNames maps every metric that the source designs name.
func SourceNames() []SourceName {
	return []SourceName{
		{"A-73", "queue_processing_batch_size", `sluice_batch_jobs_sum / sluice_batch_jobs_count`, "a histogram: its quantiles are there too"},
		{"A-74", "queue_processing_duration_seconds", `sluice_cycle_seconds_sum / sluice_cycle_seconds_count`, "of dispatchers and forwarders; workers have no batches"},
		{"A-75", "queue_items_dispatched_total", `sum by (queue) (sluice_moves_total{event="dispatch"})`, ""},
		{"A-76", "queue_items_at_capacity_total", `sum by (queue) (sluice_claims_limited_total{by="in_flight"})`, "jobs over a concurrency are not claimed, so none is released for it: these are the claims that held some back"},
		{"A-77", "queue_items_failed_total", `sum by (queue, reason) (sluice_moves_total{event="bury"})`, ""},
		{"A-78", "queue_stale_recovery_count", `sum by (queue) (sluice_moves_total{event="recover"})`, ""},
		{"A-79", "shedlock_acquisition_failures", `rate(sluice_store_call_seconds_sum{call="claim"}[5m]) / rate(sluice_store_call_seconds_count{call="claim"}[5m])`, "there is no such lock, and nobody waits for one: claims that meet take longer"},
		{"B-25", "queue item processing rate", `sum by (queue) (rate(sluice_moves_total{event=~"complete|dispatch"}[5m]))`, "of a queue with an engine, both the start and the end of a job"},
		{"B-26", "items at capacity (workspaces hitting limits)", `max by (queue) (sluice_tenants_at_limit)`, ""},
		{"B-27", "dispatch failures (engine connectivity or config)", `sum by (queue) (sluice_engine_start_failures_total)`, "sluice_engine_errors_total has them by kind"},
		{"B-28", "retry count distribution", `sum by (queue, le) (sluice_attempts_bucket)`, ""},
		{"C-65", "queue depth", `max by (queue) (sluice_jobs{state="ready"})`, ""},
		{"C-65", "queue age (oldest)", `max by (queue) (sluice_oldest_due_seconds)`, "since it was due"},
		{"C-65", "in-progress count", `max by (queue) (sluice_in_flight)`, ""},
		{"C-65", "processing rate (jobs/min)", `60 * ` + ended, ""},
		{"C-65, C-66", "success rate", `(` + done + ` / ` + ended + `) >= 0 or max by (queue) (sluice_queue_paused >= bool 0)`, "1 where nothing ended"},
		{"C-65", "dead-letter count", `max by (queue) (sluice_jobs{state="dead"})`, ""},
		{"C-65, C-68", "latency p50, p95, p99", `histogram_quantile(0.95, sum by (queue, le) (rate(sluice_run_seconds_bucket` + lastHour + `)))`, "between the bounds of the histogram"},
		{"C-65, C-67", "lease expiry rate", `60 * sum by (queue) (rate(sluice_moves_total{reason=~"lease_expired|recoveries_spent"}` + lastHour + `))`, "per minute"},
		{"D-14, D-57", "dispatch.batch.claimed", `sum by (queue) (sluice_batch_jobs_sum)`, ""},
		{"D-14, D-57", "dispatch.workflow.started", `sum by (queue) (sluice_moves_total{event="dispatch"})`, ""},
		{"D-14, D-57", "dispatch.workflow.start.failures", `sum by (queue) (sluice_engine_start_failures_total)`, ""},
		{"D-14, D-57", "dispatch.stale.recovered", `sum by (queue) (sluice_moves_total{event="recover"})`, ""},
		{"D-14, D-57", "dispatch.dead.letter", `sum by (queue) (sluice_moves_total{event="bury"})`, ""},
		{"D-14, D-57", "dispatch.cycle.duration", `sluice_cycle_seconds_sum / sluice_cycle_seconds_count`, "a histogram"},
		{"D-58", `dispatch.queue.depth{status="READY"}`, `max by (queue) (sluice_jobs{state="ready"})`, ""},
	}
}
