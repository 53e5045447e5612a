package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/pgtest"
	"github.com/sluice-queue/sluice/store/postgres"
)

// stepOf brings an empty database to an older step of the schema.
func stepOf(t *testing.T, url string, step int) {
	t.Helper()
	pending, err := postgres.PendingMigrations(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	if step == 0 {
		return
	}
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	if _, err := conn.Exec(t.Context(), postgres.MigrationTable); err != nil {
		t.Fatal(err)
	}
	for _, m := range pending[:step] {
		if _, err := conn.Exec(t.Context(), m.SQL); err != nil {
			t.Fatalf("step %d: %v", m.Version, err)
		}
		if _, err := conn.Exec(t.Context(), "insert into sluice.migration (version, name, checksum, works_from) values ($1, $2, $3, $4)",
			m.Version, m.Name, m.Checksum, m.WorksFrom); err != nil {
			t.Fatal(err)
		}
	}
}

// migrateAtOnce migrates with many connections. All of them read the present step before the first begins to migrate.
func migrateAtOnce(t *testing.T, url string, processes int) {
	t.Helper()
	errs := make([]error, processes)
	var looked, done sync.WaitGroup
	looked.Add(processes)
	for i := range processes {
		done.Go(func() {
			if i%2 == 0 {
				looked.Done()
				looked.Wait()
				_, errs[i] = postgres.Migrate(t.Context(), url)
				return
			}
			_, err := postgres.PendingMigrations(t.Context(), url)
			looked.Done()
			looked.Wait()
			var store *postgres.Store
			if store, errs[i] = postgres.Open(t.Context(), url+"&pool_max_conns=1", postgres.Options{Migrate: true, CallTimeout: 5 * time.Minute}); errs[i] == nil {
				errs[i] = store.Close()
			}
			errs[i] = errors.Join(err, errs[i])
		})
	}
	done.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Error(err)
	}
	if pending, err := postgres.PendingMigrations(t.Context(), url); err != nil || len(pending) != 0 {
		t.Errorf("pending after the migration: %v, %v", pending, err)
	}
}

// TestFiftyProcessesMigrateAtOnce runs alone, because it uses 50 connections of the server and changes the version of
// this process. The changed version has two made-up steps more.
func TestFiftyProcessesMigrateAtOnce(t *testing.T) {
	t.Cleanup(postgres.KnowOneStepMore("create table sluice.mood (job uuid primary key, mood text not null)", 1))
	t.Cleanup(postgres.KnowOneStepMore("alter table sluice.mood add column since timestamptz", 1))
	steps, err := postgres.PendingMigrations(t.Context(), pgtest.NewDatabase(t))
	if err != nil {
		t.Fatal(err)
	}
	last := len(steps) - 1 // the step after it only makes the functions
	for step := range last {
		processes := 50
		if step != 0 && step != last-1 { // the other steps are migrated in the same way
			if processes = 8; testing.Short() {
				continue
			}
		}
		t.Run(fmt.Sprintf("from step %d", step), func(t *testing.T) {
			if processes < 50 {
				t.Parallel()
			}
			url := pgtest.NewDatabase(t)
			stepOf(t, url, step)
			migrateAtOnce(t, url, processes)
		})
	}
}

// TestNextVersionMigratesADatabaseOfThisOne changes the version of this process, so no other test runs beside it.
func TestNextVersionMigratesADatabaseOfThisOne(t *testing.T) {
	url := migrated.Copy(t)
	store := openStore(t, url)
	client := sluice.NewClient(store, sluice.ClientOptions{})
	enqueue := func() error {
		_, err := client.Enqueue(t.Context(), sluice.NewJob{Queue: "q", Payload: []byte(`{}`)})
		return err
	}
	if err := enqueue(); err != nil {
		t.Fatal(err)
	}
	stored := func(want int, what, query string) {
		t.Helper()
		var got int
		if err := store.Pool().QueryRow(t.Context(), query).Scan(&got); err != nil || got != want {
			t.Errorf("%s: %d, want %d (%v)", what, got, want, err)
		}
	}
	const makesMood = "create table sluice.mood (job uuid primary key, mood text not null); insert into sluice.mood select id, 'new' from sluice.job;"

	undo := postgres.KnowOneStepMore(makesMood+" insert into sluice.mood values (null, null)", 1)
	if _, err := postgres.Migrate(t.Context(), url); err == nil || !strings.Contains(err.Error(), "step 2 (of the next version)") {
		t.Errorf("a step that fails gives %v", err)
	}
	stored(0, "tables of a step that failed", "select count(*) from pg_tables where tablename = 'mood'")
	stored(1, "steps after one that failed", "select count(*) from sluice.migration")
	undo()

	undo = postgres.KnowOneStepMore(makesMood, 1)
	if _, err := postgres.Open(t.Context(), url, postgres.Options{}); !errors.Is(err, sluice.ErrNotMigrated) {
		t.Errorf("the next version opens a database of this one: %v", err)
	}
	if steps, err := postgres.Migrate(t.Context(), url); err != nil || len(steps) != 1 {
		t.Errorf("the next version ran %v, want 1 step: %v", steps, err)
	}
	stored(1, "rows that the step made of old ones", "select count(*) from sluice.mood")
	undo()

	if err := enqueue(); err != nil {
		t.Errorf("a program of this version, beside the step that works with it: %v", err)
	}
	if again, err := postgres.Open(t.Context(), url, postgres.Options{Migrate: true}); err != nil {
		t.Errorf("this version opens a database of the next one: %v", err)
	} else {
		_ = again.Close()
	}

	undo = postgres.KnowOneStepMore(makesMood+" -- changed", 1)
	if _, err := postgres.Migrate(t.Context(), url); err == nil || !strings.Contains(err.Error(), "the file was changed after it was released") {
		t.Errorf("a step whose text was changed gives %v", err)
	}
	undo()
}

// TestMigrationSeesTheOthersWhateverTheIsolation migrates with serializable as the default isolation. A transaction
// then sees only rows from before its begin.
func TestMigrationSeesTheOthersWhateverTheIsolation(t *testing.T) {
	url := pgtest.NewDatabase(t) + "&default_transaction_isolation=serializable"
	migrateAtOnce(t, url, 10)
}

func TestSchemaExplainsEveryTableAndColumn(t *testing.T) {
	t.Parallel()
	store := openStore(t, migrated.Copy(t))
	const isOurs = "c.relnamespace = 'sluice'::regnamespace and c.relname <> 'migration'" // the steps do not make this table
	for what, query := range map[string]string{
		"tables and views": "select c.relname::text from pg_class c where " + isOurs + " and c.relkind in ('r', 'v') and obj_description(c.oid, 'pg_class') is null",
		"columns": "select c.relname || '.' || a.attname from pg_class c join pg_attribute a on a.attrelid = c.oid where " + isOurs +
			" and c.relkind = 'r' and a.attnum > 0 and not a.attisdropped and col_description(c.oid, a.attnum) is null",
	} {
		rows, _ := store.Pool().Query(t.Context(), query)
		if silent, err := pgx.CollectRows(rows, pgx.RowTo[string]); err != nil || len(silent) != 0 {
			t.Errorf("%s without a comment: %q, %v", what, silent, err)
		}
	}
}
