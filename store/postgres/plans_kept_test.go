package postgres_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/store/postgres"
)

// readsWhole returns the name of a large table that a plan reads as a whole; empty: none.
func readsWhole(n planNode) string {
	if n.Type == "Seq Scan" && slices.Contains([]string{"live", "job", "done", "tenant_queue", "tenant_change", "job_after", "orphan_run"}, n.Relation) {
		return n.Relation
	}
	for _, below := range n.Plans {
		if read := readsWhole(below); read != "" {
			return read
		}
	}
	return ""
}

// TestAPlanThatIsSlowIsMadeAnew claims from an empty store until the plan is kept, and then from a full store. The
// plan's estimated cost shows for how many rows the server made it.
func TestAPlanThatIsSlowIsMadeAnew(t *testing.T) {
	t.Parallel()
	store := openStore(t, migrated.Copy(t)+"&pool_max_conns=1&plan_cache_mode=force_generic_plan")
	runPlain(t, store, "vacuum analyze")
	claim := func(want int) {
		t.Helper()
		claimed, err := store.Claim(t.Context(), sluice.ClaimRequest{Queue: "q1", Limit: 1, Holder: "h:1:x", Lease: time.Minute, Token: sluice.NewToken()})
		if err != nil || len(claimed.Jobs) != want {
			t.Fatalf("claimed %d, want %d: %v", len(claimed.Jobs), want, err)
		}
	}
	for range 10 {
		claim(0)
	}
	// On a busy machine the claims may have been slow, so that the plan is made anew again.
	empty, again, minute := keptPlan(t, store, "claim.sql"), keptPlan(t, store, "claim.sql"), time.Now().Add(time.Minute)
	for again.Cost != empty.Cost {
		if time.Now().After(minute) {
			t.Fatalf("a plan that is kept was made anew: %v, then %v", empty.Cost, again.Cost)
		}
		empty, again = again, keptPlan(t, store, "claim.sql")
	}
	store.HurryPlans()
	if _, err := sluice.NewClient(store, sluice.ClientOptions{}).EnqueueMany(t.Context(), slices.Repeat([]sluice.NewJob{{Queue: "q1", Payload: []byte("1")}}, 20_000)); err != nil {
		t.Fatal(err)
	}
	claim(1)
	claim(1)
	full := keptPlan(t, store, "claim.sql")
	// On a busy machine, earlier statements were slow, so the connection waits longer before it plans anew.
	for until := time.Now().Add(time.Minute); full.Cost == empty.Cost && time.Now().Before(until); {
		claim(1)
		full = keptPlan(t, store, "claim.sql")
	}
	if full.Cost == empty.Cost {
		t.Errorf("the plan is that of an empty store:\n%s", full.lines(0))
	}
	if read := readsWhole(full); read != "" {
		t.Errorf("the plan reads the whole of %s:\n%s", read, full.lines(0))
	}
}

func TestPlansOfStatementsThatStaySlowAreKeptForLonger(t *testing.T) {
	t.Parallel()
	made := postgres.PlansAnew(7*time.Minute, func(after time.Duration) bool {
		return after < 2*time.Minute || after > 5*time.Minute
	})
	var seconds []int
	for _, after := range made {
		seconds = append(seconds, int(after.Seconds()))
	}
	if want := []int{1, 3, 7, 15, 31, 63, 127, 247, 300, 302, 306, 314, 330, 362}; !slices.Equal(seconds, want) {
		t.Errorf("made anew after %v seconds, want %v", seconds, want)
	}
}

// A pooler may give a transaction to a server process that knows no prepared statement of the store.
func TestStatementsThatTheServerDoesNotKnowAreSentAnew(t *testing.T) {
	t.Parallel()
	store := openStore(t, migrated.Copy(t)+"&pool_max_conns=1")
	client := sluice.NewClient(store, sluice.ClientOptions{})
	for _, n := range []int{0, 1, 2} {
		if _, err := client.Enqueue(t.Context(), sluice.NewJob{Queue: "q", Payload: []byte("1")}); err != nil {
			t.Fatalf("%d times the server forgot: %v", n, err)
		}
		if _, err := store.Pool().Exec(t.Context(), "deallocate all", pgx.QueryExecModeSimpleProtocol); err != nil {
			t.Fatal(err)
		}
	}
	depth, err := store.Depth(t.Context(), "q", sluice.DepthLimit)
	if err != nil || depth.Ready != 3 {
		t.Errorf("%d are ready, want 3: %v", depth.Ready, err)
	}
}

// keptPlan returns the plan of a statement that the only connection of a store keeps.
func keptPlan(t *testing.T, store *postgres.Store, name string) planNode {
	t.Helper()
	text, err := postgres.StatementOf(name)
	if err != nil {
		t.Fatal(err)
	}
	var prepared string
	err = store.Pool().QueryRow(t.Context(), "select name from pg_prepared_statements where statement = $1", pgx.QueryExecModeExec, text).Scan(&prepared)
	if err != nil {
		t.Fatal(err)
	}
	var plan []struct{ Plan planNode }
	arguments := len(planArguments()[name])
	if err := json.Unmarshal([]byte(explainKept(t, store, prepared, arguments)), &plan); err != nil {
		t.Fatal(err)
	}
	return plan[0].Plan
}

func runPlain(t *testing.T, store *postgres.Store, statement string) {
	t.Helper()
	if _, err := store.Pool().Exec(t.Context(), statement); err != nil {
		t.Fatal(err)
	}
}

// explainKept returns the plan of a prepared statement.
func explainKept(t *testing.T, store *postgres.Store, prepared string, arguments int) string {
	t.Helper()
	conn, err := store.Pool().Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	nulls := strings.TrimSuffix(strings.Repeat("null, ", arguments), ", ")
	results, err := conn.Conn().PgConn().Exec(t.Context(), fmt.Sprintf("explain (format json) execute %s(%s)", prepared, nulls)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return string(results[0].Rows[0][0])
}
