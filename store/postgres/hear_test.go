package postgres_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/pgtest"
)

// hearings collects the reports of a store about whether it hears signals.
func hearings(t *testing.T, store sluice.Store) <-chan sluice.Hearing {
	t.Helper()
	said := make(chan sluice.Hearing, 100)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- store.Watch(ctx, func(s sluice.Signal) {
			if s.Hearing != "" {
				said <- s.Hearing
			}
		})
	}()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return said
}

// TestAStoreTellsThatItHearsNothing cuts the listening connection. Then it makes the server swallow notifications
// without an error. The store must report both, and report when it hears again.
func TestAStoreTellsThatItHearsNothing(t *testing.T) {
	t.Parallel()
	at := pgtest.NewDatabase(t)
	conn, err := pgx.Connect(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	do := func(sql string) {
		t.Helper()
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	do("do $$ begin execute format('alter database %I set search_path = public, pg_catalog', current_database()); end $$")
	said := hearings(t, openStore(t, at))
	next := func(want sluice.Hearing, when string) {
		t.Helper()
		select {
		case got := <-said:
			if got != want {
				t.Fatalf("%s the store hears %s, want %s", when, got, want)
			}
		case <-t.Context().Done():
			t.Fatalf("%s the store does not say that it hears %s", when, want)
		}
	}
	next(sluice.HearsAll, "at first")
	do("select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and query = 'listen sluice'")
	next(sluice.HearsLess, "after its connection was cut")
	next(sluice.HearsAll, "once it has another one")
	do("create function public.pg_notify(text, text) returns void language sql as ''")
	next(sluice.HearsLess, "when the server swallows notifications")
	do("drop function public.pg_notify(text, text)")
	next(sluice.HearsAll, "when the server does so no more")
}
