package ncruces_test

import (
	"database/sql"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	_ "github.com/ncruces/go-sqlite3/driver"
	_ "github.com/ncruces/go-sqlite3/embed"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/store/sqlite"
)

func open(t *testing.T, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite3", "file:"+path+"?_txlock=immediate&_pragma=busy_timeout(5000)")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func newJob() sluice.NewJob { return sluice.NewJob{Queue: "orders", Payload: []byte(`{"id":1}`)} }

func TestStoreWorksOnTheDriverOfNcruces(t *testing.T) {
	db := open(t, filepath.Join(t.TempDir(), "app.db"))
	store, err := sqlite.New(t.Context(), db, sqlite.Options{Migrate: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	client := sluice.NewClient(store, sluice.ClientOptions{})
	tx, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Within(store.InTx(tx)).Enqueue(t.Context(), newJob()); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	claimed, err := store.Claim(t.Context(), sluice.ClaimRequest{Queue: "orders", Limit: 1, Holder: "h:1:x", Lease: time.Minute, Token: sluice.NewToken()})
	if err != nil || len(claimed.Jobs) != 1 {
		t.Fatalf("claimed %d, %v", len(claimed.Jobs), err)
	}
	if tx, err = db.BeginTx(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if err := sqlite.CompleteTx(t.Context(), tx, claimed.Jobs[0], nil); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	job, err := client.Job(t.Context(), claimed.Jobs[0].ID)
	if err != nil || job.State != sluice.StateCompleted {
		t.Errorf("%s, %v", job.State, err)
	}
}

func TestOpenRefusesAFileThatNcrucesHasOpen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.db")
	db := open(t, path)
	if _, err := db.ExecContext(t.Context(), "pragma journal_mode = wal; create table orders (id integer primary key)"); err != nil {
		t.Fatal(err)
	}
	_, err := sqlite.Open(t.Context(), path, sqlite.Options{Migrate: true})
	if !errors.Is(err, sqlite.ErrTwoLibraries) || !strings.Contains(err.Error(), "ncruces") {
		t.Error(err)
	}
}
