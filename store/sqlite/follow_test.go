package sqlite_test

import (
	"database/sql"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/health"
	"github.com/sluice-queue/sluice/store/sqlite"
	"github.com/sluice-queue/sluice/store/storetest"
)

func TestRowsFollowTheirJobs(t *testing.T) {
	t.Parallel()
	storetest.Follow(t, func(t *testing.T) storetest.FollowBench {
		bench := open(t)
		store, other := bench.Store.(*sqlite.Store), bench.Other.(*sqlite.Store)
		const id = "lower(substr(hex(%), 1, 8) || '-' || substr(hex(%), 9, 4) || '-' || substr(hex(%), 13, 4) || '-' || substr(hex(%), 17, 4) || '-' || substr(hex(%), 21))"
		return storetest.FollowBench{
			Bench: bench, Store: store, Other: other, DB: damage(t, pathOf(t, store)),
			Birth: "create trigger birth after insert on sluice_job begin insert into followed values (" + named(id, "new.id") + ", 'queued', 1, 0, '', 0); end",
			Jobs:  "sluice_jobs", TextID: named(id, "j.id"),
			Triggers:    `select name from sqlite_master where type = 'trigger' and name like 'sluice\_follow%' escape '\'`,
			LoseTrigger: `drop trigger sluice_follow_rows_ended`,
			Version:     "select schema_version from pragma_schema_version",
		}
	})
}

// A schema step may rebuild the tables of jobs. The step must work although a follower's own table is gone.
func TestFollowersOutliveTheSteps(t *testing.T) {
	t.Parallel()
	store := openStore(t, filepath.Join(t.TempDir(), "sluice.db"))
	free := damage(t, pathOf(t, store)) // this connection may change the schema
	exec := func(text string) {
		t.Helper()
		if _, err := free.ExecContext(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	exec("create table rows (id text, state text)")
	follower := sluice.Follower{Name: "rows", Queue: "mail", Statement: "update rows set state = moved.state where id = moved.id"}
	if err := store.Follow(t.Context(), follower); err != nil {
		t.Fatal(err)
	}
	exec("drop table rows")
	err := transact(free, func(tx *sql.Tx) error {
		return sqlite.Migrated(t.Context(), tx, "alter table sluice_live rename to x; create table sluice_live as select * from x; drop table x")
	})
	if err != nil {
		t.Fatal(err)
	}
	exec("create table rows (id text, state text)")
	report, err := store.Health(t.Context(), health.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(report.Findings, func(f health.Finding) bool { return f.Check == "follower" && f.Well }) {
		t.Errorf("health is %+v", report.Findings)
	}
}

// A rollback of the caller's transaction undoes the changes of the row and of the job.
func TestFollowerIsPartOfTheCallersTransaction(t *testing.T) {
	t.Parallel()
	store := openStore(t, filepath.Join(t.TempDir(), "sluice.db"))
	client := sluice.NewClient(store, sluice.ClientOptions{})
	state := func(tx sqlite.Tx) (state string) {
		rows, err := tx.QueryContext(t.Context(), "select state from rows")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = rows.Close() }()
		for rows.Next() {
			if err := rows.Scan(&state); err != nil {
				t.Fatal(err)
			}
		}
		return state
	}
	if _, err := store.DB().ExecContext(t.Context(), "create table rows (state text); insert into rows values ('')"); err != nil {
		t.Fatal(err)
	}
	if err := store.Follow(t.Context(), sluice.Follower{Name: "rows", Queue: "mail", Statement: "update rows set state = moved.state"}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Enqueue(t.Context(), sluice.NewJob{Queue: "mail", Payload: []byte(`1`)}); err != nil {
		t.Fatal(err)
	}
	claimed, err := store.Claim(t.Context(), sluice.ClaimRequest{Queue: "mail", Limit: 1, Holder: "h", Lease: time.Minute, Token: sluice.NewToken()})
	if err != nil || len(claimed.Jobs) != 1 {
		t.Fatal(claimed, err)
	}
	undo := errors.New("undo")
	err = store.Transact(t.Context(), func(tx sqlite.Tx) error {
		if err := sqlite.CompleteTx(t.Context(), tx, claimed.Jobs[0], nil); err != nil {
			return err
		}
		if state := state(tx); state != "completed" {
			t.Errorf("in the transaction it is %s", state)
		}
		return undo
	})
	if !errors.Is(err, undo) {
		t.Fatal(err)
	}
	if state := state(store.DB()); state != "claimed" {
		t.Errorf("afterwards it is %s", state)
	}
}

// pathOf is the file of a store.
func pathOf(t *testing.T, store *sqlite.Store) (path string) {
	t.Helper()
	if err := store.DB().QueryRowContext(t.Context(), "select file from pragma_database_list").Scan(&path); err != nil {
		t.Fatal(err)
	}
	return path
}

// A store on the caller's database has no connection of its own that may change the schema.
func TestFollowThroughTheCallersDatabase(t *testing.T) {
	t.Parallel()
	db := damage(t, filepath.Join(t.TempDir(), "sluice.db"))
	store, err := sqlite.New(t.Context(), db, sqlite.Options{Migrate: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	if _, err := db.ExecContext(t.Context(), "create table rows (id text, state text)"); err != nil {
		t.Fatal(err)
	}
	follower := sluice.Follower{Name: "rows", Queue: "mail", Statement: "update rows set state = moved.state where id = moved.id"}
	if err := store.Follow(t.Context(), follower); err != nil {
		t.Fatal(err)
	}
	if found, err := store.Followers(t.Context()); err != nil || len(found) != 1 {
		t.Errorf("followers %+v, %v", found, err)
	}
	if err := store.Unfollow(t.Context(), "rows"); err != nil {
		t.Error(err)
	}
}

// named puts a column into an expression, in the place of %.
func named(expression, column string) string { return strings.ReplaceAll(expression, "%", column) }
