package sqlite

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/counter"
	"github.com/sluice-queue/sluice/internal/sqltx"
)

// Transact runs statements of the caller's in the store's next transaction, which is committed
// together with what other callers write, and so costs them no commit of their own. If do returns
// an error or panics, its work alone is undone. Do must be quick, because all other writers wait; it
// must use tx for everything, and not after it returned; and it must not call methods of the store or
// of a client, which wait for the same writer until their deadline: use InTx and CompleteTx with tx.
// After an ErrUnavailable nothing of it is stored, unless the commit itself failed.
func (s *Store) Transact(ctx context.Context, do func(tx Tx) error) error {
	callerCtx := ctx
	ctx, cancel := context.WithTimeout(ctx, s.options.CallTimeout)
	defer cancel()
	if s.closed.Load() {
		return fmt.Errorf("transact: the store is closed: %w", sluice.ErrUnavailable)
	}
	err := s.writer.transact(ctx, func(tx *groupTx) error { return do(tx) })
	switch {
	case err == nil:
		return nil
	case callerCtx.Err() == nil && errors.Is(err, context.DeadlineExceeded) && ctx.Err() != nil:
		return fmt.Errorf("transact: gave up after %s: %w: %w", s.options.CallTimeout, sluice.ErrUnavailable, err)
	}
	return typed(err)
}

// InTx lets a client enqueue inside the caller's own transaction, one of Transact or a *sql.Tx on
// the same file:
//
//	receipt, err := client.Within(store.InTx(tx)).Enqueue(ctx, job)
//
// The job exists if and only if the transaction commits. A *sql.Tx must have been begun as
// immediate (for the driver of this package: _txlock=immediate). What an ORM makes of a *sql.Tx will do as well. A
// transaction of another driver or file than the store's is an ErrForeignTx, and nothing is written: give the store the
// database of your own driver with New.
func (s *Store) InTx(tx Tx) sluice.Enqueuer {
	if sluice.CheckGiven("transaction", tx) != nil {
		return sluice.GivenEnqueuer(nil)
	}
	return &txEnqueuer{store: s, tx: unwrap(tx)}
}

// unwrap gives the *sql.Tx in what an ORM makes of it: an ORM may read the placeholders of our statements in its own way.
func unwrap(tx Tx) Tx {
	if inner := sqltx.Find(tx).Tx; inner != nil {
		return inner
	}
	return tx
}

type txEnqueuer struct {
	store   *Store
	tx      Tx
	checked atomic.Bool
}

// check makes sure, once, that the transaction is the store's.
func (e *txEnqueuer) check(ctx context.Context) error {
	if e.checked.Load() {
		return nil
	}
	err := e.store.mine(ctx, e.tx)
	if err == nil {
		err = fits(runnerOf(ctx, e.tx))
	}
	if err == nil {
		e.checked.Store(true)
	}
	return err
}

// Enqueue stores jobs through the transaction. It does not try again: after an error the
// transaction is the caller's to roll back.
func (e *txEnqueuer) Enqueue(ctx context.Context, jobs []sluice.Insert) ([]sluice.Receipt, error) {
	ctx, cancel := context.WithTimeout(ctx, e.store.options.CallTimeout)
	defer cancel()
	if err := e.check(ctx); err != nil {
		return nil, fmt.Errorf("enqueue: %w", err)
	}
	run := runnerOf(ctx, e.tx)
	receipts, refused, err := enqueue(run, jobs, false)
	if err != nil {
		return nil, typed(err)
	}
	e.count(run, jobs, receipts)
	if len(refused) > 0 {
		return receipts, &sluice.BatchError{Failed: refused, Total: len(jobs)}
	}
	return receipts, nil
}

// count counts what was enqueued: when the writer has committed it, and in any other transaction at once, since nobody
// tells whether that is committed.
func (e *txEnqueuer) count(run runner, jobs []sluice.Insert, receipts []sluice.Receipt) {
	if _, ours := run.(*groupTx); !ours {
		e.store.tally.Enqueued(jobs, receipts)
		return
	}
	for in := range counter.Stored(jobs, receipts) {
		run.moved(in.Queue, in.Tenant, sluice.EventEnqueue)
	}
}

// Queues lists queues through the transaction.
func (e *txEnqueuer) Queues(ctx context.Context, filter sluice.QueueFilter) ([]sluice.Queue, error) {
	ctx, cancel := context.WithTimeout(ctx, e.store.options.CallTimeout)
	defer cancel()
	if err := e.check(ctx); err != nil {
		return nil, fmt.Errorf("read queues: %w", err)
	}
	queues, err := listQueues(runnerOf(ctx, e.tx), filter)
	if err != nil {
		return nil, typed(err)
	}
	return queues, nil
}

// Admit says through the transaction which queues a job may not name.
func (e *txEnqueuer) Admit(ctx context.Context, queues []string, _ sluice.Act) ([]error, error) {
	ctx, cancel := context.WithTimeout(ctx, e.store.options.CallTimeout)
	defer cancel()
	if err := e.check(ctx); err != nil {
		return nil, fmt.Errorf("admit queues: %w", err)
	}
	refused, _, err := admit(runnerOf(ctx, e.tx), queues)
	if err != nil {
		return nil, typed(err)
	}
	return refused, nil
}

// Now reads the store's clock through the transaction.
func (e *txEnqueuer) Now(ctx context.Context) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, e.store.options.CallTimeout)
	defer cancel()
	if err := e.check(ctx); err != nil {
		return time.Time{}, fmt.Errorf("read clock: %w", err)
	}
	at, err := readNow(runnerOf(ctx, e.tx))
	if err != nil {
		return time.Time{}, typed(err)
	}
	return at, nil
}

// CompleteTx completes a claimed job inside the caller's own transaction, so that the effect of the
// job and its completion commit together or not at all. The result is stored as JSON; nil: none.
// If the claim is lost it is an ErrLost, and the caller must roll back. Within a worker's handler,
// commit and return nil. A transaction that is not of the driver and file of a store that is open in this program is an
// ErrForeignTx, and nothing is written.
func CompleteTx(ctx context.Context, tx Tx, claim *sluice.Claim, result any) error {
	if err := cmp.Or(sluice.CheckGiven("transaction", tx), sluice.CheckGiven("claim", claim)); err != nil {
		return fmt.Errorf("complete: %w", err)
	}
	in := sluice.Settlement{ID: claim.ID, Token: claim.Token, Holder: claim.Holder, Event: sluice.EventComplete}
	if result != nil {
		text, err := json.Marshal(result)
		if err != nil {
			return fmt.Errorf("complete job %s: result: %w", claim.ID, err)
		}
		in.Result = text
	}
	tx = unwrap(tx)
	if err := ours(ctx, tx); err != nil {
		return fmt.Errorf("complete job %s: %w", claim.ID, err)
	}
	if err := fits(runnerOf(ctx, tx)); err != nil {
		return fmt.Errorf("complete job %s: %w", claim.ID, typed(err))
	}
	errs, err := settle(runnerOf(ctx, tx), []sluice.Settlement{in})
	if err == nil {
		err = errs[0]
	}
	if err != nil {
		return fmt.Errorf("complete job %s: %w", claim.ID, typed(ofFollower(runnerOf(ctx, tx), err)))
	}
	claim.MarkSettledInTx()
	return nil
}
