package sqlite_test

import (
	"database/sql"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/store/sqlite"
)

// work calls every verb that prepares statements.
func work(t *testing.T, store *sqlite.Store) {
	t.Helper()
	client := sluice.NewClient(store, sluice.ClientOptions{})
	enqueueOne(t, client)
	id := enqueueOne(t, client)
	claimOne(t, store)
	if _, err := client.Job(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	err := store.Transact(t.Context(), func(tx sqlite.Tx) error {
		_, err := tx.ExecContext(t.Context(), "create table if not exists mine (n)")
		if err != nil {
			return err
		}
		rows, err := tx.QueryContext(t.Context(), "select n from mine")
		if err != nil {
			return err
		}
		return rows.Err()
	})
	if err != nil {
		t.Fatal(err)
	}
}

func jobsIn(t *testing.T, path string) (n int) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	if err := db.QueryRowContext(t.Context(), "select count(*) from sluice_jobs").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestClosedStoreIsOneFileWithAllJobs(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	path := filepath.Join(folder, "jobs.db")
	store := openStore(t, path)
	work(t, store)
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	for _, beside := range []string{"-wal", "-shm"} {
		if _, err := os.Stat(path + beside); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("jobs.db%s is left behind: %v", beside, err)
		}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	alone := filepath.Join(t.TempDir(), "copy.db")
	if err := os.WriteFile(alone, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if n := jobsIn(t, alone); n != 2 {
		t.Errorf("a copy of the closed file has %d jobs of 2", n)
	}
}

func TestCloseWaitsForReads(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "jobs.db")
	store := openStore(t, path)
	work(t, store)
	release, reading := store.HoldRead()
	<-reading
	closed := make(chan error, 1)
	go func() { closed <- store.Close() }()
	select {
	case err := <-closed:
		t.Fatalf("the store was closed under a read: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	release()
	if err := <-closed; err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path + "-wal"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the log is left behind: %v", err)
	}
}

// openFiles counts the open files of this process in a folder.
func openFiles(t *testing.T, folder string) (n int) {
	t.Helper()
	links, err := filepath.Glob("/proc/self/fd/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, link := range links {
		if target, err := os.Readlink(link); err == nil && filepath.Dir(target) == folder {
			n++
		}
	}
	return n
}

func TestClosedStoresLeaveNoDescriptors(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	for range 50 {
		store := openStore(t, filepath.Join(folder, "jobs.db"))
		work(t, store)
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if n := openFiles(t, folder); n != 0 {
		t.Errorf("%d descriptors are open after 50 stores were closed", n)
	}
}

func TestStoreOnADatabaseOfTheCallerLeavesNoStatementsOpen(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	path := filepath.Join(folder, "mine.db")
	db, err := sql.Open("sqlite", "file:"+path+"?_txlock=immediate&_pragma=busy_timeout(5000)")
	if err != nil {
		t.Fatal(err)
	}
	store, err := sqlite.New(t.Context(), db, sqlite.Options{Migrate: true})
	if err != nil {
		t.Fatal(err)
	}
	work(t, store)
	if err := errors.Join(store.Close(), db.Close()); err != nil {
		t.Fatal(err)
	}
	if n := openFiles(t, folder); n != 0 {
		t.Errorf("%d descriptors are open", n)
	}
	if _, err := os.Stat(path + "-wal"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the log is left behind: %v", err)
	}
}
