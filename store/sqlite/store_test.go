package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/sluice-queue/sluice/internal/litetest"
	"github.com/sluice-queue/sluice/store/sqlite"
	"github.com/sluice-queue/sluice/store/storetest"
)

// timeColumns are all instants that the store keeps.
var timeColumns = map[string][]string{
	"job": {"created_at", "expires_at"}, "live": {"due_at", "expires_at", "claimed_at", "dispatched_at", "lease_until"},
	"done": {"due_at", "claimed_at", "dispatched_at", "finished_at", "requeued_at"}, "attempt": {"claimed_at", "failed_at"}, "result_cursor": {"upto"},
	"job_key": {"until"}, "flow": {"filled_at"}, "permit": {"claimed_at", "check_at"}, "started": {"at"}, "tenant_queue": {"wake_at", "filled_at"}, "tenant_limit": {"until", "paused_until"}, "named_limit": {"closed_until"}, "limit_key": {"filled_at", "closed_until", "idle_from"}, "limit_lane": {"wake_at"},
	"holder": {"started", "seen"}, "instruction": {"until", "changed_at"}, "lead": {"since", "until"}, "wave_count": {"counted_at"}, "orphan_run": {"cancelled_at", "claimed_at"}, "hold": {"held_at"},
	"stat": {"at"}, "stat_part": {"at"}, "stat_holder": {"at"},
	"schedule": {"next_at"}, "batch": {"created_at", "closed_at", "completed_at", "succeeded_at", "died_at"}, "access_token": {"used_at"}, "alert_silence": {"created_at", "until"}, "alert_receiver": {"seen"},
}

// open makes two stores on a new file. Time passes by moving everything stored into the past, so
// that the store itself goes by the clock alone.
func open(t *testing.T) storetest.Bench {
	t.Helper()
	path := filepath.Join(t.TempDir(), "sluice.db")
	store := openStore(t, path)
	free := damage(t, path) // which may drop triggers
	advance := func(d time.Duration) {
		err := transact(free, func(tx *sql.Tx) error {
			return withoutTriggers(tx, func() error {
				for table, columns := range timeColumns {
					for _, name := range columns {
						if _, err := tx.ExecContext(context.Background(), "update sluice_"+table+" set "+name+" = "+name+" - ? where "+name+" < 9223372036854775807", d.Microseconds()); err != nil {
							return err
						}
					}
				}
				return nil
			})
		})
		if err != nil {
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

// withoutTriggers lets time pass without anything being woken by it: tenant queues must wake by themselves.
func withoutTriggers(tx sqlite.Tx, do func() error) error {
	rows, err := tx.QueryContext(context.Background(), "select name, sql from sqlite_master where type = 'trigger' and tbl_name in ('sluice_live', 'sluice_tenant_limit')")
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	made := make(map[string]string)
	for rows.Next() {
		var name, text string
		if err := rows.Scan(&name, &text); err != nil {
			return err
		}
		made[name] = text
	}
	if err := errors.Join(rows.Err(), rows.Close()); err != nil {
		return err
	}
	for name := range made {
		if _, err := tx.ExecContext(context.Background(), "drop trigger "+name); err != nil {
			return err
		}
	}
	err = do()
	for _, text := range made {
		_, again := tx.ExecContext(context.Background(), text)
		err = errors.Join(err, again)
	}
	return err
}

// TestMain runs fewer random sequences than elsewhere, since each verb is a commit.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "sqlite3" {
		os.Exit(sqlite3(os.Args[1:]))
	}
	if path := os.Getenv(childVariable); path != "" {
		os.Exit(child(path))
	}
	if err := flag.Set("rapid.checks", "25"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// openStore opens a store on a file. One that is not there is made, with its schema.
func openStore(t *testing.T, path string) *sqlite.Store {
	t.Helper()
	litetest.MakeFile(t, path)
	// On a busy machine a call may wait long for its turn.
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
