package postgres_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// historySQL stores finished jobs of some queues. Three quarters of the jobs are older than the retention.
const historySQL = `
	insert into sluice.queue (name, keep_results_ms) select 'q' || n, 3600000 from generate_series(1, 5) n;
	insert into sluice.job (id, queue, tenant, key, priority, payload, created_at)
		select md5(n::text)::uuid, 'q' || n % 5, 't' || n % 1000, 'k' || n, 5, '{}', now() from generate_series(1, 30000) n;
	insert into sluice.done (id, generation, queue, tenant, outcome, due_at, finished_at, attempts, releases, recoveries)
		select md5(n::text)::uuid, 1, 'q' || n % 5, 't' || n % 1000, case when n % 50 = 0 then 'dead' else 'completed' end, now(),
		       now() - interval '1 day' * (n % 40), 0, 0, 0
		from generate_series(1, 30000) n
`

// inOrder has the settings of walk_in_order.sql as parameters of an address.
const inOrder = "&enable_sort=off&enable_incremental_sort=off&jit=off"

// historyPlans are statements on the history, with the index that each must use.
var historyPlans = []struct {
	name, index string
	arguments   []any
}{
	{"list_tenant.sql", "job_by_tenant", []any{"", "t1", "", []string{"completed"}, nil, nil, 100, 0, 0, nil}},
	{"list_tenant.sql" + oldestFirst, "job_by_tenant", []any{"", "t1", "", []string{"completed"}, nil, nil, 100, 0, 0, nil}},
	{"list_key.sql", "job_by_key", []any{"", "", "k1", []string{"completed"}, nil, nil, 100, 0, 0, nil}},
	{"list_key.sql" + oldestFirst, "job_by_key", []any{"", "", "k1", []string{"completed"}, nil, nil, 100, 0, 0, nil}},
	{"list_done.sql" + oldestFirst, "done_pkey", []any{"q1", "", "", []string{"completed", "cancelled"}, nil, nil, 10_001, 0, 0, nil}},
	{"list_done.sql", "done_pkey", []any{"q1", "", "", []string{"completed", "cancelled"}, nil, nil, 10_001, 0, 0, nil}},
	{"prune.sql", "done_ended", []any{"q1", "completed", time.Now().Add(-30 * 24 * time.Hour), 1000, 600_000_000, 600_000_000, 0}},
	{"results_forget.sql", "done_ended", []any{1000}},
}

// historyAgain finds a scan of the history that runs once for each row of another table.
var historyAgain = regexp.MustCompile(`Materialize\n +Index (Only )?Scan (done|job)`)

// TestPlansOfTheHistoryHoldWithStaleStatistics plans statements on the history with statistics of an empty history, of
// a short history, and with fresh ones.
func TestPlansOfTheHistoryHoldWithStaleStatistics(t *testing.T) {
	t.Parallel()
	for state, prepare := range map[string][]string{
		"none":                  {historySQL},
		"from an empty history": {"vacuum analyze", historySQL},
		"fresh":                 {historySQL, "vacuum analyze"},
		"from a short history":  {historySQL, "delete from sluice.done where finished_at > now() - interval '39 days'", "vacuum analyze", "truncate sluice.done, sluice.job, sluice.queue", historySQL},
	} {
		t.Run(state, func(t *testing.T) {
			t.Parallel()
			store := openStore(t, migrated.Copy(t)+inOrder)
			for _, text := range prepare {
				if _, err := store.Pool().Exec(t.Context(), text); err != nil {
					t.Fatal(err)
				}
			}
			for _, p := range historyPlans {
				plan := planNodesOf(t, store, p.name, p.arguments)
				if scans := plan.scansOf("done", "job"); !slices.Contains(scans, "Index Scan "+p.index) && !slices.Contains(scans, "Index Only Scan "+p.index) {
					t.Errorf("%s does not walk along %s:\n%s", p.name, p.index, plan.lines(0))
				} else if slices.ContainsFunc(scans, func(scan string) bool { return scan == "Seq Scan " || scan == "Bitmap Index Scan "+p.index }) {
					t.Errorf("%s reads all of a table, or of what is wanted in order:\n%s", p.name, plan.lines(0))
				}
				if historyAgain.MatchString(plan.lines(0)) {
					t.Errorf("%s goes through rows again for each row of another table:\n%s", p.name, plan.lines(0))
				}
				if state == "fresh" {
					name, _, _ := strings.Cut(p.name, ".") // both orders have the same plan
					comparePlan(t, store, name, plan.lines(0))
				}
			}
		})
	}
}

// scansOf lists the kind and the index of each scan of some tables.
func (n planNode) scansOf(tables ...string) (out []string) {
	if slices.Contains(tables, n.Relation) && n.Operation == "" || n.Type == "Bitmap Index Scan" {
		out = append(out, n.Type+" "+n.Index)
	}
	for _, below := range n.Plans {
		out = append(out, below.scansOf(tables...)...)
	}
	return out
}
