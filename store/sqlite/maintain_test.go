package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/health"
	"github.com/sluice-queue/sluice/store/sqlite"
)

// littered opens a store whose file has about 4 MB of free pages.
func littered(t *testing.T, path string) *sqlite.Store {
	t.Helper()
	store := openStore(t, path)
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(5000)")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	for _, statement := range []string{"create table filler (x)", "insert into filler select zeroblob(4000000)", "drop table filler"} {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	return store
}

func sizeOf(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

// maintain does a task, for ann.
func maintain(t *testing.T, store *sqlite.Store, task health.Task, dryRun bool) health.Maintained {
	t.Helper()
	out, err := health.Maintain(t.Context(), store, task, dryRun, sluice.Act{By: "ann", Reason: "the disk is full"})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestVacuumGivesFreePagesBack(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"none", "incremental"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "jobs.db")
			db, err := sql.Open("sqlite", "file:"+path)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := db.ExecContext(t.Context(), "pragma auto_vacuum = "+mode+"; vacuum"); err != nil {
				t.Fatal(err)
			}
			_ = db.Close()
			store := littered(t, path)
			client := sluice.NewClient(store, sluice.ClientOptions{})
			jobs, err := client.EnqueueMany(t.Context(), []sluice.NewJob{{Queue: "mail", Payload: []byte("{}")}, {Queue: "mail", Payload: []byte("{}")}})
			if err != nil {
				t.Fatal(err)
			}
			would := maintain(t, store, health.TaskVacuum, true)
			if would.Bytes < 4_000_000 || !would.DryRun {
				t.Fatalf("a dry run says %+v, want some 4 MB", would)
			}
			maintain(t, store, health.TaskCheckpoint, false)
			before := sizeOf(t, path)
			out := maintain(t, store, health.TaskVacuum, false)
			if after := sizeOf(t, path); out.Bytes < 4_000_000 || before-after != out.Bytes || len(out.Left) > 0 {
				t.Errorf("the file had %d bytes, has %d, and the vacuum says %+v", before, after, out)
			}
			if again := maintain(t, store, health.TaskVacuum, false); again.Bytes != 0 {
				t.Errorf("a second vacuum gave back %d bytes, want none", again.Bytes)
			}
			if _, err := store.Cancel(t.Context(), []sluice.ID{jobs[0].ID}, sluice.Act{By: "ann"}); err != nil {
				t.Errorf("the store does not write any more: %v", err)
			}
			entries, err := store.Audit(t.Context(), sluice.AuditFilter{Object: audit.ObjectStore, Name: "vacuum"})
			if err != nil || len(entries) != 2 || entries[0].Actor != "ann" || entries[0].Reason != "the disk is full" || !strings.Contains(string(entries[1].After), `"bytes"`) {
				t.Errorf("the audit has %+v, %v, want both vacuums", entries, err)
			}
		})
	}
}

// TestAVacuumWithoutTimeChangesNothing lets a vacuum wait for a lock that another program holds.
func TestAVacuumWithoutTimeChangesNothing(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "jobs.db")
	store := littered(t, path)
	db, err := sql.Open("sqlite", "file:"+path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	tx, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.ExecContext(t.Context(), "begin immediate"); err != nil {
		t.Fatal(err)
	}
	var out health.Maintained
	for wait := 400 * time.Millisecond; ; wait *= 2 { // a slow machine may need that before it vacuums
		ctx, stop := context.WithTimeout(t.Context(), wait)
		out, err = store.Maintain(ctx, health.TaskVacuum, false)
		stop()
		if !errors.Is(err, context.DeadlineExceeded) {
			break
		}
	}
	if err != nil || out.Bytes != 0 || len(out.Left) != 1 || !strings.Contains(out.Left[0], "the time was over") {
		t.Errorf("got %+v, %v, want that the time was over", out, err)
	}
	if _, err := tx.ExecContext(t.Context(), "rollback"); err != nil {
		t.Fatal(err)
	}
	if out := maintain(t, store, health.TaskVacuum, false); out.Bytes < 4_000_000 {
		t.Errorf("the next vacuum gave back %d bytes, want some 4 MB", out.Bytes)
	}
}

func TestACheckpointCutsTheLog(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "jobs.db")
	store := littered(t, path)
	if would := maintain(t, store, health.TaskCheckpoint, true); would.Bytes < 4_000_000 || would.Bytes != sizeOf(t, path+"-wal") {
		t.Errorf("a dry run says %+v, and the log has %d bytes", would, sizeOf(t, path+"-wal"))
	}
	db, err := sql.Open("sqlite", "file:"+path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Close() }()
	reader, err := db.BeginTx(t.Context(), &sql.TxOptions{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	var n int
	if err := reader.QueryRowContext(t.Context(), "select count(*) from sluice_queue").Scan(&n); err != nil {
		t.Fatal(err)
	}
	if out := maintain(t, store, health.TaskCheckpoint, false); out.Bytes != 0 || len(out.Left) != 1 || !strings.Contains(out.Left[0], "the log was not cut") {
		t.Errorf("beside a reader it says %+v, want that the log was not cut", out)
	}
	if err := reader.Rollback(); err != nil {
		t.Fatal(err)
	}
	if out := maintain(t, store, health.TaskCheckpoint, false); out.Bytes < 4_000_000 || len(out.Left) != 0 {
		t.Errorf("after the read it says %+v, want 4 MB less", out)
	}
	// The entry of the audit begins the log anew.
	if size := sizeOf(t, path+"-wal"); size > 100_000 {
		t.Errorf("the log has %d bytes, want nearly none", size)
	}
}

func TestTasksThatNobodyKnowsAreRefused(t *testing.T) {
	t.Parallel()
	store := openStore(t, filepath.Join(t.TempDir(), "jobs.db"))
	if _, err := health.Maintain(t.Context(), store, "defragment", false, sluice.Act{By: "ann"}); !errors.Is(err, sluice.ErrInvalid) {
		t.Errorf("an unknown task: %v, want it refused", err)
	}
	if _, err := health.Maintain(t.Context(), store, health.TaskVacuum, false, sluice.Act{}); !errors.Is(err, sluice.ErrInvalid) {
		t.Errorf("nobody's act: %v, want it refused", err)
	}
}
