package alert

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sluice-queue/sluice"
)

// Metric is a figure that rules evaluate. No metric counts all jobs: a count stops at the highest threshold.
type Metric struct {
	// Name is the name in rules.
	Name string
	// Unit is the unit of thresholds: jobs, seconds, bytes, rows, holders, queues, share (0 to 1) or per second.
	Unit string
	// OfQueue says that each queue has the figure. False: the store has it.
	OfQueue bool
	// Windowed says that the figure is over the rule's Window.
	Windowed bool
	// Meaning is one sentence for people.
	Meaning string
}

// The metrics of rules.
const (
	MetricReady         = "ready"
	MetricOldestAge     = "oldest_age"
	MetricDrainTime     = "drain_time"
	MetricPace          = "pace"
	MetricStalled       = "stalled"
	MetricUnserved      = "unserved"
	MetricPausedReady   = "paused_ready"
	MetricDead          = "dead"
	MetricUncertain     = "uncertain"
	MetricSuccessRate   = "success_rate"
	MetricDeadRate      = "dead_rate"
	MetricRecoveredRate = "recovered_rate"
	MetricStartFailures = "start_failure_rate"
	MetricLeaseExpiry   = "lease_expiry_rate"
	MetricRunP95        = "run_p95"
	MetricBreakerOpen   = "breaker_open"
	MetricSettingsWrong = "settings_wrong"
	MetricWaiting       = "waiting_used"
	MetricUpkeepMissing = "upkeep_missing"
	MetricConditions    = "holders_with_conditions"
	MetricQueues        = "queues_used"
	MetricOldestTx      = "oldest_transaction"
	MetricDeadRows      = "dead_rows"
	MetricWAL           = "wal_bytes"
	MetricConnections   = "connections_used"
	MetricClock         = "clock_difference"
)

// metrics lists every metric.
var metrics = [...]Metric{
	{MetricReady, "jobs", true, false, "Jobs that are due and may be claimed; none in a paused queue. Counting stops just above the highest threshold."},
	{MetricOldestAge, "seconds", true, false, "How long the job that has been ready longest has been due; 0 in a paused queue."},
	{MetricDrainTime, "seconds", true, false, "How long the queue's rate takes for the jobs that are ready now, as upkeep counted them last; 0 in a paused queue."},
	{MetricPace, "share", true, true, "How much of what the queue's rate allows was claimed, while jobs were ready; no figure where none are, or the queue is paused."},
	{MetricStalled, "jobs", true, true, "Jobs that are ready while none is in flight and none was claimed in the window, although somebody serves the queue; 0 in a paused queue."},
	{MetricUnserved, "jobs", true, false, "Jobs that are ready while no worker or dispatcher that was seen in the last 30 s serves the queue, and none is claimed; 0 in a paused queue."},
	{MetricPausedReady, "jobs", true, false, "Jobs that are ready in a queue that is paused and does not open by itself."},
	{MetricDead, "jobs", true, false, "Dead letters that wait for a person. Counting stops just above the highest threshold."},
	{MetricUncertain, "jobs", true, false, "Jobs of which nobody knows whether their run did the work; a person must find out."},
	{MetricSuccessRate, "share", true, true, "Completed jobs, of those that completed or died in the window; 1 where none ended."},
	{MetricDeadRate, "per second", true, true, "Jobs that became dead letters, per second of the window."},
	{MetricRecoveredRate, "per second", true, true, "Jobs that were recovered because their lease ran out, per second of the window."},
	{MetricStartFailures, "per second", true, true, "Runs that an engine did not start, per second of the window."},
	{MetricLeaseExpiry, "share", true, true, "Leases that ran out, of the claims in the window, at most 1; 0 where none ran out."},
	{MetricRunP95, "seconds", true, true, "Of the jobs that completed in the window, 95 of 100 ran no longer than this, from claim to end; no figure where none did."},
	{MetricBreakerOpen, "holders", true, false, "Dispatchers whose breaker is open for the queue: its engine cannot be used."},
	{MetricSettingsWrong, "queues", true, false, "1 where the queue's settings were changed by plain SQL to something that breaks a rule and does not count."},
	{MetricWaiting, "share", true, false, "Waiting jobs, of those that the queue's `max_waiting` allows; 0 without that limit."},
	{MetricUpkeepMissing, "seconds", false, false, "How long nobody did upkeep before it was taken up again; this is known only afterwards. While it lasts, Prometheus tells."},
	{MetricConditions, "holders", false, false, "Processes that are kept from a part of their work and say so."},
	{MetricQueues, "share", false, false, "Stored queues, of those that the store takes (`sluice queues policy`)."},
	{MetricOldestTx, "seconds", false, false, "How long the oldest transaction of the database has been open (PostgreSQL)."},
	{MetricDeadRows, "rows", false, false, "Rows of one of our tables that are dead and not yet removed, where there are most (PostgreSQL)."},
	{MetricWAL, "bytes", false, false, "The size of the write-ahead log beside the file (SQLite)."},
	{MetricConnections, "share", false, false, "Connections in use, of those that the server allows (PostgreSQL)."},
	{MetricClock, "seconds", false, false, "How far the store's clock and this machine's are apart."},
}

// NeedsStatistics reports whether the figure comes from the statistics that processes keep. If no process counts,
// the figure is unknown and its alerts stay as they are.
func (m Metric) NeedsStatistics() bool { return m.Windowed }

// Metrics lists the metrics of rules.
func Metrics() []Metric { return slices.Clone(metrics[:]) }

// MetricNamed finds a metric by its name. An unknown name is an ErrNotFound that lists the names.
func MetricNamed(name string) (Metric, error) {
	var names []string
	for _, m := range metrics {
		if m.Name == name {
			return m, nil
		}
		names = append(names, m.Name)
	}
	return Metric{}, fmt.Errorf("metric %.60q: %w; there are: %s", name, sluice.ErrNotFound, strings.Join(names, ", "))
}
