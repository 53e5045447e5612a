package alert

import (
	"slices"
	"strings"
	"time"

	"github.com/sluice-queue/sluice/health"
)

// alertPresets are the rules in effect unless somebody changes them. For keeps a short deviation from firing an
// alert. A figure in a sentence is the rule's own; see [Rule.fill].
var alertPresets = [...]Rule{
	{
		Name: "backlog", Metric: MetricReady, Op: ">", Threshold: 1000, For: 5 * time.Minute, Severity: health.SeverityWarning,
		Covers: CoversUnlimitedWorkers, Source: "C-69",
		Summary: "jobs come in faster than workers take them",
		Runbook: `Look whether workers run and are busy: sluice holders
Look what one of the jobs waits for: sluice why JOB
Start more workers, or give them more slots, if they are busy and the machine is not.
A backlog that is planned is no fault: sluice alerts set backlog --queue QUEUE threshold=50000`,
	},
	{
		Name: "backlog-engine", Metric: MetricReady, Op: ">", Threshold: 10_000, For: 5 * time.Minute, Severity: health.SeverityWarning,
		Covers: CoversUnlimitedEngines, Source: "D-59",
		Summary: "jobs come in faster than dispatchers hand them over",
		Runbook: `Look whether a dispatcher runs and what troubles it: sluice holders
Look whether the engine can be used: sluice engine check
Start a second dispatcher, or raise batch: sluice settings set QUEUE batch=500`,
	},
	{
		Name: "behind-pace", Metric: MetricPace, Op: "<", Threshold: 0.5, Window: 5 * time.Minute, For: 5 * time.Minute, Severity: health.SeverityWarning,
		Covers: CoversRated, Source: "C-69, D-59",
		Summary: "jobs are ready, but {than} of what the rate allows is claimed",
		Runbook: `In a queue with a rate a backlog is planned; that it does not go down at the rate is not.
Look what holds the first jobs back: sluice why JOB
A concurrency or concurrencies of tenants may let through less than the rate: sluice settings get QUEUE
Look whether enough workers or dispatchers run: sluice holders`,
	},
	{
		Name: "long-backlog", Metric: MetricDrainTime, Op: ">", Threshold: 4 * 3600, For: 5 * time.Minute, Severity: health.SeverityWarning,
		Covers: CoversRated, Source: "C-70",
		Summary: "at the queue's rate, what is ready takes {than}",
		Runbook: `See when it is done, and what another rate would do: sluice forecast QUEUE --rate 200/s
Raise the rate for a while: sluice settings set QUEUE rate=200/s --revert-in 2h --reason "catch up"
If so much is planned: sluice alerts set long-backlog --queue QUEUE threshold=43200`,
	},
	{
		Name: "old-job", Metric: MetricOldestAge, Op: ">", Threshold: 3600, For: time.Minute, Severity: health.SeverityWarning,
		Covers: CoversUnlimited, Source: "C-70",
		Summary: "a job has been due for {than} and nobody has claimed it",
		Runbook: `List the jobs that wait: sluice jobs --queue QUEUE --state queued
See what one waits for: sluice why JOB
A job of a low priority may starve where ageing is 0: sluice settings get QUEUE ageing`,
	},
	{
		Name: "unserved", Metric: MetricUnserved, Op: ">", Threshold: 0, For: 2 * time.Minute, Severity: health.SeverityError,
		Summary: "jobs are ready and nobody claims from the queue",
		Runbook: `See who works: sluice holders
Start a worker: sluice work QUEUE -- COMMAND
For a queue with an engine start a dispatcher: sluice dispatch --temporal HOST:7233
Workers in other languages that claim by functions and are idle are not seen; silence the rule for such a queue, or disable it there.`,
	},
	{
		Name: "stalled", Metric: MetricStalled, Op: ">", Threshold: 0, Window: 15 * time.Minute, For: time.Minute, Severity: health.SeverityError,
		Summary: "jobs are ready, nothing is in flight, and nothing was claimed for {window}",
		Runbook: `See what one of the jobs waits for: sluice why JOB
See whether the workers or dispatchers of the queue are in trouble: sluice holders
Look into their logs, and restart one.`,
	},
	{
		Name: "paused", Metric: MetricPausedReady, Op: ">", Threshold: 0, For: time.Hour, Severity: health.SeverityWarning,
		Summary: "the queue has been paused for {for} while jobs are due",
		Runbook: `See who paused it and why: sluice settings history QUEUE
Open it: sluice resume QUEUE
Or let it open by itself: sluice pause QUEUE --for 2h`,
	},
	{
		Name: "success-rate", Metric: MetricSuccessRate, Op: "<", Threshold: 0.95, Window: time.Hour, For: time.Minute, Severity: health.SeverityError,
		Source:  "C-71, C-66",
		Summary: "{than} of the jobs that ended in the last {window} were completed",
		Runbook: `See what they died of: sluice dead ls QUEUE
See the rates: sluice stats QUEUE
Pause the queue while the cause lasts: sluice pause QUEUE --reason "bank is down"
Requeue what died of it: sluice dead requeue --all --queue QUEUE --reason "bank is back"`,
	},
	{
		Name: "dead-letters", Metric: MetricDead, Op: ">", Threshold: 10, For: time.Minute, Severity: health.SeverityError,
		Source:  "C-72, C-57",
		Summary: "dead letters wait for a person",
		Runbook: `See what they died of: sluice dead ls QUEUE
Requeue those whose cause is gone: sluice dead requeue --all --queue QUEUE --reason "fixed"
Delete those that nobody needs: sluice dead delete --all --queue QUEUE --reason "tests"`,
	},
	{
		Name: "slow-runs", Metric: MetricRunP95, Op: ">", Threshold: 10, Window: time.Hour, For: 5 * time.Minute, Severity: health.SeverityWarning,
		Covers: CoversWorkers, Source: "C-73, C-68",
		Summary: "one of twenty jobs runs for {than}",
		Runbook: `See how long jobs run: sluice stats QUEUE
Look what the handler waits for: its log, the systems that it calls.
For jobs that take long by nature: sluice alerts set slow-runs --queue QUEUE threshold=300`,
	},
	{
		Name: "dying", Metric: MetricDeadRate, Op: ">", Threshold: 0, Window: 5 * time.Minute, For: time.Minute, Severity: health.SeverityCritical,
		Covers: CoversEngines, Source: "D-60, D-30",
		Summary: "jobs of a queue with an engine become dead letters",
		Runbook: `See what they died of: sluice dead ls QUEUE
Pause the queue while the cause lasts: sluice pause QUEUE --reason "look at the dead letters"
Requeue those whose cause is gone: sluice dead requeue --all --queue QUEUE --reason "fixed"`,
	},
	{
		Name: "recoveries", Metric: MetricRecoveredRate, Op: ">", Threshold: 1, RateShare: 0.1, Window: 5 * time.Minute, For: 5 * time.Minute, Severity: health.SeverityWarning,
		Source:  "D-61",
		Summary: "jobs are recovered all the time: their holders die, or are too slow to renew",
		Runbook: `See which processes come and go: sluice holders
Look for kills in the workers' logs: out of memory, restarts, probes that fail.
If handlers keep the machine so busy that leases are not renewed, lengthen them: sluice settings set QUEUE lease=2m`,
	},
	{
		Name: "lease-expiry", Metric: MetricLeaseExpiry, Op: ">", Threshold: 0.05, Window: time.Hour, For: 5 * time.Minute, Severity: health.SeverityWarning,
		Source:  "C-65, C-67",
		Summary: "{than} of the claims of the last {window} ended because their leases ran out",
		Runbook: `See which processes come and go: sluice holders
See which jobs lost their holders most often: sluice jobs --queue QUEUE -o json
A job that kills its worker is buried after max_recoveries: sluice dead ls QUEUE`,
	},
	{
		Name: "start-failures", Metric: MetricStartFailures, Op: ">", Threshold: 5, RateShare: 0.5, Window: 5 * time.Minute, For: 2 * time.Minute, Severity: health.SeverityCritical,
		Covers: CoversEngines, Source: "D-62",
		Summary: "the engine refuses runs, or does not answer",
		Runbook: `See what the engine says: sluice engine check
See what troubles the dispatchers: sluice holders
No attempt is counted and nothing is lost: the jobs wait until the engine is back.`,
	},
	{
		Name: "breaker-open", Metric: MetricBreakerOpen, Op: ">", Threshold: 0, For: time.Minute, Severity: health.SeverityCritical,
		Covers:  CoversEngines,
		Summary: "a dispatcher has stopped claiming because the queue's engine cannot be used",
		Runbook: `See what the engine says: sluice engine check
See since when, and why: sluice holders
It tries by itself again and goes on; no attempt is counted.`,
	},
	{
		Name: "uncertain", Metric: MetricUncertain, Op: ">", Threshold: 0, For: 0, Severity: health.SeverityCritical,
		Summary: "nobody knows whether the run of a job did its work",
		Runbook: `List them: sluice jobs --queue QUEUE --state uncertain
Ask the engine once more: sluice ask-engine JOB
Find out in the system that the run has worked on, and say so: sluice resolve JOB --completed --reason "it is in the ledger"
They are never run again by themselves.`,
	},
	{
		Name: "settings-wrong", Metric: MetricSettingsWrong, Op: ">", Threshold: 0, For: time.Minute, Severity: health.SeverityWarning,
		Summary: "settings that plain SQL has stored break a rule and do not count",
		Runbook: `See what is wrong: sluice doctor
Put back what was there before: sluice settings undo QUEUE`,
	},
	{
		Name: "full-queue", Metric: MetricWaiting, Op: ">", Threshold: 0.9, For: time.Minute, Severity: health.SeverityWarning,
		Summary: "{than} of the jobs wait that max_waiting allows; beyond it, enqueues are refused",
		Runbook: `Look whether workers run and are busy: sluice holders
Look what one of the jobs waits for: sluice why JOB
Start more workers, or give them more slots.
If so much is planned, raise the limit: sluice settings set QUEUE max_waiting=50000 --reason "campaign"`,
	},
	{
		Name: "holders-with-conditions", Metric: MetricConditions, Op: ">", Threshold: 0, For: 2 * time.Minute, Severity: health.SeverityError, Covers: CoversStore,
		Summary: "a process is kept from a part of its work",
		Runbook: `See which, and what it says: sluice holders
See what mends it: sluice doctor`,
	},
	{
		Name: "many-queues", Metric: MetricQueues, Op: ">", Threshold: 0.8, For: 5 * time.Minute, Severity: health.SeverityWarning, Covers: CoversStore,
		Summary: "the store has {than} of the queues that it takes",
		Runbook: `See how many there are, and may be: sluice queues policy
See which: sluice queues
Delete those that nobody needs: sluice queues rm QUEUE --reason "replaced"
If a program makes queues that nobody wants, let them be declared: sluice queues policy --declared on --reason "names from input"
If so many are planned, raise the bound: sluice queues policy --max 20000 --reason "a queue for each customer"`,
	},
	{
		Name: "no-upkeep", Metric: MetricUpkeepMissing, Op: ">", Threshold: 300, For: 0, Severity: health.SeverityCritical, Covers: CoversStore,
		Summary: "nobody did upkeep for a while",
		Runbook: `Meanwhile no lease was recovered, no run followed, no scheduled change applied, and no alert looked at.
Run two of them, on two machines: sluice upkeep
While nobody runs it only Prometheus can tell; write the rules for it: sluice export prometheus-rules`,
	},
	{
		Name: "old-transaction", Metric: MetricOldestTx, Op: ">", Threshold: 600, For: time.Minute, Severity: health.SeverityWarning, Covers: CoversStore,
		Summary: "a transaction has been open for {than}; until it ends no dead row of the database is removed",
		Runbook: `See whose it is: sluice doctor
Ask its owner to end it, or end it: select pg_terminate_backend(PID);
Let the server end idle ones: alter database DATABASE set idle_in_transaction_session_timeout = '5min';`,
	},
	{
		Name: "dead-rows", Metric: MetricDeadRows, Op: ">", Threshold: 1_000_000, For: 15 * time.Minute, Severity: health.SeverityWarning, Covers: CoversStore,
		Summary: "dead rows pile up in a table",
		Runbook: `See which table, and what keeps them: sluice doctor
A long transaction or an unused replication slot keeps them; end it.
Then: sluice upkeep now vacuum --reason "dead rows"`,
	},
	{
		Name: "wal-size", Metric: MetricWAL, Op: ">", Threshold: 1 << 30, For: 5 * time.Minute, Severity: health.SeverityWarning, Covers: CoversStore,
		Summary: "the write-ahead log beside the file has {than}",
		Runbook: `A reader that stays open keeps it from being cut; find it: sluice doctor
Stop it, and then: sluice upkeep now checkpoint`,
	},
	{
		Name: "connections", Metric: MetricConnections, Op: ">", Threshold: 0.8, For: 2 * time.Minute, Severity: health.SeverityError, Covers: CoversStore,
		Summary: "{than} of the server's connections are in use",
		Runbook: `See who has them: select application_name, count(*) from pg_stat_activity group by 1 order by 2 desc;
Give each process fewer (pool_max_conns in the URL), or put a pooler in front.`,
	},
	{
		Name: "clock", Metric: MetricClock, Op: ">", Threshold: 5, For: 2 * time.Minute, Severity: health.SeverityWarning, Covers: CoversStore,
		Summary: "the store's clock and that of the machine with upkeep are apart",
		Runbook: `Jobs go by the store's clock, so nothing starts too early; what people read in logs and tables does not fit together.
See by how much: sluice doctor
Let NTP set both: timedatectl status`,
	},
}

// Presets lists the rules that are in effect unless somebody changes them.
func Presets() []Rule {
	all := slices.Clone(alertPresets[:])
	for i := range all {
		if metric, err := MetricNamed(all[i].Metric); err == nil && !metric.OfQueue {
			all[i].Covers = CoversStore
		}
		all[i] = all[i].worded()
	}
	return all
}

func presetOf(name string) (Rule, bool) {
	for _, r := range Presets() {
		if r.Name == name {
			return r, true
		}
	}
	return Rule{}, false
}

// RunbookIn returns the runbook with the name of a queue in its commands.
func (r Rule) RunbookIn(queue string) string {
	if queue == "" {
		return r.Runbook
	}
	return strings.ReplaceAll(r.Runbook, "QUEUE", queue)
}
