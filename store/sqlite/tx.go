package sqlite

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/counter"
	"github.com/sluice-queue/sluice/internal/sqltx"
)

//go:embed sql/job_in.sql
var jobInSQL string

// Transact runs the caller's statements in the store's next transaction. The same transaction holds
// the writes of other callers, so the statements cost no commit. If do returns an error or panics,
// only its own writes are undone.
//
//   - do must be quick, because all other writers wait.
//   - do must use tx for everything, and must not use tx after it has returned.
//   - do must not call methods of the store or of a client: they would wait for the same writer
//     until their deadline. Use [Store.InTx] and [CompleteTx] with tx instead.
//
// After a [sluice.ErrUnavailable], none of its writes are stored, unless the commit itself failed.
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

// InTx lets a client enqueue inside the caller's own transaction: one of [Store.Transact], or a
// *sql.Tx on the same file.
//
//	receipt, err := client.Within(store.InTx(tx)).Enqueue(ctx, job)
//
// The job exists if and only if the transaction commits. A *sql.Tx must have been begun as
// immediate; for this package's driver, set _txlock=immediate. An ORM's wrapper of a *sql.Tx works
// too. For a transaction of another driver or file, the client's calls return a
// [sluice.ErrForeignTx] and write nothing. In that case, make the store of your own database with
// [New].
func (s *Store) InTx(tx Tx) sluice.Enqueuer {
	if sluice.CheckGiven("transaction", tx) != nil {
		return sluice.GivenEnqueuer(nil)
	}
	return &txEnqueuer{store: s, tx: unwrap(tx)}
}

// unwrap returns the *sql.Tx inside an ORM's wrapper, because an ORM may read the statements'
// placeholders in its own way.
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

// check checks, once, that the transaction belongs to the store.
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

// Enqueue stores jobs through the transaction, without a second try: after an error, the caller
// must roll back.
func (e *txEnqueuer) Enqueue(ctx context.Context, jobs []sluice.Insert) ([]sluice.Receipt, error) {
	ctx, cancel := context.WithTimeout(ctx, e.store.options.CallTimeout)
	defer cancel()
	if err := e.check(ctx); err != nil {
		return nil, fmt.Errorf("enqueue: %w", err)
	}
	run := runnerOf(ctx, e.tx)
	stay, err := e.store.room.Enter(ctx, jobs, roomSourceIn(run))
	if err != nil {
		return make([]sluice.Receipt, len(jobs)), typed(err)
	}
	receipts, refused, err := enqueue(run, jobs, false)
	stay.End(jobs, receipts)
	if err != nil {
		return nil, typed(err)
	}
	e.count(run, jobs, receipts)
	if len(refused) > 0 {
		return receipts, &sluice.BatchError{Failed: refused, Total: len(jobs)}
	}
	return receipts, nil
}

// count counts enqueued jobs: after the writer's commit, or at once in any other transaction, whose
// commit the store cannot see.
func (e *txEnqueuer) count(run runner, jobs []sluice.Insert, receipts []sluice.Receipt) {
	if _, ours := run.(*groupTx); !ours {
		e.store.tally.Enqueued(jobs, receipts)
		return
	}
	for in := range counter.Stored(jobs, receipts) {
		run.moved(in.Queue, in.Tenant, sluice.EventEnqueue)
	}
}

// do runs a verb through the transaction, without a second try.
func (e *txEnqueuer) do(ctx context.Context, verb string, run func(runner) error) error {
	ctx, cancel := context.WithTimeout(ctx, e.store.options.CallTimeout)
	defer cancel()
	if err := e.check(ctx); err != nil {
		return fmt.Errorf("%s: %w", verb, err)
	}
	if err := run(runnerOf(ctx, e.tx)); err != nil {
		return typed(err)
	}
	return nil
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

// Admit reports, through the transaction, which queues a job may not name.
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

// HasJob reports, through the transaction, whether a job is stored in a queue.
func (e *txEnqueuer) HasJob(ctx context.Context, id sluice.ID, queue string) (has bool, err error) {
	err = e.do(ctx, "look up job", func(tx runner) error {
		found, err := list(tx, scanOne[[]byte], jobInSQL, id[:], queue)
		has = len(found) > 0
		return err
	})
	return has, err
}

// CompleteTx completes a claimed job inside the caller's own transaction: the effect of the job and
// its completion commit together, or not at all. The result is stored as JSON; nil: none. In a
// worker's handler, commit and then return nil.
//
// If the claim is lost, CompleteTx returns a [sluice.ErrLost], and the caller must roll back. If
// the transaction belongs to no store that is open in this program, CompleteTx returns a
// [sluice.ErrForeignTx] and writes nothing.
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
