package batch

import (
	"context"
	"fmt"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/feature"
	"github.com/sluice-queue/sluice/operation"
	"github.com/sluice-queue/sluice/search"
)

// Open stores a new batch, to which jobs can be added until [Close]. To is a store, or the InTx of a store: then the
// batch exists if and only if the transaction commits. Of the argument, Open uses ID, Name, Parent and the callbacks.
//
// If the ID is stored already, Open returns that batch. A stored batch with another name, parent or callback is a
// [sluice.ErrInvalid] of the field id, and stays as it is. An unknown parent is a [sluice.ErrNotFound], and a closed parent a
// [sluice.ErrNotAllowed]. Queues of callbacks that the store does not admit are refused as by an enqueue; see package
// admission.
func Open(ctx context.Context, to sluice.Enqueuer, batch Batch, act sluice.Act) (Batch, error) {
	if err := act.Check(); err != nil {
		return Batch{}, err
	}
	begun := Batch{ID: batch.ID, Name: batch.Name, Parent: batch.Parent, Callbacks: batch.Callbacks, CreatedBy: act.By}
	if begun.ID.IsZero() {
		begun.ID = act.ID
	}
	if err := begun.check(); err != nil {
		return Batch{}, fmt.Errorf("open batch: %w", err)
	}
	port := opener(to)
	if lacks, is := port.(missing); is {
		return Batch{}, fmt.Errorf("open batch: %w", lacks.err)
	}
	if err := admitQueues(ctx, to, begun.Callbacks, act); err != nil {
		return Batch{}, fmt.Errorf("open batch: %w", err)
	}
	stored, err := port.OpenBatch(ctx, begun, act)
	if err == nil {
		err = stored.checkAgain(begun)
	}
	if err != nil {
		return Batch{}, fmt.Errorf("open batch: %w", err)
	}
	return stored, nil
}

// admitQueues admits the queues of callbacks.
func admitQueues(ctx context.Context, to sluice.Enqueuer, callbacks Callbacks, act sluice.Act) error {
	var jobs []sluice.Insert
	for _, c := range []*Callback{callbacks.OnComplete, callbacks.OnSuccess, callbacks.OnDeath} {
		if c != nil {
			jobs = append(jobs, sluice.Insert{NewJob: sluice.NewJob{Queue: c.Queue}})
		}
	}
	if len(jobs) == 0 {
		return nil
	}
	errs, err := to.Admit(ctx, QueuesOf(jobs), act)
	if err != nil {
		return err
	}
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// Close lets no more jobs into a batch. It completes when the jobs that are in it have ended; without jobs, at once. To is
// a store, or the InTx of a store. A closed batch stays as it is. An unknown ID is a [sluice.ErrNotFound].
//
// Transactions that have added jobs and are not committed yet delay the end of the batch; Close does not wait for them.
func Close(ctx context.Context, to sluice.Enqueuer, id sluice.ID, act sluice.Act) error {
	return closeBatch(ctx, to, id, false, act)
}

// CloseAll is [Close] for a batch and all batches in it.
func CloseAll(ctx context.Context, to sluice.Enqueuer, id sluice.ID, act sluice.Act) error {
	return closeBatch(ctx, to, id, true, act)
}

func closeBatch(ctx context.Context, to sluice.Enqueuer, id sluice.ID, all bool, act sluice.Act) error {
	if err := act.Check(); err != nil {
		return err
	}
	if err := opener(to).CloseBatch(ctx, id, all, act); err != nil {
		return fmt.Errorf("batch %s: %w", id, err) // the store says what failed
	}
	return nil
}

// Read returns a batch with its exact counts. An unknown ID is a [sluice.ErrNotFound].
func Read(ctx context.Context, store sluice.Store, id sluice.ID) (Batch, error) {
	found, err := Given(store).Batch(ctx, id)
	if err != nil {
		return found, fmt.Errorf("batch %s: %w", id, err)
	}
	return found, nil
}

// List lists batches, the newest first.
func List(ctx context.Context, store sluice.Store, filter Filter) ([]Batch, error) {
	size, err := feature.PageSize(filter.Limit)
	if err != nil {
		return nil, err
	}
	filter.Limit = size
	return Given(store).Batches(ctx, filter)
}

// Cancel closes a batch and all batches in it, and starts an operation that cancels their unfinished jobs. OnComplete is
// enqueued when all have ended.
func Cancel(ctx context.Context, store sluice.Store, id sluice.ID, act sluice.Act) (operation.Operation, error) {
	if err := closeBatch(ctx, store, id, true, act); err != nil {
		return operation.Operation{}, err
	}
	return start(ctx, store, id, operation.KindCancel, search.Query{}, act)
}

// Pause holds the waiting jobs of a batch and of all batches in it until [Resume]: it starts an operation, and jobs that
// are added later are held at once. Running jobs go on. The act needs a reason.
func Pause(ctx context.Context, store sluice.Store, id sluice.ID, act sluice.Act) (operation.Operation, error) {
	if act.Reason == "" || len(act.Reason) > maxReasonBytes {
		return operation.Operation{}, feature.Invalid("reason", fmt.Sprintf("a pause needs a reason of at most %d bytes; `sluice why` shows it", maxReasonBytes))
	}
	if err := act.Check(); err != nil {
		return operation.Operation{}, err
	}
	if err := Given(store).PauseBatch(ctx, id, act.Reason, act); err != nil {
		return operation.Operation{}, fmt.Errorf("pause batch %s: %w", id, err)
	}
	act.Reason = HoldReason(id, act.Reason)
	return start(ctx, store, id, operation.KindHold, search.Query{}, act)
}

// Resume ends the pause of a batch and of all batches in it: it starts an operation that releases their held jobs. It also
// releases jobs that a person has held one by one.
func Resume(ctx context.Context, store sluice.Store, id sluice.ID, act sluice.Act) (operation.Operation, error) {
	if err := act.Check(); err != nil {
		return operation.Operation{}, err
	}
	if err := Given(store).PauseBatch(ctx, id, "", act); err != nil {
		return operation.Operation{}, fmt.Errorf("resume batch %s: %w", id, err)
	}
	return start(ctx, store, id, operation.KindRelease, search.Query{}, act)
}

// HoldReason is the reason for which jobs of a paused batch are held.
func HoldReason(id sluice.ID, reason string) string {
	return fmt.Sprintf("batch %s is paused: %s", id, reason)
}

// Retry starts an operation that requeues the dead jobs of a batch and of all batches in it. Of the operation, it uses Rate,
// Canary, StopIfFailed and Limit. The act needs a reason.
func Retry(ctx context.Context, store sluice.Store, id sluice.ID, how operation.Operation, act sluice.Act) (operation.Operation, error) {
	if _, err := Read(ctx, store, id); err != nil {
		return operation.Operation{}, err
	}
	how.Kind, how.Query = operation.KindRequeue, search.Query{Batch: id, States: []sluice.State{sluice.StateDead}}
	return operation.Start(ctx, store, how, act)
}

// start starts an operation on the jobs of a batch.
func start(ctx context.Context, store sluice.Store, id sluice.ID, kind operation.Kind, query search.Query, act sluice.Act) (operation.Operation, error) {
	query.Batch = id
	return operation.Start(ctx, store, operation.Operation{Kind: kind, Query: query}, act)
}
