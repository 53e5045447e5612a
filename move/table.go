package move

import (
	"time"

	"github.com/sluice-queue/sluice"
)

// kind decides the form of a value in each store and in transit: see values.go.
type kind int

const (
	kindText    kind = iota // string
	kindInt                 // int64
	kindReal                // float64
	kindBool                // bool
	kindInstant             // int64, microseconds since 1970; forEver and longAgo are the infinite ones
	kindID                  // 16 bytes
	kindBytes               // bytes
	kindJSON                // JSON text
	kindIDs                 // the text of a JSON array
	kindMillis              // int64, microseconds; PostgreSQL has milliseconds
	kindJob                 // 16 bytes, a job's id; SQLite has its seq
)

// column is a column to move.
type column struct {
	name string // in PostgreSQL, and in errors
	kind kind
	lite string // its name in SQLite
	// reads and liteReads are expressions for values that a store computes itself. They are read for the
	// comparison, but not written.
	reads     string // in PostgreSQL
	liteReads string
	// place marks the order of enqueues. For a job without one, SQLite makes it up.
	place bool
}

func is(name string, k kind) column { return column{name: name, kind: k, lite: name} }

// in gives a column another name in SQLite.
func (c column) in(lite string) column {
	c.lite = lite
	return c
}

// layout is a table's form in a store.
type layout struct {
	name string
	key  []string // unique and indexed: the order in which rows are read
	only string   // condition for the rows to move; empty: all
	// made are columns that are not moved but that a new row needs, with their values.
	made map[string]any
	// left are columns that are not moved, because the store fills them or counts them anew.
	left []string
}

// table is a table to move.
type table struct {
	name     string
	columns  []column
	postgres layout
	lite     layout
}

// tables lists the tables to move, in order: referenced tables come first.
func tables() []table {
	return []table{
		{"queues", queueColumns(), keyed("queue", "name"), keyed("sluice_queue", "name")},
		queuePolicyTable(),
		tierTable(), tenantTable(), limitTable(), namedLimitTable(), limitKeyTable(),
		jobTable(),
		{
			"keys",
			[]column{is("queue", kindText), is("key", kindText), is("job_id", kindID), is("until", kindInstant)},
			keyed("job_key", "queue", "key"), keyed("sluice_job_key", "queue", "key"),
		},
		doneTable(),
		{"attempts", []column{
			is("job_id", kindJob).in("seq"), is("generation", kindInt), is("attempt", kindInt), is("claimed_at", kindInstant),
			is("failed_at", kindInstant), is("holder", kindText), is("error", kindText), is("stack", kindText),
		}, keyed("attempt", "job_id", "generation", "attempt"), keyed("sluice_attempt", "seq", "generation", "attempt")},
		liveTable(),
		{
			"jobs to run after",
			[]column{is("after_id", kindID), is("job_id", kindJob).in("seq"), is("rule", kindText)},
			keyed("job_after", "after_id", "job_id"), keyed("sluice_after", "after_id", "seq"),
		},
		{"queues of awaited jobs", []column{is("queue", kindText)}, keyed("awaited", "queue"), keyed("sluice_awaited", "queue")},
		{"runs of cancelled jobs", []column{
			is("job_id", kindID), is("queue", kindText), is("engine", kindText), is("ref", kindText), is("cancelled_at", kindInstant),
			is("tenant", kindText), is("generation", kindInt), is("claimed_at", kindInstant), is("started", kindBool), is("beside", kindBool),
			is("terminate", kindBool), is("limit_key", kindText), is("cost", kindInt),
		}, keyed("orphan_run", "job_id", "ref"), keyed("sluice_orphan_run", "job_id", "ref")},
		holdTable(),
		auditTable(),
		{"operations", []column{
			is("id", kindID), is("version", kindInt), is("kind", kindText), is("state", kindText), is("created_at", kindInstant),
			is("ended_at", kindInstant), is("body", kindText),
		}, keyed("operation", "id"), keyed("sluice_operation", "id")},
		scheduleTable(), accessTokenTable(), deadNoteTable(),
		{
			"wave counts",
			[]column{is("queue", kindText), is("counted_at", kindInstant), is("took_ms", kindMillis).in("took_us")},
			keyed("wave_count", "queue"), keyed("sluice_wave_count", "queue"),
		},
		{
			"waves",
			[]column{is("queue", kindText), is("part", kindText), is("at", kindInstant), is("jobs", kindInt), is("tenants", kindText)},
			keyed("wave", "queue", "part", "at"), keyed("sluice_wave", "queue", "part", "at"),
		},
		statTable(),
		{
			"statistics to be added up",
			[]column{is("at", kindInstant), is("queue", kindText), is("holder", kindText), is("body", kindText)},
			keyed("stat_part", "at", "queue", "holder"), keyed("sluice_stat_part", "at", "queue", "holder"),
		},
		rateTable(), permitTable(), startedTable(),
		tenantRateTable(),
		alertRuleTable(),
		alertTable(),
		{
			"silences",
			[]column{
				is("id", kindID), is("rule", kindText), is("queue", kindText), is("created_at", kindInstant), is("until", kindInstant),
				is("made_by", kindText), is("reason", kindText),
			},
			keyed("alert_silence", "id"), keyed("sluice_alert_silence", "id"),
		},
		alertReceiverTable(),
		batchTable(), batchCountTable(),
	}
}

// notMoved are the tables that stay, and the reason.
var notMoved = map[string]string{
	"sluice.migration": "the target has its own", "sluice_migration": "the target has its own",
	"sluice_clock":  "the clock of the machine that opens it",
	"sluice.holder": "processes of the source", "sluice_holder": "processes of the source",
	"sluice.lead": "processes of the source", "sluice_lead": "processes of the source",
	"sluice.instruction": "instructions to processes of the source", "sluice_instruction": "instructions to processes of the source",
	"sluice.progress": "what handlers say again within a second", "sluice_progress": "what handlers say again within a second",
	"sluice.stat_holder": "processes of the source", "sluice_stat_holder": "processes of the source",
	"sluice.stat_fold":     "a lock",
	"sluice.batch_counted": "how far upkeep has added up changes of batches",
	"sluice.batch_change":  "added to the counts of batches before they are moved; deaths go with these",
	"sluice.stat_call":     "what upkeep has not added up yet, of calls of functions",
	"sluice.tenant_change": "changes of tenants, from which claims make tenant queues anew",
	"sluice.limit_lane":    "keys of limits with jobs that wait, which upkeep lets in for claims to judge anew", "sluice_limit_lane": "keys of limits with jobs that wait, which upkeep lets in for claims to judge anew",
	"sluice.limit_change": "changes of keys of limits, for the next claim",
	"sluice.order_key":    "a lock for each order key, made when it is wanted",
	"sluice.move":         "how far a move has come", "sluice_move": "how far a move has come",
	"sluice.queue_grant": "roles belong to the server", "sluice.function_set": "the target has its own",
	"sluice.pace":          "when holders claimed last, that work through functions",
	"sluice.result_cursor": "the target walks its history once", "sluice_result_cursor": "the target walks its history once",
	"sluice.recheck":    "what upkeep finds without",
	"sluice.audit_seal": "the target seals what it has got anew, from the head of the source on", "sluice_audit_seal": "the target seals what it has got anew, from the head of the source on",
	"sluice.audit_batch": "goes with its seal", "sluice_audit_batch": "goes with its seal",
	"sluice.follower": "the target's programs follow their own tables", "sluice_follower": "the target's programs follow their own tables",
	"sluice.moved": "where to the store was moved", "sluice_moved": "where to the store was moved",
}

func keyed(name string, key ...string) layout { return layout{name: name, key: key} }

// changed appends the columns that record people's changes.
func changed(columns ...column) []column {
	return append(columns, is("version", kindInt), is("changed_at", kindInstant), is("changed_by", kindText), is("reason", kindText))
}

func queueColumns() []column {
	columns := append(changed(is("name", kindText)), is("recorded", kindJSON), is("scheduled", kindJSON))
	for _, s := range sluice.StoredSettings() {
		columns = append(columns, is(s.Column(), kindOf(s)))
	}
	return columns
}

// queuePolicyTable holds the policy for new queues.
func queuePolicyTable() table {
	columns := changed(is("id", kindInt), is("max_queues", kindInt), is("declared", kindBool))
	return table{"policy of queues", columns, keyed("queue_policy", "id"), keyed("sluice_queue_policy", "id")}
}

// holdTable holds the holds of jobs.
func holdTable() table {
	columns := []column{
		is("job_id", kindID), is("queue", kindText), is("reason", kindText), is("actor", kindText), is("held_at", kindInstant), is("behind", kindJob),
	}
	return table{"holds", columns, keyed("hold", "job_id"), keyed("sluice_hold", "job_id")}
}

func tierTable() table {
	return table{"tiers", changed(is("name", kindText)), keyed("tier", "name"), keyed("sluice_tier", "name")}
}

func tenantTable() table {
	return table{"tenants", changed(is("name", kindText), is("tier", kindText)), keyed("tenant", "name"), keyed("sluice_tenant", "name")}
}

func kindOf(s sluice.Setting) kind {
	paused := sluice.Settings{PausedUntil: time.Unix(0, 0)} // an instant that is not zero has a type
	switch s.Stored(paused).(type) {
	case bool:
		return kindBool
	case int64:
		return kindInt
	case float64:
		return kindReal
	case time.Time:
		return kindInstant
	}
	return kindText
}

func limitTable() table {
	columns := changed(is("queue", kindText), is("tier", kindText), is("tenant", kindText), is("concurrency", kindInt), is("rate", kindReal), is("rate_per_ms", kindInt),
		is("burst", kindInt), is("weight", kindInt), is("until", kindInstant), is("paused", kindBool), is("paused_until", kindInstant))
	t := table{"limits of tenants", columns, keyed("tenant_limit", "queue", "tier", "tenant"), keyed("sluice_tenant_limit", "queue", "tier", "tenant")}
	t.postgres.left, t.lite.left = []string{"given"}, []string{"given"}
	return t
}

// place is the order of enqueues among the jobs of an order key. In SQLite, it is the seq.
func place(from string) column {
	return column{name: "order_place", kind: kindInt, liteReads: "case when t.order_key is not null then " + from + " end"}
}

func jobTable() table {
	order := place("t.seq")
	order.lite, order.place = "seq", true
	return table{"jobs", []column{
		is("id", kindID), is("queue", kindText), is("tenant", kindText), is("priority", kindInt), is("key", kindText), is("payload", kindBytes),
		is("labels", kindJSON), is("max_attempts", kindInt), is("created_at", kindInstant), is("expires_at", kindInstant),
		is("order_key", kindText), order, is("after", kindIDs), is("after_failure", kindText), is("timeout_ms", kindInt), is("batch_id", kindID), is("limit_key", kindText), is("cost", kindInt),
	}, keyed("job", "id"), keyed("sluice_job", "seq")}
}

func doneTable() table {
	return table{"history", []column{
		is("id", kindJob).in("seq"), is("generation", kindInt), is("queue", kindText), is("tenant", kindText), is("outcome", kindText),
		is("due_at", kindInstant), is("claimed_at", kindInstant), is("dispatched_at", kindInstant), is("finished_at", kindInstant),
		is("attempts", kindInt), is("releases", kindInt), is("recoveries", kindInt), is("token", kindID), is("holder", kindText), is("ref", kindText),
		is("result", kindBytes), is("error", kindText), is("requeued_at", kindInstant),
	}, keyed("done", "id", "generation"), keyed("sluice_done", "seq", "generation")}
}

// liveTable leaves out the jobs' places in tenant queues: claims make them anew.
func liveTable() table {
	runOf := column{name: "run_of", kind: kindID, lite: "run_of", reads: "case when t.engine is not null then t.id end"}
	t := table{"unfinished jobs", []column{
		is("id", kindJob).in("seq"), is("queue", kindText), is("tenant", kindText), is("priority", kindInt), is("state", kindText),
		is("due_at", kindInstant), is("expires_at", kindInstant), is("generation", kindInt), is("attempts", kindInt), is("releases", kindInt),
		is("recoveries", kindInt), is("keyed", kindBool), is("blocked_by", kindJob), is("token", kindID), is("holder", kindText),
		is("claimed_at", kindInstant), is("dispatched_at", kindInstant), is("lease_until", kindInstant), is("ref", kindText),
		is("error", kindText), is("checkpoint", kindBytes), is("order_key", kindText), place("t.seq"), is("engine", kindText), runOf, is("batch_id", kindID), is("limit_key", kindText), is("cost", kindInt),
		is("parked", kindBool),
	}, keyed("live", "id"), keyed("sluice_live", "seq")}
	t.postgres.left, t.lite.left = []string{"in_tenant_queue"}, []string{"in_tenant_queue"}
	return t
}

func statTable() table {
	columns := []column{is("every_s", kindInt), is("at", kindInstant), is("queue", kindText)}
	for _, name := range []string{
		"enqueued", "requeued", "claimed", "dispatched", "completed", "dead", "cancelled", "uncertain", "failed", "released", "recovered", "start_failed",
	} {
		columns = append(columns, is(name, kindInt))
	}
	columns = append(columns, is("wait", kindText), is("run", kindText), is("total", kindText), is("tenants", kindText), is("level", kindText))
	return table{"statistics", columns, keyed("stat", "every_s", "at", "queue"), keyed("sluice_stat", "every_s", "at", "queue")}
}

func auditTable() table {
	return table{"audit", []column{
		is("seq", kindInt), is("at", kindInstant), is("actor", kindText), is("object", kindText), is("name", kindText), is("event", kindText),
		is("job_id", kindID), is("generation", kindInt), is("from_state", kindText), is("to_state", kindText), is("reason", kindText),
		is("before", kindJSON), is("after", kindJSON), is("act_id", kindID),
	}, keyed("audit", "seq"), keyed("sluice_audit", "seq")}
}

// rateTable holds the remaining tokens of queues' rates. The turns of tenants begin anew.
func rateTable() table {
	t := table{
		"rates of queues",
		[]column{is("queue", kindText), is("tokens", kindReal), is("filled_at", kindInstant)},
		keyed("flow", "queue"), keyed("sluice_flow", "queue"),
	}
	t.postgres.only, t.lite.only = "t.filled_at is not null", "t.filled_at is not null"
	t.postgres.left = []string{"claimed_at", "counted_from", "version", "counted_since", "virtual_start", "tenant", "wakes_from", "fair_since", "permits_from", "clock_ahead_us"}
	t.lite.left = []string{"virtual_start", "tenant"}
	return t
}

// permitTable holds jobs of queues with a rate that are claimed but not started.
func permitTable() table {
	return table{"claims of queues with a rate", []column{
		is("queue", kindText), is("claimed_at", kindInstant), is("token", kindID), is("jobs", kindInt), is("begun", kindInt),
		is("gone", kindInt), is("check_at", kindInstant),
	}, keyed("permit", "queue", "claimed_at", "token"), keyed("sluice_permit", "queue", "claimed_at", "token")}
}

// startedTable holds the start times of jobs in queues with a rate.
func startedTable() table {
	return table{
		"starts of queues with a rate",
		[]column{is("queue", kindText), is("at", kindInstant), is("jobs", kindInt)},
		keyed("started", "queue", "at"), keyed("sluice_started", "queue", "at"),
	}
}

// tenantRateTable holds the remaining tokens of tenants' rates. Tenant queues are empty until claims put jobs
// there.
func tenantRateTable() table {
	t := table{
		"rates of tenants",
		[]column{is("queue", kindText), is("tenant", kindText), is("tokens", kindReal), is("filled_at", kindInstant)},
		layout{
			name: "tenant_queue", key: []string{"queue", "tenant"}, made: map[string]any{"version": 1, "virtual_start": 0, "jobs": 0, "active": false},
			only: "t.filled_at is not null and t.version = (select max(n.version) from sluice.tenant_queue n where n.queue = t.queue and n.tenant = t.tenant)",
			left: []string{"at_limit", "wake_at", "counted_from"},
		},
		layout{
			name: "sluice_tenant_queue", key: []string{"queue", "tenant"}, only: "t.filled_at is not null", made: map[string]any{"virtual_start": 0, "active": 0},
			left: []string{"jobs", "at_limit", "wake_at"},
		},
	}
	return t
}
