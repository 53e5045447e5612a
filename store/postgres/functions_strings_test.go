package postgres_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/sluice-queue/sluice/internal/pgtest"
	"github.com/sluice-queue/sluice/store/postgres"
)

// TestFunctionsWorkWhereStringsHaveBackslashes uses a database of which an old program needs that backslashes escape in every string.
// PostgreSQL reads the text of a function by the settings of the session that calls it.
func TestFunctionsWorkWhereStringsHaveBackslashes(t *testing.T) {
	t.Parallel()
	at := pgtest.NewDatabase(t)
	conn, err := pgx.Connect(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), "alter database "+conn.Config().Database+" set standard_conforming_strings = off"); err != nil {
		t.Fatal(err)
	}
	_ = conn.Close(t.Context())
	if _, err := postgres.Migrate(t.Context(), at); err != nil {
		t.Fatal(err)
	}
	openStore(t, at)
	if conn, err = pgx.Connect(t.Context(), at); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(t.Context()) })
	const enqueue = `select id from sluice.enqueue_many(jobs => '[{"queue": "mail", "payload": {"a": "a \" [ b"}}]', new_queue => true)`
	var id, token, kept string
	if err := conn.QueryRow(t.Context(), strings.ReplaceAll(enqueue, `\"`, `\\"`)).Scan(&id); err != nil {
		t.Fatal(err)
	}
	if err := conn.QueryRow(t.Context(), "select token from sluice.claim(queues => '{mail}', holder => 'h:1:a')").Scan(&token); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), "select sluice.fail(id => $1, token => $2, error => 'no route: password is hunter2x')", id, token); err != nil {
		t.Fatal(err)
	}
	if err := conn.QueryRow(t.Context(), "select error from sluice.live where id = $1", id).Scan(&kept); err != nil || strings.Contains(kept, "hunter") {
		t.Errorf("the stored error is %q, %v", kept, err)
	}
	var refused *pgconn.PgError
	for _, name := range []string{"a\x01b", "a\u202eb"} {
		_, err := conn.Exec(t.Context(), "select sluice.enqueue(queue => 'mail', payload => '1', tenant => $1)", name)
		if !errors.As(err, &refused) || refused.Code != "SL004" {
			t.Errorf("a tenant %q: %v, want it refused", name, err)
		}
	}
}
