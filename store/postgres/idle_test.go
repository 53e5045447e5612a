package postgres_test

import (
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-queue/sluice/store/postgres"
)

// TestCallsGoOnWhereTheServerEndsIdleSessions calls a store after the server has ended its only connection, because the connection was
// idle. The server says so in the answer to the next statement.
func TestCallsGoOnWhereTheServerEndsIdleSessions(t *testing.T) {
	t.Parallel()
	at := migrated.Copy(t)
	store, err := postgres.Open(t.Context(), at+"&pool_max_conns=1&idle_session_timeout=200&application_name=idle", postgres.Options{NoStatistics: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	conn, err := pgx.Connect(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(t.Context()) })
	for range 3 {
		if _, err := store.Now(t.Context()); err != nil {
			t.Fatalf("after a session that the server has ended: %v", err)
		}
		for until, alive := time.Now().Add(10*time.Minute), true; alive; time.Sleep(50 * time.Millisecond) {
			const look = "select exists (select from pg_stat_activity where application_name = 'idle' and datname = current_database())"
			if err := conn.QueryRow(t.Context(), look).Scan(&alive); err != nil {
				t.Fatal(err)
			}
			if time.Now().After(until) {
				t.Fatal("the server does not end the idle session")
			}
		}
	}
}
