package postgres_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-queue/sluice"
	group "github.com/sluice-queue/sluice/batch"
)

// openIn opens a batch in another one.
func (w batchWorld) openIn(to sluice.Enqueuer, outer sluice.ID) group.Batch {
	w.Helper()
	b, err := group.Open(w.Context(), to, group.Batch{Parent: outer}, importer)
	w.ok(err)
	return b
}

func (w batchWorld) paused(id sluice.ID) string {
	w.Helper()
	b, err := group.Read(w.Context(), w.store, id)
	w.ok(err)
	return b.Paused
}

// TestABatchThatAnOpenTransactionOpenedTakesOnThePauseOfTheOuterOne pauses and resumes a batch while a transaction has
// opened batches in it.
func TestABatchThatAnOpenTransactionOpenedTakesOnThePauseOfTheOuterOne(t *testing.T) {
	t.Parallel()
	w := newBatchWorld(t)
	pause := sluice.Act{By: "ada", Reason: "bank closed"}
	root := w.open(w.store)
	outer := w.openIn(w.store, root.ID)
	tx := w.begin(pgx.TxOptions{})
	inner := w.openIn(w.store.InTx(tx), outer.ID)
	within := w.openIn(w.store.InTx(tx), inner.ID)
	w.ok(w.store.PauseBatch(t.Context(), root.ID, "bank closed", pause)) // does not wait for the transaction
	w.ok(tx.Commit(t.Context()))
	for _, id := range []sluice.ID{outer.ID, inner.ID, within.ID} {
		if got := w.paused(id); got != "bank closed" {
			t.Errorf("a batch in the paused one is paused because of %q", got)
		}
	}
	if err := w.add(w.store, within.ID); err != nil {
		t.Fatal(err)
	}
	var held int
	w.ok(w.store.Pool().QueryRow(t.Context(), "select count(*) from sluice.hold").Scan(&held))
	if held != 1 {
		t.Errorf("%d jobs are held, want the job that was added to the inner batch", held)
	}

	tx = w.begin(pgx.TxOptions{})
	inner = w.openIn(w.store.InTx(tx), outer.ID)
	w.ok(w.store.PauseBatch(t.Context(), root.ID, "", importer))
	w.ok(tx.Commit(t.Context()))
	if got := w.paused(inner.ID); got != "" {
		t.Errorf("after a resume the inner batch is paused because of %q", got)
	}
	w.ok(w.store.PauseBatch(t.Context(), root.ID, "bank closed", pause))
	w.ok(w.store.PauseBatch(t.Context(), inner.ID, "", importer))
	w.openIn(w.store, outer.ID)
	if got := w.paused(inner.ID); got != "" {
		t.Errorf("a batch that was resumed alone is paused because of %q", got)
	}
}

// TestACommitThatOpensABatchWaitsForAPauseOfTheOuterOne commits while a pause has locked the outer batch.
func TestACommitThatOpensABatchWaitsForAPauseOfTheOuterOne(t *testing.T) {
	s := newShop(t)
	w := batchWorld{s.T, s.store}
	outer := w.open(w.store)
	tx := w.begin(pgx.TxOptions{})
	inner := w.openIn(w.store.InTx(tx), outer.ID)
	for _, statement := range []string{"select from sluice.batch where id = $1 for update", "update sluice.batch set paused = 'bank closed' where id = $1"} {
		if _, err := s.tx.Exec(t.Context(), statement, [16]byte(outer.ID)); err != nil {
			t.Fatal(err)
		}
	}
	done := make(chan error, 1)
	go func() { done <- tx.Commit(context.WithoutCancel(t.Context())) }()
	s.blocked(1)
	s.commit()
	w.ok(<-done)
	if got := w.paused(inner.ID); got != "bank closed" {
		t.Errorf("the inner batch is paused because of %q", got)
	}
}

// TestACommitThatOpensABatchDoesNotWaitForAnOpenTransactionThatClosesTheOuterOne commits beside such a transaction.
func TestACommitThatOpensABatchDoesNotWaitForAnOpenTransactionThatClosesTheOuterOne(t *testing.T) {
	t.Parallel()
	w := newBatchWorld(t)
	outer := w.open(w.store)
	closing := w.begin(pgx.TxOptions{})
	w.close(w.store.InTx(closing), outer.ID)
	w.openIn(w.store, outer.ID)
}
