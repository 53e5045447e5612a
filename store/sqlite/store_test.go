package sqlite_test

import (
	"context"
	"database/sql"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/sluice-queue/sluice/internal/litetest"
	"github.com/sluice-queue/sluice/internal/timetest"
	"github.com/sluice-queue/sluice/store/sqlite"
	"github.com/sluice-queue/sluice/store/storetest"
)

// open makes two stores on a new file. Time passes by moving everything stored into the past, so the store uses only
// the system's clock.
func open(t *testing.T) storetest.Bench {
	t.Helper()
	path := filepath.Join(t.TempDir(), "sluice.db")
	store := openStore(t, path)
	free := damage(t, path) // this connection may drop triggers
	advance := func(d time.Duration) {
		if err := timetest.AdvanceSQLite(context.Background(), free, d); err != nil {
			t.Fatalf("advance: %v", err)
		}
	}
	setColumn := func(column string, value any) {
		err := store.Transact(context.Background(), func(tx sqlite.Tx) error {
			_, err := tx.ExecContext(context.Background(), "update sluice_queue set "+column+" = ? where name = 'payments'", value)
			return err
		})
		if err != nil {
			t.Fatalf("set %s: %v", column, err)
		}
	}
	return storetest.Bench{Store: store, Other: openStore(t, path), Now: time.Now, Advance: advance, SetColumn: setColumn, Slow: true}
}

func transact(db *sql.DB, do func(tx *sql.Tx) error) error {
	tx, err := db.Begin()
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if err := do(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// TestMain runs few random sequences, because each verb is a commit.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "sqlite3" {
		os.Exit(sqlite3(os.Args[1:]))
	}
	if path := os.Getenv(childVariable); path != "" {
		os.Exit(child(path))
	}
	if err := withoutTemporaryFolder(); err != nil {
		panic(err)
	}
	if err := flag.Set("rapid.checks", "25"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// openStore opens a store on a file. If the file does not exist, openStore makes it with its schema.
func openStore(t *testing.T, path string) *sqlite.Store {
	t.Helper()
	litetest.MakeFile(t, path)
	// On a busy machine, a call may wait long for the write lock.
	store, err := sqlite.Open(t.Context(), path, sqlite.Options{Migrate: true, CallTimeout: 5 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return store
}

func TestSQLiteObeysTheRules(t *testing.T) {
	t.Parallel()
	storetest.Run(t, open)
}

func TestSQLiteAgreesWithTheModel(t *testing.T) {
	t.Parallel()
	storetest.Model(t, open)
}

func TestSQLiteAgreesWithTheModelOfLimits(t *testing.T) {
	t.Parallel()
	storetest.ModelOfLimits(t, open)
}

func TestSQLiteKeepsLimitsAndGetsNothingStuck(t *testing.T) {
	t.Parallel()
	storetest.Turns(t, open)
}
