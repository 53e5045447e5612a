package postgres_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/store/postgres"
)

// TestADeadlockOfCallersTransactionsIsNoFailureOfAHandler has two transactions enqueue under the same two keys, in
// another order. The store cannot repeat a caller's transaction, so one of them gets an error that says what to do.
func TestADeadlockOfCallersTransactionsIsNoFailureOfAHandler(t *testing.T) {
	s := newShop(t)
	other, err := s.store.Pool().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Rollback(context.Background()) }()
	enqueue := func(tx pgx.Tx, key string) error {
		_, err := s.client.Within(s.store.InTx(tx)).Enqueue(t.Context(), newJob(sluice.EnqueueOptions{Key: key}))
		return err
	}
	if err := errors.Join(enqueue(s.tx, "a"), enqueue(other, "b")); err != nil {
		t.Fatal(err)
	}
	first := make(chan error, 1)
	go func() { first <- enqueue(s.tx, "b") }()
	s.blocked(1)
	errs := []error{enqueue(other, "a")}
	if errs[0] != nil {
		if err := other.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if errs = append(errs, <-first); (errs[0] == nil) == (errs[1] == nil) {
		t.Fatalf("the errors are %v, want one", errs)
	}
	err = errors.Join(errs...)
	if !sluice.Outage(s.store, err) || !strings.Contains(err.Error(), "begin it again") {
		t.Errorf("the error is %v, want one that says to begin again, and of an outage", err)
	}
}

// TestKeysOfSeveralRoundsInAnotherOrderAreNoConflict has calls take the same keys in several rounds, because jobs run after
// each other. The store repeats a call that met another.
func TestKeysOfSeveralRoundsInAnotherOrderAreNoConflict(t *testing.T) {
	s := newShop(t)
	var callers sync.WaitGroup
	for n := range 4 {
		callers.Go(func() {
			for range 50 {
				keys := []string{"a", "b"}
				if n%2 == 1 {
					keys = []string{"b", "a"}
				}
				first, second := newJob(sluice.EnqueueOptions{ID: sluice.NewID(), Key: keys[0]}), newJob(sluice.EnqueueOptions{Key: keys[1]})
				second.After, second.AfterFailure = []sluice.ID{first.ID}, sluice.FailureRuns
				_, err := s.client.EnqueueMany(t.Context(), []sluice.NewJob{first, second})
				var batch *sluice.BatchError
				if err != nil && !errors.As(err, &batch) {
					t.Errorf("caller %d: %v", n, err)
				}
			}
		})
	}
	callers.Wait()
}

// TestARenewedLeaseIsExplainedToAnOldSnapshot completes a job in a transaction that began before the last renewal of its
// lease, and cannot see that row. The error says how to begin.
func TestARenewedLeaseIsExplainedToAnOldSnapshot(t *testing.T) {
	s := newShop(t)
	s.add(s.client, sluice.EnqueueOptions{})
	claim := s.claim(1)[0]
	for _, level := range []pgx.TxIsoLevel{pgx.RepeatableRead, pgx.Serializable} {
		err := pgx.BeginTxFunc(t.Context(), s.store.Pool(), pgx.TxOptions{IsoLevel: level}, func(tx pgx.Tx) error {
			if _, err := tx.Exec(t.Context(), "select count(*) from sluice.queue"); err != nil {
				return err
			}
			renewal := sluice.Renewal{ID: claim.ID, Token: claim.Token, Queue: "payments", Lease: time.Hour}
			if lost, err := s.store.Renew(t.Context(), []sluice.Renewal{renewal}); err != nil || len(lost) > 0 {
				t.Fatal(lost, err)
			}
			run(t, s.store, "update sluice.live set lease_until = now() + interval '1 minute'")
			return postgres.CompleteTx(t.Context(), tx, claim, nil)
		})
		if !isCode(err, "40001") || !strings.Contains(err.Error(), "read committed") {
			t.Errorf("%s: %v, want an error that names the isolation level", level, err)
		}
	}
	err := pgx.BeginTxFunc(t.Context(), s.store.Pool(), pgx.TxOptions{IsoLevel: pgx.Serializable}, func(tx pgx.Tx) error {
		return postgres.CompleteTx(t.Context(), tx, claim, nil)
	})
	if err != nil || s.state(claim.ID).State != sluice.StateCompleted {
		t.Errorf("completed by the first statement: %v", err)
	}
}
