package faulttest

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/smalldisk"
	"github.com/sluice-queue/sluice/store/sqlite"
)

func openFile(t *testing.T, path string) *sqlite.Store {
	t.Helper()
	store, err := sqlite.Open(t.Context(), path, sqlite.Options{Migrate: true, CallTimeout: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return store
}

func TestFullDiskIsSaidAndLosesNothing(t *testing.T) {
	t.Parallel()
	disk := smalldisk.New(t, "8m")
	store := openFile(t, filepath.Join(disk, "sluice.db"))
	client := sluice.NewClient(store, sluice.ClientOptions{})
	payload := []byte(`"` + strings.Repeat("x", 50_000) + `"`)
	ballast := filepath.Join(disk, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 2<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	var stored []sluice.ID
	var refused error
	for range 1000 {
		receipt, err := client.Enqueue(t.Context(), sluice.NewJob{Queue: "q", Payload: payload})
		if err != nil {
			refused = err
			break
		}
		stored = append(stored, receipt.ID)
	}
	if !errors.Is(refused, sluice.ErrDiskFull) || !errors.Is(refused, sluice.ErrUnavailable) {
		t.Fatalf("after %d jobs: %v", len(stored), refused)
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Enqueue(t.Context(), sluice.NewJob{Queue: "q", Payload: payload}); err != nil {
		t.Errorf("with room again: %v", err)
	}
	for _, id := range stored {
		if job, err := client.Job(t.Context(), id); err != nil || len(job.Payload) != len(payload) {
			t.Errorf("an acknowledged job is gone: %v", err)
		}
	}
}

func TestFileThatCannotBeAStoreIsRefusedWithTheReason(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	noDatabase := filepath.Join(folder, "text.db")
	if err := os.WriteFile(noDatabase, []byte(strings.Repeat("this is no database\n", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	damaged := filepath.Join(folder, "damaged.db")
	if err := openFile(t, damaged).Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(damaged, 20_000); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ path, want string }{
		"a file that is no database": {noDatabase, "not a SQLite database"},
		"a file that was cut off":    {damaged, "the file is damaged"},
		"a folder that is not there": {filepath.Join(folder, "none", "sluice.db"), "cannot be opened"},
		"a folder":                   {folder, "cannot be opened"},
		"no path":                    {"", "store/memory"},
		"memory":                     {":memory:", "store/memory"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := sqlite.Open(t.Context(), c.path, sqlite.Options{Migrate: true})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

func TestWriteLockHeldByAnotherProcessIsWaitedForAndThenSaid(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "sluice.db")
	store := openFile(t, path)
	client := sluice.NewClient(store, sluice.ClientOptions{})
	if _, err := client.Enqueue(t.Context(), sluice.NewJob{Queue: "q", Payload: []byte(`1`)}); err != nil {
		t.Fatal(err)
	}
	other := openFile(t, path)
	tx, err := other.DB().BeginTx(t.Context(), nil) // begin immediate, as the stores open files
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Enqueue(t.Context(), sluice.NewJob{Queue: "q", Payload: []byte(`2`)}); !errors.Is(err, sluice.ErrUnavailable) {
		t.Errorf("while the lock is held: %v", err)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Enqueue(t.Context(), sluice.NewJob{Queue: "q", Payload: []byte(`3`)}); err != nil {
		t.Errorf("after the lock was released: %v", err)
	}
	depth, err := client.Depth(t.Context(), "q")
	if err != nil || depth.Ready != 2 {
		t.Errorf("ready %d, want 2: what was refused must not be stored later; %v", depth.Ready, err)
	}
}
