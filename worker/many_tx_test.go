package worker_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/store/sqlite"
	"github.com/sluice-queue/sluice/worker"
)

// TestCallCompletesItsJobsInOneTransaction writes the effect of several jobs and their completion in one transaction.
// The first attempt is rolled back.
func TestCallCompletesItsJobsInOneTransaction(t *testing.T) {
	t.Parallel()
	store, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "jobs.db"), sqlite.Options{Migrate: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	if _, err := store.DB().ExecContext(t.Context(), `create table paid (id text)`); err != nil {
		t.Fatal(err)
	}
	client := sluice.NewClient(store, sluice.ClientOptions{Logger: quiet})
	tries := 0
	w := worker.New(store, worker.Options{Logger: quiet})
	worker.HandleMany(w, payments, func(ctx context.Context, jobs []*worker.Job[payment]) error {
		tx, err := store.DB().BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }()
		for _, job := range jobs {
			if _, err := tx.ExecContext(ctx, `insert into paid values (?)`, job.ID.String()); err != nil {
				return err
			}
			if err := sqlite.CompleteTx(ctx, tx, job.Claim, nil); err != nil {
				return err
			}
		}
		if tries++; tries == 1 {
			return worker.RetryAfter(0, errOfTheBank)
		}
		return tx.Commit()
	}, worker.ManyOptions{Size: 10, Within: 20 * time.Millisecond})
	var ids []sluice.ID
	for range 10 {
		receipt, err := payments.Enqueue(t.Context(), client, payment{}, sluice.EnqueueOptions{})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, receipt.ID)
	}
	for range 2 {
		if _, err := w.Once(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	var paid int
	if err := store.DB().QueryRowContext(t.Context(), `select count(distinct id) from paid`).Scan(&paid); err != nil || paid != 10 {
		t.Errorf("%d are paid, want 10: %v", paid, err)
	}
	for _, id := range ids {
		if job, err := client.Job(t.Context(), id); err != nil || job.State != sluice.StateCompleted || job.Attempts != 1 {
			t.Errorf("%s after %d failed attempts, want completed after 1: %v", job.State, job.Attempts, err)
		}
	}
}

var errOfTheBank = errors.New("the bank is closed")
