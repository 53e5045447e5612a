package postgres_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-queue/sluice/store/postgres"
)

// TestRepairVacuumsATableWithManyDeadRows counts on the store's own vacuum: autovacuum is off.
func TestRepairVacuumsATableWithManyDeadRows(t *testing.T) {
	t.Parallel()
	url := migrated.Copy(t)
	store := openStore(t, url)
	run(t, store, "alter table sluice.live set (autovacuum_enabled = off)")
	killRows(t, url, 30_000)
	repair(t, store)
	if times := vacuums(t, store); times != 0 {
		t.Errorf("live was vacuumed %d times for 30,000 dead rows, want none", times)
	}
	killRows(t, url, 30_000)
	for vacuums(t, store) == 0 { // beside the repair, and the server tells of it later
		repair(t, store)
		time.Sleep(10 * time.Millisecond)
	}
	var dead int
	if err := store.Pool().QueryRow(t.Context(), "select pg_stat_get_dead_tuples('sluice.live'::regclass)").Scan(&dead); err != nil || dead > 1000 {
		t.Errorf("after the vacuum, %d rows are dead: %v", dead, err)
	}
}

// vacuums is how often the table live was vacuumed.
func vacuums(t *testing.T, store *postgres.Store) (times int) {
	t.Helper()
	if err := store.Pool().QueryRow(t.Context(), "select pg_stat_get_vacuum_count('sluice.live'::regclass)").Scan(&times); err != nil {
		t.Fatal(err)
	}
	return times
}

// killRows inserts and deletes rows of the table live. The session ends, so that the server counts the dead rows at once.
func killRows(t *testing.T, url string, rows int) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), "insert into sluice.live (id, queue, priority, due_at) select gen_random_uuid(), 'q', 5, now() from generate_series(1, $1)", rows); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), "delete from sluice.live where queue = 'q'"); err != nil {
		t.Fatal(err)
	}
	if err := conn.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}
