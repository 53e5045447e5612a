package sqlite_test

import (
	"database/sql"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/history"
	"github.com/sluice-queue/sluice/store/sqlite"
)

// update writes the plans anew: make plans.
var update = flag.Bool("update", false, "write the plans that are kept")

// claimStatements are the statements of a claim, and other statements that run as often for a queue.
var claimStatements = []string{
	"gate", "claim_find", "claim", "claimed", "claimed_before", "next_due", "in_flight", "flow_take", "tenant_queue_adopt", "tenant_queue_dissolve",
	"tenant_queue_wake", "tenant_queue_first", "tenant_queue_limits", "tenant_queue_held", "tenant_queue_find", "tenant_queue_due", "tenant_queue_keep", "tenant_queue_low_water", "tenant_queue_next",
	"depth", "position", "holding", "behind", "late", "intend", "dispatches", "dispatches_overdue", "dispatches_of", "orphan_run_list",
}

// pruneStatements are the statements that delete history.
var pruneStatements = []string{"prune_class", "prune_old", "prune_lives", "prune_attempts", "prune_jobs", "prune_keys"}

// batchStatements are the statements that count batches and decide about them.
var batchStatements = []string{"batch", "batch_add", "batch_changed", "batch_close", "batch_count_forget", "batch_count_new", "batch_decided", "batch_forget", "batch_look_all", "batch_old", "batch_open", "batch_pause", "batch_recount", "batch_seen", "batch_state", "batches"}

// resultStatements are the statements that read results and remove old ones.
var resultStatements = []string{"ended", "progress", "results_class", "results_old", "results_forget", "results_cursor"}

// listStatements are the statements that list jobs.
var listStatements = []string{"list_tenant", "list_key", "list_floor", "list_dead", "list_live", "list_done", "list_batch", "list_batch_floor"}

// oldestFirst is a suffix for the name of a statement. It asks for the opposite order.
const oldestFirst = " oldest first"

// TestPlansOfEitherOrderAreTheSame checks that each list uses the same index for both orders.
func TestPlansOfEitherOrderAreTheSame(t *testing.T) {
	t.Parallel()
	store := openStore(t, filepath.Join(t.TempDir(), "sluice.db"))
	for _, name := range listStatements {
		newest, oldest := planOf(t, store.DB(), name), planOf(t, store.DB(), name+oldestFirst)
		if newest != oldest {
			t.Errorf("%s: for the newest first:\n%s\nfor the oldest first:\n%s", name, newest, oldest)
		}
	}
}

// scheduleStatements are the statements that read schedules. The search for due ones runs each second, or more often.
var scheduleStatements = []string{"schedules_next", "schedules_due", "schedules", "schedules_queue", "queue_schedules", "schedule", "schedule_act"}

// sorted are the statements that may sort. They sort jobs in flight up to a limit, or the limits of a claim's tenants,
// but never a backlog.
var sorted = []string{"claimed_before", "tenant_queue_limits", "holding", "behind", "late", "dispatches_overdue", "dispatches_of"}

// wholeScan finds a scan of a whole table or index in a plan.
var wholeScan = regexp.MustCompile(`SCAN (sluice_\w+|[lw])\b`)

// inFlight is a scan of all claimed jobs. A claim that is sent again after a lost answer needs it.
const inFlight = "SCAN sluice_live USING INDEX sluice_live_claimed"

// TestPlansAreThoseThatAreKept compares the plans of frequent statements with testdata/plans. It also checks that no
// plan reads a whole table or sorts a backlog.
func TestPlansAreThoseThatAreKept(t *testing.T) {
	t.Parallel()
	store := openStore(t, filepath.Join(t.TempDir(), "sluice.db"))
	for _, name := range slices.Concat(claimStatements, pruneStatements, listStatements, scheduleStatements, batchStatements, resultStatements) {
		t.Run(name, func(t *testing.T) {
			plan := planOf(t, store.DB(), name)
			if found := wholeScan.FindString(strings.ReplaceAll(plan, inFlight, "")); found != "" {
				t.Errorf("it reads the whole of a table, %s:\n%s", found, plan)
			}
			if strings.Contains(plan, "TEMP B-TREE") && !slices.Contains(sorted, name) {
				t.Errorf("it sorts:\n%s", plan)
			}
			path := filepath.Join("testdata", "plans", name+".txt")
			if *update {
				if err := os.WriteFile(path, []byte(plan), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			kept, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if string(kept) != plan {
				t.Errorf("the plan has changed; if that is well, run `make plans`. It was:\n%s\nit is:\n%s", kept, plan)
			}
		})
	}
}

// SQLite plans a statement anew at each run if its limit is a single variable, because another plan may suit the value
// better. Planning takes longer than most statements run. With a sum as the limit, SQLite does not plan anew.
func TestNoStatementIsPlannedAnewForItsLimit(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("sql/*.sql")
	if err != nil || len(files) < 100 {
		t.Fatalf("%d statements: %v", len(files), err)
	}
	bare := regexp.MustCompile(`(?m)^(?:[^-].*)?limit \?\d+(?: \+ 0)?`)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range bare.FindAllString(string(text), -1) {
			if !strings.HasSuffix(found, " + 0") {
				t.Errorf("%s: write `+ 0` behind the variable: %s", file, found)
			}
		}
	}
}

var parameter = regexp.MustCompile(`\?(\d+)`)

// planOf returns the plan of a statement of the store.
func planOf(t *testing.T, db *sql.DB, name string) string {
	t.Helper()
	name, oldest := strings.CutSuffix(name, oldestFirst)
	file, err := os.ReadFile(filepath.Join("sql", name+".sql"))
	if err != nil {
		t.Fatal(err)
	}
	text := history.InOrder(sluice.JobFilter{OldestFirst: oldest}, sqlite.WithColumns(string(file)))
	most := 0
	for _, found := range parameter.FindAllStringSubmatch(text, -1) {
		n, err := strconv.Atoi(found[1])
		if err != nil {
			t.Fatal(err)
		}
		most = max(most, n)
	}
	rows, err := db.QueryContext(t.Context(), "explain query plan "+text, make([]any, most)...)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	depth, plan := map[int]int{0: -1}, ""
	for rows.Next() {
		var id, parent, unused int
		var detail string
		if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
			t.Fatal(err)
		}
		depth[id] = depth[parent] + 1
		plan += strings.Repeat("  ", depth[id]) + detail + "\n"
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return plan
}
