package postgres_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-queue/sluice/internal/pgtest"
	"github.com/sluice-queue/sluice/store/postgres"
)

// keepStatisticsSQL turns off autovacuum, so that the server does not gather statistics by itself.
var keepStatisticsSQL = setTablesSQL("autovacuum_enabled = off")

// setTablesSQL sets a storage parameter of each table of the schema.
func setTablesSQL(setting string) string {
	return fmt.Sprintf(`
	do $$ declare t text; begin
		for t in select oid::regclass from pg_class where relnamespace = 'sluice'::regnamespace and relkind = 'r' loop
			execute 'alter table ' || t || ' set (%s)';
		end loop;
	end $$`, setting)
}

// deleteSQL deletes everything but the last rows of each table, which keep it as large as it is.
func deleteSQL(but int) string {
	return fmt.Sprintf(`
	set session_replication_role = replica;
	do $$ declare t text; begin
		for t in select oid::regclass from pg_class where relnamespace = 'sluice'::regnamespace and relkind = 'r' and relname <> 'migration' loop
			execute 'delete from ' || t || ' where ctid not in (select ctid from ' || t || ' order by ctid desc limit %d)';
		end loop;
	end $$;
	set session_replication_role = origin`, but)
}

// staleStatistics are histories of a store. Each ends when the server gathers its statistics.
var staleStatistics = map[string]struct {
	from *pgtest.Template
	then []string
}{
	"nothing was there":           {from: &migrated},
	"few were there":              {&backlog, []string{deleteSQL(3), "vacuum full"}},
	"many had passed, few waited": {&backlog, []string{deleteSQL(3)}},
	"many had passed":             {&backlog, []string{deleteSQL(0)}},
	// A vacuum returns no pages while others hold locks. The server then believes that many pages have no rows, and that
	// all ways to read them cost the same.
	"many had passed, and their pages stayed": {&backlog, []string{setTablesSQL("vacuum_truncate = off"), deleteSQL(0)}},
	"one queue waited": {&migrated, []string{
		`insert into sluice.job (id, queue, priority, payload) select md5(n::text)::uuid, 'q1', 5, '{}' from generate_series(1, 30000) n`,
		`insert into sluice.live (id, queue, priority, due_at) select md5(n::text)::uuid, 'q1', 5, now() from generate_series(1, 30000) n`,
	}},
	"one tenant waited": {&migrated, []string{
		`insert into sluice.job (id, queue, tenant, priority, payload) select md5(n::text)::uuid, 'q1', 't1', 5, '{}' from generate_series(1, 30000) n`,
		`insert into sluice.live (id, queue, tenant, priority, due_at, in_tenant_queue)
			select md5(n::text)::uuid, 'q1', 't1', 5, now(), true from generate_series(1, 30000) n`,
	}},
	"all was claimed": {&migrated, []string{
		`insert into sluice.live (id, queue, tenant, priority, due_at, in_tenant_queue, state, claimed_at, lease_until)
			select md5(n::text)::uuid, 'q1', 't1', 5, now(), true, 'claimed', now(), now() from generate_series(1, 30000) n`,
	}},
}

// growing are the tables that grow with the number of jobs or tenants.
var growing = []string{"live", "job", "done", "audit", "attempt", "tenant_queue", "tenant_change", "job_after", "job_key", "order_key", "orphan_run", "stat", "stat_part", "schedule", "batch", "batch_change", "batch_count", "progress"}

// wholly are the statements that may read a whole table, because they count its rows or return a page of it.
var wholly = []string{"list_done.sql", "list_live.sql", "wave_places.sql", "wave_ranks.sql", "wave_tenants.sql", "wave_runs.sql", "repair_queues.sql"}

// TestNoPlanHangsOnStatistics plans each statement for a full store with stale statistics. Each plan must use the same
// indexes of growing tables as with fresh statistics, and must sort no more.
func TestNoPlanHangsOnStatistics(t *testing.T) {
	t.Parallel()
	want := walksOf(t, openStore(t, known.Copy(t)), planOf)
	for what, before := range staleStatistics {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			store := openStore(t, before.from.Copy(t))
			batch(t, store, keepStatisticsSQL)
			for _, statement := range slices.Concat(before.then, []string{"vacuum analyze", deleteSQL(0), backlogSQL}) {
				batch(t, store, statement)
			}
			compareWalks(t, want, walksOf(t, store, planOf))
		})
	}
	t.Run("plans of an empty store are kept", func(t *testing.T) {
		t.Parallel()
		walks := walksOf(t, openStore(t, migrated.Copy(t)), keptPlanOf)
		delete(walks, "audit.sql") // the server plans it for its arguments, as the next two
		delete(walks, "stats.sql")
		delete(walks, "batches.sql")
		compareWalks(t, want, walks)
	})
}

// compareWalks checks that each statement uses the wanted indexes.
func compareWalks(t *testing.T, want, got map[string][]string) {
	t.Helper()
	for name, walks := range got {
		if slices.Contains(wholly, name) {
			continue
		}
		for _, walk := range walks {
			if !slices.Contains(alsoWell[name], walk) && (strings.HasPrefix(walk, "the whole") || !slices.Contains(want[name], walk)) {
				t.Errorf("%s: %s; by fresh statistics %q", name, walk, want[name])
			}
		}
	}
}

// keptPlanOf returns the generic plan of a statement, which a connection keeps for any arguments.
func keptPlanOf(t *testing.T, store *postgres.Store, name string, args []any, how ...string) string {
	t.Helper()
	text, err := postgres.StatementOf(name)
	if err != nil {
		t.Fatal(err)
	}
	execute := "execute kept"
	if len(args) > 0 {
		execute += "(null" + strings.Repeat(", null", len(args)-1) + ")"
	}
	tx, err := store.Pool().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(t.Context()) }()
	for _, before := range []string{postgres.WalkInOrder, "set local plan_cache_mode = force_generic_plan", "prepare kept as " + text} {
		if _, err := tx.Exec(t.Context(), before); err != nil {
			t.Fatal(name, err)
		}
	}
	var plan string
	if err := tx.QueryRow(t.Context(), "explain ("+strings.Join(how, ", ")+") "+execute, pgx.QueryExecModeSimpleProtocol).Scan(&plan); err != nil {
		t.Fatal(name, err)
	}
	if _, err := tx.Exec(t.Context(), "deallocate kept"); err != nil {
		t.Fatal(err)
	}
	return plan
}

// alsoWell are index scans that are as good as those with fresh statistics.
var alsoWell = map[string][]string{
	"batch_due.sql":       {"the whole of batch by batch_unfinished"}, // only the first row
	"claimed_before.sql":  {"the whole of live by live_claimed, sorted"},
	"depth.sql":           {"the whole of live by live_blocked"},
	"repair_blocked.sql":  {"job_after by job_after_pkey"}, // by both columns of the index
	"orphan_run_list.sql": {"orphan_run by orphan_run_order, sorted"},
}

// planner returns the server's plan of a statement.
type planner func(t *testing.T, store *postgres.Store, name string, args []any, how ...string) string

// walksOf returns the scans of growing tables, by statement.
func walksOf(t *testing.T, store *postgres.Store, planOf planner) map[string][]string {
	t.Helper()
	out := make(map[string][]string)
	for name, args := range planArguments() {
		var plan []struct{ Plan planNode }
		if err := json.Unmarshal([]byte(planOf(t, store, name, args, "costs off", "format json")), &plan); err != nil {
			t.Fatal(err)
		}
		walks := make(map[string]bool)
		plan[0].Plan.walks(walks, false)
		out[name] = slices.Sorted(maps.Keys(walks))
	}
	return out
}

// walks collects how the plan from a node on reads growing tables.
func (n planNode) walks(into map[string]bool, sorted bool) {
	sorted = sorted || strings.HasSuffix(n.Type, "Sort")
	if slices.Contains(growing, n.Relation) && n.Type != "Tid Scan" && n.Type != "ModifyTable" {
		walk := n.Relation + " by " + n.Index
		if n.Condition == "" {
			walk = "the whole of " + walk
		}
		if sorted {
			walk += ", sorted"
		}
		into[walk] = true
	}
	for _, below := range n.Plans {
		below.walks(into, sorted)
	}
}
