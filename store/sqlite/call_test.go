package sqlite_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/store/sqlite"
)

func TestACallThatGaveUpSaysWhatAllTriesMet(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "jobs.db")
	tx, err := openStore(t, path).DB().BeginTx(t.Context(), nil) // transactions begin immediate, so this one has the write lock
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	other, err := sqlite.Open(context.Background(), path, sqlite.Options{CallTimeout: 300 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Close() }()
	_, err = sluice.NewClient(other, sluice.ClientOptions{}).Enqueue(t.Context(), sluice.NewJob{Queue: "q", Payload: []byte(`{}`)})
	if !errors.Is(err, sluice.ErrUnavailable) || !strings.Contains(err.Error(), "another process holds the file's lock") {
		t.Errorf("the file is locked by another: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond) // the caller's timeout ends before the store's
	defer cancel()
	_, err = other.SaveQueue(ctx, sluice.Queue{Name: "q", Settings: sluice.DefaultSettings()}, sluice.Act{By: "test"})
	if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, sluice.ErrUnavailable) || !strings.Contains(err.Error(), "another process holds the file's lock") {
		t.Errorf("whoever waits at most 100 ms is told: %v", err)
	}
}
