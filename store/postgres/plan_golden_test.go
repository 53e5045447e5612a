package postgres_test

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluice-queue/sluice/store/postgres"
)

// update writes the plans anew: make plans.
var update = flag.Bool("update", false, "write the plans that are kept")

// goldenServer is the server version that made the plans in testdata/plans. Other versions may plan differently, but
// checkPlan holds for all.
const goldenServer = "15"

// claimStatements are the statements that a claim may run.
var claimStatements = []string{
	"look.sql", "claim.sql", "claim_together.sql", "next_due.sql", "in_flight.sql", "flow_lock.sql", "flow_add.sql", "flow_there.sql", "flow_take.sql",
	"tenant_change_take.sql", "tenant_queue_adopt.sql", "tenant_queue_dissolve.sql", "tenant_queue_due.sql", "tenant_queue_wake.sql", "tenant_queue_first.sql", "tenant_queue_limits.sql",
	"tenant_queue_held.sql", "tenant_queue_claim.sql", "tenant_queue_look.sql", "tenant_queue_keep.sql", "tenant_queue_next.sql",
}

// planNode is a step of a plan, as the server explains it.
type planNode struct {
	Type      string     `json:"Node Type"`
	Operation string     `json:"Operation"`
	Relation  string     `json:"Relation Name"`
	Index     string     `json:"Index Name"`
	Subplan   string     `json:"Subplan Name"`
	Condition string     `json:"Index Cond"`
	Cost      float64    `json:"Total Cost"`
	Plans     []planNode `json:"Plans"`
}

// TestPlansAreThoseThatAreKept compares the plan of each statement of a claim with testdata/plans. It also checks that
// no plan reads or sorts a whole backlog.
func TestPlansAreThoseThatAreKept(t *testing.T) {
	t.Parallel()
	store := openStore(t, known.Copy(t))
	arguments := planArguments()
	for _, name := range claimStatements {
		t.Run(name, func(t *testing.T) {
			plan := planNodesOf(t, store, name, arguments[name])
			checkPlan(t, plan)
			comparePlan(t, store, strings.TrimSuffix(name, ".sql"), plan.lines(0))
		})
	}
}

func planNodesOf(t *testing.T, store *postgres.Store, name string, arguments []any) planNode {
	t.Helper()
	var plan []struct{ Plan planNode }
	if err := json.Unmarshal([]byte(planOf(t, store, name, arguments, "costs off", "format json")), &plan); err != nil {
		t.Fatal(err)
	}
	return plan[0].Plan
}

// checkPlan checks that a plan neither reads nor sorts a whole backlog.
func checkPlan(t *testing.T, n planNode) {
	t.Helper()
	if n.Type == "Seq Scan" && isBacklog(n.Relation) {
		t.Errorf("it reads the whole of %s", n.Relation)
	}
	if strings.HasSuffix(n.Type, "Sort") && n.readsBacklog() {
		t.Errorf("it sorts a backlog:\n%s", n.lines(0))
	}
	for _, below := range n.Plans {
		checkPlan(t, below)
	}
}

func isBacklog(table string) bool {
	return table == "live" || table == "tenant_queue" || table == "tenant_change"
}

func (n planNode) readsBacklog() bool {
	if isBacklog(n.Relation) {
		return true
	}
	for _, below := range n.Plans {
		if below.readsBacklog() {
			return true
		}
	}
	return false
}

// lines writes a plan without estimates and made-up names, which differ from server to server.
func (n planNode) lines(depth int) string {
	words := []string{strings.Repeat("  ", depth) + n.Type}
	for _, word := range []string{n.Operation, n.Relation, n.Index} {
		if word != "" {
			words = append(words, word)
		}
	}
	if n.Subplan != "" {
		name, _, _ := strings.Cut(n.Subplan, " (returns")
		words = append(words, "("+name+")")
	}
	text := strings.Join(words, " ") + "\n"
	for _, below := range n.Plans {
		text += below.lines(depth + 1)
	}
	return text
}

func comparePlan(t *testing.T, store *postgres.Store, name, plan string) {
	t.Helper()
	var version string
	if err := store.Pool().QueryRow(t.Context(), "show server_version").Scan(&version); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(version, goldenServer+".") {
		return
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
}
