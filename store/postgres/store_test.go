package postgres_test

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluice-queue/sluice/internal/pgtest"
	"github.com/sluice-queue/sluice/store/postgres"
	"github.com/sluice-queue/sluice/store/storetest"
)

// TestMain runs fewer random sequences than elsewhere, since each verb is a round trip to the server; and more tests at
// once, since they wait for it.
func TestMain(m *testing.M) {
	for name, value := range map[string]string{"rapid.checks": "30", "test.parallel": "3"} {
		if err := flag.Set(name, value); err != nil {
			panic(err)
		}
	}
	pgtest.Main(m)
}

// timeColumns are all instants that the store keeps.
var timeColumns = []string{
	"job.created_at", "job.expires_at", "live.due_at", "live.expires_at", "live.claimed_at", "live.lease_until",
	"done.due_at", "done.claimed_at", "done.finished_at", "done.requeued_at", "attempt.claimed_at", "attempt.failed_at", "result_cursor.upto",
	"job_key.until", "flow.filled_at", "flow.permits_from", "permit.claimed_at", "permit.check_at", "started.at", "flow.claimed_at", "flow.counted_from", "flow.counted_since", "flow.wakes_from", "flow.fair_since",
	"tenant_queue.wake_at", "tenant_queue.filled_at", "tenant_queue.counted_from", "tenant_change.at", "tenant_change.due_at", "tenant_limit.until", "tenant_limit.paused_until", "named_limit.closed_until", "limit_key.filled_at", "limit_key.closed_until", "limit_key.idle_from", "limit_lane.wake_at", "limit_change.at", "holder.started", "holder.seen", "instruction.until", "instruction.changed_at", "lead.since", "lead.until",
	"wave_count.counted_at", "hold.held_at", "orphan_run.cancelled_at", "orphan_run.claimed_at", "pace.claimed_at",
	"stat.at", "stat_part.at", "stat_holder.at",
	"schedule.next_at", "batch.created_at", "batch.closed_at", "batch.completed_at", "batch.succeeded_at", "batch.died_at", "access_token.used_at", "alert_silence.created_at", "alert_silence.until", "alert_receiver.seen",
}

// open makes two stores on a new database.
func open(t *testing.T) storetest.Bench {
	t.Helper()
	return openAt(t, migrated.Copy(t)) // a copy costs less than migrating
}

// openAt makes two stores on an empty database.
func openAt(t *testing.T, url string) storetest.Bench {
	t.Helper()
	return benchOf(t, openStore(t, url), openStore(t, url))
}

// benchOf makes a bench of two stores on one database. Time passes by moving everything stored into the past,
// so that the store itself goes by the server's clock alone.
func benchOf(t *testing.T, store, other *postgres.Store) storetest.Bench {
	t.Helper()
	refresh := func() {
		store.ForgetLowWater()
		other.ForgetLowWater()
	}
	advance := func(d time.Duration) {
		defer refresh()
		if _, err := store.Pool().Exec(context.Background(), passing(d)); err != nil {
			t.Fatalf("advance: %v", err)
		}
	}
	setColumn := func(column string, value any) {
		if _, err := store.Pool().Exec(context.Background(), "update sluice.queue set "+column+" = $1 where name = 'payments'", value); err != nil {
			t.Fatalf("set %s: %v", column, err)
		}
	}
	return storetest.Bench{Store: store, Other: other, Now: time.Now, Advance: advance, Refresh: refresh, SetColumn: setColumn, Slow: true}
}

// passing moves all instants into the past, in the tables that hold any. Nothing is woken by it: tenant queues must wake by
// themselves. Tables are only changed if they must be, since every connection plans the statements for a changed table anew.
func passing(d time.Duration) string {
	columns := map[string][]string{}
	for _, column := range timeColumns {
		table, name := split(column)
		columns[table] = append(columns[table], name)
	}
	var text strings.Builder
	text.WriteString("do $$ begin ")
	for _, table := range slices.Sorted(maps.Keys(columns)) {
		var sets, finite []string
		for _, name := range columns[table] {
			sets = append(sets, fmt.Sprintf("%s = %[1]s - interval '%d microseconds'", name, d.Microseconds()))
			finite = append(finite, "isfinite("+name+")")
		}
		update := fmt.Sprintf("update sluice.%s set %s where %s;", table, strings.Join(sets, ", "), strings.Join(finite, " or "))
		if table == "tenant_limit" {
			update = "alter table sluice.tenant_limit disable trigger terms_changed;" + update + "alter table sluice.tenant_limit enable trigger terms_changed;"
		}
		fmt.Fprintf(&text, "if exists (select from sluice.%s) then %s end if; ", table, update)
	}
	return text.String() + "end $$"
}

func split(column string) (table, name string) {
	for i := range column {
		if column[i] == '.' {
			return column[:i], column[i+1:]
		}
	}
	return column, ""
}

func openStore(t *testing.T, url string) *postgres.Store {
	t.Helper()
	// On a busy machine a call may wait long for its turn.
	store, err := postgres.Open(t.Context(), url+"&pool_max_conns=10", postgres.Options{Migrate: true, CallTimeout: 5 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return store
}

func TestPostgresObeysTheRules(t *testing.T) {
	t.Parallel()
	used := &databases{owner: t, make: migrated.Copy}
	storetest.Run(t, used.open)
}

func TestPostgresAgreesWithTheModel(t *testing.T) {
	t.Parallel()
	storetest.Model(t, open)
}

func TestPostgresAgreesWithTheModelOfLimits(t *testing.T) {
	t.Parallel()
	storetest.ModelOfLimits(t, open)
}

func TestPostgresKeepsLimitsAndGetsNothingStuck(t *testing.T) {
	t.Parallel()
	storetest.Turns(t, open)
}
