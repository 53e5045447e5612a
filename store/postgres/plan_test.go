package postgres_test

import (
	"context"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/history"
	"github.com/sluice-queue/sluice/internal/pgtest"
	"github.com/sluice-queue/sluice/store/postgres"
)

// TestClaimKeepsItsLimitUnderHostilePlans forces the planner to unlikely plans. A claim that relies on a lucky plan
// would lock or take more jobs than it may.
func TestClaimKeepsItsLimitUnderHostilePlans(t *testing.T) {
	t.Parallel()
	for _, hostile := range []string{
		"enable_memoize=off", "enable_nestloop=off", "enable_hashjoin=off&enable_mergejoin=off", "enable_indexscan=off&enable_bitmapscan=off",
		"enable_seqscan=off", "enable_material=off&enable_memoize=off", "enable_sort=off", "plan_cache_mode=force_generic_plan", "jit=on&jit_above_cost=0",
	} {
		t.Run(hostile, func(t *testing.T) {
			t.Parallel()
			store := openStore(t, migrated.Copy(t)+"&"+hostile)
			client := sluice.NewClient(store, sluice.ClientOptions{})
			var jobs []sluice.NewJob
			for i := range 300 {
				jobs = append(jobs, sluice.NewJob{Queue: "q", Payload: []byte(`{}`), EnqueueOptions: sluice.EnqueueOptions{Priority: 1 + i%3}})
			}
			if _, err := client.EnqueueMany(t.Context(), jobs); err != nil {
				t.Fatal(err)
			}
			for round := range 3 {
				claimed, err := store.Claim(t.Context(), sluice.ClaimRequest{Queue: "q", Limit: 5, Holder: "h:1:x", Lease: time.Minute, Token: sluice.NewToken()})
				if err != nil || len(claimed.Jobs) != 5 {
					t.Fatalf("claimed %d, want 5: %v", len(claimed.Jobs), err)
				}
				depth, err := store.Depth(t.Context(), "q", sluice.DepthLimit)
				if err != nil || depth.Claimed != 5*(round+1) {
					t.Fatalf("depth %+v, %v", depth, err)
				}
				var settlements []sluice.Settlement
				for _, c := range claimed.Jobs {
					if c.Priority != 1 {
						t.Errorf("claimed priority %d before those of priority 1", c.Priority)
					}
					settlements = append(settlements, sluice.Settlement{ID: c.ID, Token: c.Token, Event: sluice.EventRelease, Delay: time.Hour, Holder: "h"})
				}
				if round == 2 {
					if _, err := store.Settle(t.Context(), settlements); err != nil {
						t.Fatal(err)
					}
				}
			}
		})
	}
}

// TestEveryStatementIsPlannedByIndex plans each statement for a database with many waiting jobs. No plan may read the
// whole of a large table.
func TestEveryStatementIsPlannedByIndex(t *testing.T) {
	t.Parallel()
	store := openStore(t, known.Copy(t))
	// These statements may read a whole table: blocked jobs are few, a list is a page, and a count needs every row.
	allowed := map[string]bool{
		"list_done.sql": true, "list_live.sql": true, "wave_places.sql": true, "wave_ranks.sql": true, "wave_tenants.sql": true,
	}
	scan := regexp.MustCompile(`Seq Scan on (\w+)`)
	for name, args := range planArguments() {
		t.Run(name, func(t *testing.T) {
			plan := planOf(t, store, name, args)
			for _, found := range scan.FindAllStringSubmatch(plan, -1) {
				switch found[1] {
				case "live", "job", "done", "audit", "attempt", "tenant_queue", "tenant_change", "limit_lane", "limit_key", "limit_change", "job_after", "orphan_run", "stat", "stat_part", "schedule", "batch", "batch_change", "batch_count", "progress":
					if !allowed[name] {
						t.Errorf("reads the whole of %s:\n%s", found[1], plan)
					}
				}
			}
		})
	}
}

// backlogSQL stores many jobs, tenant queues and tenant changes, so that reading a whole table is expensive.
const backlogSQL = `
	insert into sluice.tenant (name, tier) select 't' || n, 'tier' || n % 10 from generate_series(1, 3000) n;
	insert into sluice.queue (name, limits) select 'q' || n, case when n % 500 = 1 then 'a,b' else '' end from generate_series(1, 3000) n;
	insert into sluice.limit_lane (name, key, queue, wake_at) select 'a', 'k' || n, 'q' || n % 5, now() from generate_series(1, 8000) n;
	insert into sluice.limit_key (name, key, idle_from) select 'a', 'k' || n, now() + n * interval '1 second' from generate_series(1, 8000) n;
	insert into sluice.limit_change (name, key) select 'a', 'k' || n from generate_series(1, 8000) n;
	insert into sluice.live (id, queue, priority, due_at, limit_key, parked, blocked_by)
		select md5('parked' || n)::uuid, 'q1', 5, now(), 'k' || n % 1000, true, md5('parked' || n)::uuid from generate_series(1, 8000) n;
	insert into sluice.named_limit (name, concurrency) select 'a' || n, 5 from generate_series(1, 300) n;
	insert into sluice.tenant_limit (queue, tenant, concurrency) select 'other' || n % 500, 't' || n, 5 from generate_series(1, 3000) n;
	insert into sluice.tenant_limit (queue, tier, concurrency) select 'other' || n, 'tier' || n % 10, 5 from generate_series(1, 300) n;
	insert into sluice.job (id, queue, priority, payload) select md5(n::text)::uuid, 'q' || n % 5, 5, '{}' from generate_series(1, 12000) n;
	insert into sluice.job_after (after_id, job_id, rule) select md5(n::text)::uuid, md5((n + 1)::text)::uuid, 'cancel' from generate_series(1, 8000) n;
	insert into sluice.live (id, queue, priority, due_at, state, lease_until)
		select md5(n::text)::uuid, 'q' || n % 5, 1 + n % 10, now() + n * interval '1 second',
		       case when n % 300 = 0 then 'claimed' else 'queued' end, now()
		from generate_series(1, 8000) n;
	insert into sluice.live (id, queue, tenant, priority, due_at, state, in_tenant_queue, claimed_at)
		select md5('line' || n)::uuid, 'q1', 't' || n % 1000, 5, now() - n * interval '1 second',
		       case when n % 30 = 0 then 'claimed' else 'queued' end, true, now()
		from generate_series(1, 8000) n;
	insert into sluice.live (id, queue, priority, due_at, state, claimed_at, engine, ref)
		select md5('run' || n)::uuid, 'q' || n % 5, 5, now(), 'dispatched', now(), 'temporal', n from generate_series(1, 2000) n;
	insert into sluice.orphan_run (job_id, queue, tenant, engine, ref, cancelled_at)
		select md5(n::text)::uuid, 'q' || n % 5, 't' || n % 1000, 'temporal', n, now() + n * interval '1 second' from generate_series(1, 8000) n;
	insert into sluice.tenant_queue (queue, tenant, version, virtual_start, jobs, active, wake_at)
		select 'q' || n % 5, 't' || n % 1000, n, n, 32, n % 2 = 0, case when n % 3 = 0 then now() end from generate_series(1, 4000) n;
	insert into sluice.tenant_change (queue, tenant, jobs, room) select 'q' || n % 5, 't' || n, 32, true from generate_series(1, 4000) n;
	insert into sluice.done (id, generation, queue, outcome, due_at, attempts, releases, recoveries)
		select md5(n::text)::uuid, 1, 'q' || n % 5, case when n % 50 = 0 then 'dead' else 'completed' end, now(), 0, 0, 0
		from generate_series(8001, 12000) n;
	insert into sluice.audit (actor, object, event, job_id) select 'x', 'job', 'bury', md5(n::text)::uuid from generate_series(1, 8000) n;
	insert into sluice.attempt (job_id, generation, attempt, error) select md5(n::text)::uuid, 1, 1, 'x' from generate_series(1, 8000) n;
	insert into sluice.stat select k.every_s, date_trunc('hour', now()) - n * k.every_s * interval '1 second', 'q' || q, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, '{}', '{}', '{}', 'null', '{}'
		from (values (10), (60), (3600)) k(every_s), generate_series(1, 2000) n, generate_series(1, 5) q;
	insert into sluice.stat_part select now() - n * interval '10 seconds', 'q' || q, 'h', '{}' from generate_series(1, 2000) n, generate_series(1, 5) q;
	insert into sluice.job_key (queue, key, job_id) select 'q' || n % 5, 'k' || n, md5(n::text)::uuid from generate_series(1, 8000) n;
	insert into sluice.schedule (name, queue, next_at, definition, progress)
		select 's' || n, 'q' || n % 3000, now() + (n - 100) * interval '1 second', '{}', '{}' from generate_series(1, 8000) n;
	insert into sluice.batch (id, parent, closed_at, completed_at)
		select md5(n::text)::uuid, case when n % 10 = 0 then md5((n / 10)::text)::uuid end, now(), case when n % 50 > 0 then now() end from generate_series(1, 8000) n;
	insert into sluice.batch_count select id, 5, 5, 0, 0 from sluice.batch;
	insert into sluice.batch_change (xid, batch, kind, jobs) select n, md5(n::text)::uuid, 'total', 1 from generate_series(1, 8000) n;
	insert into sluice.batch_counted (xid) select max(xid) - 100 from sluice.batch_change;
	update sluice.job set batch_id = md5((hashtext(id::text) & 8191)::text)::uuid where priority = 5 and id < '20000000-0000-0000-0000-000000000000';
	insert into sluice.progress (id, claimed_at, fraction, message) select md5(n::text)::uuid, now(), 0.5, '' from generate_series(1, 8000) n;
	insert into sluice.order_key (queue, order_key) select 'q' || n % 5, 'o' || n from generate_series(1, 8000) n;
	insert into sluice.flow (queue) select 'q' || n from generate_series(1, 3000) n -- last: changes of tenants are told to each
`

// backlog is a database with many jobs and without statistics.
var backlog = pgtest.Template{Fill: func(ctx context.Context, url string) error {
	return fillWith(ctx, url, keepStatisticsSQL, backlogSQL)
}}

// known is the database backlog with statistics of every row, so that plans do not depend on a sample.
var known = pgtest.Template{Fill: func(ctx context.Context, url string) error {
	return fillWith(ctx, url, keepStatisticsSQL, backlogSQL, "set default_statistics_target = 1000; analyze")
}}

// fillWith migrates a database, and runs statements in it.
func fillWith(ctx context.Context, url string, statements ...string) error {
	if _, err := postgres.Migrate(ctx, url); err != nil {
		return err
	}
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	for _, statement := range statements {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// TestJobsAreFoundByIDWhateverTheStatisticsSay uses statistics from a time when every job waited. They say that no job
// is claimed, although thousands are. By them, a plan would read all claimed jobs and compare each with each job of the
// batch.
func TestJobsAreFoundByIDWhateverTheStatisticsSay(t *testing.T) {
	t.Parallel()
	store := openStore(t, migrated.Copy(t))
	if _, err := store.Pool().Exec(t.Context(), `
		insert into sluice.live (id, queue, priority, due_at) select md5(n::text)::uuid, 'q', 5, now() from generate_series(1, 10000) n;
		analyze;
		update sluice.live set state = 'claimed', token = id where id in (select id from sluice.live limit 5000)`); err != nil {
		t.Fatal(err)
	}
	var ids [][16]byte
	for range 500 {
		ids = append(ids, sluice.NewID())
	}
	states, none := []string{"claimed"}, []string{}
	for name, args := range map[string][]any{
		"end.sql":    {ids, ids, states, "complete", "completed", [][]byte{}, none, none, none, none, "nothing", false, false, true},
		"back.sql":   {ids, ids, states, "retry", []time.Duration{}, none, none, none, none, "attempt", false, false},
		"away.sql":   {ids, ids, states, "dispatch", "dispatched", none, none, none, none, false},
		"renew.sql":  {ids, ids, []time.Duration{}},
		"intend.sql": {ids, ids, none, none, []time.Duration{}},
	} {
		if plan := plan(t, store, name, args, "select 1"); !strings.Contains(plan, "id = ANY (") || strings.Contains(plan, "live_claimed") {
			t.Errorf("%s does not look for its jobs by their ids:\n%.3000s", name, plan)
		}
	}
}

// planOf returns the plan of a statement of the store, in a transaction of the store.
func planOf(t *testing.T, store *postgres.Store, name string, args []any, how ...string) string {
	t.Helper()
	return plan(t, store, name, args, postgres.WalkInOrder, how...)
}

// oldestFirst is a suffix for the name of a statement. It asks for the opposite order.
const oldestFirst = " oldest first"

// plan returns the plan of a statement of the store, after the statement in after has run.
func plan(t *testing.T, store *postgres.Store, name string, args []any, after string, how ...string) string {
	t.Helper()
	name, oldest := strings.CutSuffix(name, oldestFirst)
	text, err := postgres.StatementOf(name)
	if err != nil {
		t.Fatal(err)
	}
	text = history.InOrder(sluice.JobFilter{OldestFirst: oldest}, text)
	explain := "explain "
	if len(how) > 0 {
		explain += "(" + strings.Join(how, ", ") + ") "
	}
	tx, err := store.Pool().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(t.Context()) }()
	if _, err := tx.Exec(t.Context(), after); err != nil {
		t.Fatal(err)
	}
	rows, err := tx.Query(t.Context(), explain+text, args...)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(lines, "\n")
}

// planArguments returns arguments for each statement that reads large tables.
func planArguments() map[string][]any {
	ids := [][16]byte{sluice.NewID(), sluice.NewID(), sluice.NewID()}
	tokens := ids
	priorities := []int16{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
	lowWater, markIDs := make([]time.Time, 10), make([][16]byte, 10)
	for i := range lowWater {
		lowWater[i] = time.Unix(0, 0)
	}
	texts := []string{"a", "b", "c"}
	states := []string{"claimed"}
	id, payload := [16]byte(sluice.NewID()), json.RawMessage(nil)
	return map[string][]any{
		"named_limits.sql":          {texts},
		"named_limit_lock.sql":      {texts},
		"named_limit_read.sql":      {texts},
		"named_limit_queues.sql":    {"a"},
		"named_limit_in_flight.sql": {"a", 99},
		"limit_told.sql":            {texts, 100},
		"limit_judge.sql":           {"q1", texts, []int32{2, 0, 2}, []float64{0, 5, 5}, []float64{0, 5, 5}, time.Now(), ids, 5, 100, []bool{true, false, true}, []bool{true, true, false}, time.Duration(0)},
		"limit_pick.sql":            {"q1", priorities, lowWater, markIDs, 100, time.Minute, ""},
		"limit_pick_tenants.sql":    {"q1", texts, []int32{5, 5, 5}, []int32{32, 32, 32}, slices.Repeat(lowWater, 3), slices.Repeat(markIDs, 3), priorities, time.Minute},
		"limit_claim.sql":           {"q1", ids, id, "h", time.Minute, time.Now(), texts},
		"limit_key_take.sql":        {texts, []float64{5, 5, 5}, []float64{5, 5, 5}, texts, []int32{1, 1, 1}, time.Now()},
		"limit_lane_next.sql":       {"q1", texts},
		"limit_key_close.sql":       {"a", "k1", time.Now(), "a", "r", id, "close key", "{}"},
		"limit_key_uses.sql":        {"a", texts, 10, 99},
		"limit_forget.sql":          {100},
		"limit_unpark_strays.sql":   {ids},
		"look.sql":                  {texts, slices.Repeat(lowWater, 3), slices.Repeat(markIDs, 3), 99},
		"claim_together.sql":        {texts, []int32{5, 5, 5}, []time.Duration{time.Minute, time.Minute, time.Minute}, slices.Repeat(lowWater, 3), slices.Repeat(markIDs, 3), 100, id, "h", slices.Repeat(priorities, 3)},
		"claim.sql":                 {"q1", priorities, lowWater, markIDs, 100, id, "h", time.Minute, false, nil, time.Minute, ""},
		"tenant_change_take.sql":    {"q1", time.Unix(0, 0), 100},
		"tenant_queue_adopt.sql":    {"q1", priorities, lowWater, markIDs, 100, time.Minute},
		"tenant_queue_dissolve.sql": {"q1", 100},
		"tenant_queue_due.sql":      {"q1", time.Unix(0, 0), time.Now(), 1.5, 100},
		"tenant_queue_wake.sql":     {"q1", texts, []int32{32, 32, 32}, []*time.Time{nil, nil, nil}, []bool{true, true, true}, []bool{true, true, true}, time.Now(), 1.5},
		"tenant_queue_first.sql":    {"q1", 1.5, "t", 100},
		"tenant_queue_held.sql":     {"q1", texts, []int32{5, 5, 5}, []*time.Time{nil, nil, nil}},
		"tenant_queue_claim.sql":    {"q1", texts, []int32{5, 5, 5}, []int32{32, 32, 32}, slices.Repeat(lowWater, 3), slices.Repeat(markIDs, 3), priorities, id, "h", time.Minute, time.Now(), time.Minute, texts},
		"tenant_queue_look.sql":     {"q1", texts, []int32{32, 32, 32}, slices.Repeat(lowWater, 3), slices.Repeat(markIDs, 3)},
		"tenant_queue_keep.sql":     {[]string{"(0,1)"}, []float64{1}, []int32{32}, []bool{true}, []bool{true}, []*time.Time{nil}, []float64{1}, []*time.Time{nil}, []*time.Time{nil}},
		"tenant_queue_next.sql":     {"q1", 1.5, "t", time.Unix(0, 0)},
		"repair_tenant_queues.sql":  {"", "", 100},
		"tenant_queue_idle.sql":     {"", "", 100, []string{"q2"}},
		"tenant_queue_spare.sql":    {"q1", texts, []int64{1, 2, 3}},
		"tenant_queue_forget.sql":   {[]string{"(0,1)"}},
		"tenant_change_stale.sql":   {"q1", time.Unix(0, 0), time.Minute},
		"tenant_change_left.sql":    {"q1", time.Unix(0, 0), 100},
		"holding.sql":               {"q1", "t1", 10},
		"behind.sql":                {id, 10},
		"in_flight.sql":             {"q1", 100, time.Unix(0, 0)},
		"claimed_before.sql":        {id},
		"next_due.sql":              {"q1", priorities, lowWater, markIDs, time.Minute},
		"flow_lock.sql":             {"q1"},
		"flow_add.sql":              {"q1"},
		"flow_there.sql":            {"q1"},
		"flow_take.sql":             {"q1", 1.5, nil, time.Now(), nil, 1, nil, 1.5, "t", nil, nil, nil, 0},
		"tenant_queue_limits.sql":   {"q1", texts},
		"renew.sql":                 {ids, tokens, []time.Duration{time.Minute, time.Minute, time.Minute}},
		"checkpoint.sql":            {id, id, []byte(payload)},
		"end.sql":                   {ids, tokens, states, "complete", "completed", [][]byte{}, texts, texts, texts, texts, "nothing", false, false, true},
		"end_act.sql":               {ids, states, "cancel", "cancelled", texts, texts, texts, id, true},
		"back.sql":                  {ids, tokens, states, "retry", []time.Duration{1, 1, 1}, texts, texts, texts, texts, "attempt", false, false},
		"away.sql":                  {ids, tokens, states, "dispatch", "dispatched", texts, texts, texts, texts, false},
		"complete.sql":              {id, id, states, []byte(payload), 1 << 20},
		"key_free.sql":              {ids},
		"key_hand_on.sql":           {ids, ids},
		"standing.sql":              {ids},
		"requeue.sql":               {ids, []string{"dead"}, "a", "r", id, ids},
		"requeue_uncertain.sql":     {ids, "a", "r", id},
		"reschedule.sql":            {ids, time.Now(), "a", "r", id},
		"delete_jobs.sql":           {ids, []string{"dead"}, "a", "r", id},
		"intend.sql":                {ids, tokens, texts, texts, []time.Duration{time.Minute, time.Minute, time.Minute}},
		"dispatches.sql":            {"q1", nil, false, id, 100},
		"orphan_run_list.sql":       {"q1", time.Now(), id, 100, "x"},
		"orphan_run_of.sql":         {id, 10},
		"orphan_run_open.sql":       {ids},
		"orphan_run_beside.sql":     {ids, "a", "r", id},
		"orphan_run_terminate.sql":  {ids, "a", "r", id},
		"orphan_run_forget.sql":     {ids, texts},
		"late.sql":                  {"q1", 100, 5},
		"expired.sql":               {100},
		"repair_blocked.sql":        {id, 100},
		"repair_order_keys.sql":     {"", "", 100},
		"unblock.sql":               {ids, ids, id, 100, 100},
		"order_last.sql":            {texts, texts},
		"order_next.sql":            {ids},
		"order_keys.sql":            {ids},
		"stored.sql":                {ids},
		"stored_or_kept.sql":        {ids, texts, texts},
		"shed.sql":                  {"q1", 5, 3},
		"shed_tenant.sql":           {"q1", "t1", 5, 3},
		"shed_turns.sql":            {"q1", 5, 3},
		"tenant_limits_ended.sql":   {time.Now(), 200},
		"after_find.sql":            {ids},
		"after_again.sql":           {ids},
		"awaited.sql":               {texts, ids},
		"key_holders.sql":           {texts, texts, ids},
		"key_lock.sql":              {id},
		"repair_queues.sql":         {},
		"results_forget.sql":        {100},
		"batch.sql":                 {id},
		"batches.sql":               {nil, true, nil, 100},
		"batch_due.sql":             nil,
		"batch_take.sql":            {100},
		"batch_look.sql":            {ids},
		"batch_states.sql":          {ids},
		"batch_recount.sql":         {id},
		"batch_forget.sql":          {time.Hour, 100},
		"progress.sql":              {ids},
		"prune.sql":                 {"", "", time.Unix(0, 0), 100, 1, 1, 1},
		"job.sql":                   {id},
		"job_in.sql":                {id, "q1"},
		"attempts.sql":              {id},
		"acted.sql":                 {id},
		"job_keys.sql":              {ids},
		"position.sql":              {id, 100},
		"depth.sql":                 {"q1", 100},
		"list_live.sql":             {"q1", "", "", []string{"queued"}, nil, nil, 100, 0, 0, nil},
		"list_done.sql":             {"q1", "", "", []string{"dead"}, nil, nil, 100, 0, 0, nil},
		"audit.sql":                 {"", "", id, 0, 100, "", "", 0},
		"audit_changes.sql":         {"queue", "q1", 0, 100, "", 0},
		"wave_cut.sql":              {id, 100},
		"wave_places.sql":           {time.Now(), time.Now(), id, nil},
		"wave_ranks.sql":            {id, nil},
		"wave_tenants.sql":          {time.Now(), time.Now(), id, nil, texts, texts},
		"wave_runs.sql":             {100},
		"stats.sql":                 {60, time.Now().Add(-time.Hour), time.Now(), []string{"q1"}, "", false, 100, time.Now(), false},
		"stat_take.sql":             {time.Now().Add(-5 * time.Hour), 100},
		"stat_stored.sql":           {[]int32{10, 60}, []time.Time{time.Now(), time.Now()}, []string{"q1", "q2"}},
		"stat_forget.sql":           {10, 2 * time.Hour, 100},
		"schedule.sql":              {"s1"},
		"schedule_lock.sql":         {"s1"},
		"schedule_act.sql":          {id, "s1"},
		"schedules.sql":             {"s1", 100},
		"schedules_queue.sql":       {"q1", "s1", 100},
		"queue_schedules.sql":       {"q1", 100},
		"schedules_next.sql":        {time.Now()},
		"schedules_due.sql":         {time.Now().Add(-time.Hour), 100},
		"schedules_fired.sql":       {[]string{"s1", "s2", "s3"}, []*time.Time{nil, nil, nil}, texts},
	}
}
