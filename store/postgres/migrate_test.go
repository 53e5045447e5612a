package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/pgtest"
	"github.com/sluice-queue/sluice/store/postgres"
)

// stepOf brings an empty database to an older step of the schema, and returns all steps.
func stepOf(t *testing.T, url string, step int) []sluice.Migration {
	t.Helper()
	pending, err := postgres.PendingMigrations(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	if step == 0 {
		return pending
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
	return pending
}

// migrateAtOnce migrates from many connections of their own, which all look before the first of them begins.
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

// TestFiftyProcessesMigrateAtOnce has no other test beside it: it takes fifty of the server's connections.
func TestFiftyProcessesMigrateAtOnce(t *testing.T) {
	steps, err := postgres.PendingMigrations(t.Context(), pgtest.NewDatabase(t))
	if err != nil {
		t.Fatal(err)
	}
	last := len(steps) - 1 // behind which there is only the step of the functions
	for step := range last {
		processes := 50
		if step != 0 && step != last-1 { // the ways between are the same
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

// TestMigrationSeesTheOthersWhateverTheIsolation has a role's default at which a transaction sees only what was there
// when it began.
func TestMigrationSeesTheOthersWhateverTheIsolation(t *testing.T) {
	url := pgtest.NewDatabase(t) + "&default_transaction_isolation=serializable"
	migrateAtOnce(t, url, 10)
}
