package postgres_test

import (
	"context"
	"errors"
	"net/url"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/store/postgres"
	"github.com/sluice-queue/sluice/store/storetest"
)

func TestRowsFollowTheirJobs(t *testing.T) {
	t.Parallel()
	storetest.Follow(t, func(t *testing.T) storetest.FollowBench {
		bench := open(t)
		store, other := bench.Store.(*postgres.Store), bench.Other.(*postgres.Store)
		db := stdlib.OpenDBFromPool(store.Pool())
		t.Cleanup(func() { _ = db.Close() })
		return storetest.FollowBench{
			Bench: bench, Store: store, Other: other, DB: db,
			Birth: `create function birth() returns trigger language plpgsql as $$ begin insert into followed values (new.id::text, 'queued', 1, 0, '', 0); return null; end $$;
				create trigger birth after insert on sluice.job for each row execute function birth()`,
			Jobs: "sluice.jobs", TextID: "j.id::text",
			Triggers:    `select tgname from pg_trigger where tgname like 'follow\_%'`,
			LoseTrigger: `drop trigger follow_rows_ended on sluice.done`,
			Version:     `select string_agg(oid::text || xmin::text, ' ' order by oid) from pg_trigger`,
		}
	})
}

// A role that may only call functions moves jobs. The follower's rows must change, although the role cannot even read
// them. A role that does not own Sluice's tables learns why it cannot follow, but finds an existing follower.
func TestRowsFollowWhoeverMovesTheirJobs(t *testing.T) {
	t.Parallel()
	r := newRoles(t)
	r.exec("create table rows (id text primary key, state text)")
	follower := sluice.Follower{Name: "rows", Queue: "scraper", Statement: "update rows set state = moved.state where id = moved.id"}
	other := r.role("other")
	for _, sql := range []string{"grant usage on schema sluice to ", "grant select on sluice.follower, sluice.migration to "} {
		r.exec(sql + other)
	}
	at, err := url.Parse(r.url)
	if err != nil {
		t.Fatal(err)
	}
	at.User = url.User(other)
	theirs := openStore(t, at.String())
	if err := theirs.Follow(t.Context(), follower); !isCode(err, "42501") && !errors.Is(err, sluice.ErrInvalid) {
		t.Errorf("follow as another role: %v", err)
	}
	if err := r.owner.Follow(t.Context(), follower); err != nil {
		t.Fatal(err)
	}
	if err := theirs.Follow(t.Context(), follower); err != nil {
		t.Errorf("follow what is there as another role: %v", err)
	}

	worker := r.as(r.worker)
	id := value[string](r, r.as(r.producer), `select id::text from sluice.enqueue(queue => 'scraper', payload => '{}')`)
	r.exec("insert into rows values ($1, 'queued')", id)
	r.exec("create schema theirs")
	r.exec("grant usage, create on schema theirs to " + r.worker)
	value[string](r, worker, "select set_config('search_path', 'theirs, pg_temp', false)")
	if _, err := worker.Exec(t.Context(), "create temporary table rows (id text, state text)"); err != nil {
		t.Fatal(err)
	}
	token := value[string](r, worker, `select token::text from sluice.claim(queues => '{scraper}', holder => 'w1')`)
	value[bool](r, worker, `select sluice.complete(id => $1::text::uuid, token => $2::text::uuid)`, id, token)
	if state := value[string](r, r.as(currentOwner(r)), "select state from rows"); state != "completed" {
		t.Errorf("the row is %s", state)
	}
}

func currentOwner(r *roles) (name string) {
	r.Helper()
	if err := r.owner.Pool().QueryRow(r.Context(), "select current_user").Scan(&name); err != nil {
		r.Fatal(err)
	}
	return name
}

// A rollback of the caller's transaction undoes the changes of the row and of the job, also if plain SQL moved the job.
func TestFollowerIsPartOfTheCallersTransaction(t *testing.T) {
	t.Parallel()
	store := openStore(t, migrated.Copy(t))
	exec := func(db interface {
		Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	}, sql string,
	) {
		t.Helper()
		if _, err := db.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	exec(store.Pool(), "create table rows (id text primary key, state text)")
	err := store.Follow(t.Context(), sluice.Follower{Name: "rows", Queue: "mail", Statement: "update rows set state = moved.state where id = moved.id"})
	if err != nil {
		t.Fatal(err)
	}
	receipt, err := sluice.NewClient(store, sluice.ClientOptions{}).Enqueue(t.Context(), sluice.NewJob{Queue: "mail", Payload: []byte(`1`)})
	if err != nil {
		t.Fatal(err)
	}
	exec(store.Pool(), "insert into rows values ('"+receipt.ID.String()+"', 'queued')")
	state := func(db interface {
		QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
	},
	) (state string) {
		if err := db.QueryRow(t.Context(), "select state from rows").Scan(&state); err != nil {
			t.Fatal(err)
		}
		return state
	}
	tx, err := store.Pool().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	exec(tx, "update sluice.live set state = 'uncertain'")
	if state := state(tx); state != "uncertain" {
		t.Errorf("in the transaction it is %s", state)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if state := state(store.Pool()); state != "queued" {
		t.Errorf("afterwards it is %s", state)
	}
}
