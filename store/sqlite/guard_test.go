package sqlite_test

import (
	"database/sql"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/store/sqlite"
)

// TestOpenStoreChangesNothingOfTheSchema runs statements on the connections of an open store. One store has migrated
// the file, and the other has not.
func TestOpenStoreChangesNothingOfTheSchema(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "jobs.db")
	for _, migrate := range []bool{true, false} {
		store, err := sqlite.Open(t.Context(), path, sqlite.Options{Migrate: migrate})
		if err != nil {
			t.Fatal(err)
		}
		for _, statement := range []string{
			"drop table sluice_live",
			"DROP TABLE Sluice_Audit",
			"/* harmless */ ; drop trigger sluice_audit_stays",
			"drop view sluice_jobs",
			"drop index sluice_live_claim",
			"alter table sluice_job add column mine text",
			"alter table sluice_job rename to other",
			"create table sluice_mine (n)",
			"create temp table sluice_live (n)",
			"create temp view sluice_jobs as select 1",
			"create index mine on sluice_job (tenant)",
			"create trigger mine after insert on sluice_audit begin select 1; end",
			"create temp trigger mine after insert on sluice_audit begin select 1; end",
			"attach '" + filepath.Join(t.TempDir(), "other.db") + "' as other",
			"vacuum into '" + filepath.Join(t.TempDir(), "copy.db") + "'",
			"pragma writable_schema = on",
			"pragma user_version = 7",
			"pragma journal_mode = delete",
			"pragma ignore_check_constraints(1)",
		} {
			_, err := store.DB().ExecContext(t.Context(), statement)
			refused(t, statement, err)
			err = store.Transact(t.Context(), func(tx sqlite.Tx) error {
				_, err := tx.ExecContext(t.Context(), statement)
				return err
			})
			if !strings.HasPrefix(statement, "vacuum") && !strings.Contains(statement, "journal_mode") { // these cannot run in a transaction anyway
				refused(t, statement+" in a transaction", err)
			}
		}
		if err := store.CheckSchema(t.Context()); err != nil {
			t.Error(err)
		}
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func refused(t *testing.T, statement string, err error) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), "not authorized") && !strings.Contains(err.Error(), "authorization denied") {
		t.Errorf("%s gives %v", statement, err)
	}
}

// TestOpenStoreLetsOthersHaveTables does what callers do with their own tables in the file of a store.
func TestOpenStoreLetsOthersHaveTables(t *testing.T) {
	t.Parallel()
	store, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "jobs.db"), sqlite.Options{Migrate: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	for _, statement := range []string{
		"create table orders (number integer primary key, job text)",
		"create index orders_job on orders (job)",
		"create trigger orders_told after insert on orders begin insert into sent values (new.number); end",
		"create table sent (number integer)",
		"create view open_orders as select o.number, j.state from orders o join sluice_jobs j on j.id = o.job",
		"create temp table scratch (n)",
		"alter table orders add column note text",
		"insert into orders (number) values (1)",
		"drop view open_orders",
		"drop table sent",
		"pragma foreign_keys = on",
		"pragma secure_delete = on",
		"pragma wal_checkpoint(truncate)",
		"analyze",
		"vacuum",
	} {
		if _, err := store.DB().ExecContext(t.Context(), statement); err != nil {
			t.Errorf("%s: %v", statement, err)
		}
	}
	client := sluice.NewClient(store, sluice.ClientOptions{})
	if _, err := client.Enqueue(t.Context(), sluice.NewJob{Queue: "mail", Payload: []byte("1")}); err != nil {
		t.Error(err)
	}
}

// damage opens a file with a connection that may change the schema, as the connections of stores may not.
func damage(t *testing.T, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?_txlock=immediate&_pragma=busy_timeout(5000)&_pragma=temp_store(memory)")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}
