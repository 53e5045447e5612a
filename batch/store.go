package batch

import (
	"context"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/feature"
)

// Store is the port of batches. SQLite, PostgreSQL and memory implement it beside sluice.Store.
//
// Every statement that stores, ends or revives a member counts it in the same transaction. A job is refused by Enqueue
// with an ErrNotFound for an unknown batch, and with an ErrNotAllowed for a closed one.
type Store interface {
	Opener
	// Batch returns a batch with its exact counts. An unknown ID is an ErrNotFound.
	Batch(ctx context.Context, id sluice.ID) (Batch, error)
	// Batches lists batches, the newest first.
	Batches(ctx context.Context, filter Filter) ([]Batch, error)
	// PauseBatch sets the reason for which a batch and all batches in it are paused; empty: they are not. It audits the
	// change of each. Jobs that are added meanwhile are held for that reason.
	PauseBatch(ctx context.Context, id sluice.ID, reason string, act sluice.Act) error
	// AdvanceBatches looks at batches of which something has changed, at most limit changes at once. In one transaction it
	// decides what has become of them and enqueues their callbacks. Two calls at once never enqueue the same callback.
	AdvanceBatches(ctx context.Context, limit int) (Advanced, error)
	// ForgetBatches deletes at most limit batches that were complete for at least the age, with the batches in them. Their
	// jobs stay. It leaves a batch alone while a batch that it is in is not forgotten, or jobs of it are unfinished.
	ForgetBatches(ctx context.Context, age time.Duration, limit int) (int, error)
	// RecountBatch counts the jobs of a batch one by one, in one snapshot with its counts.
	RecountBatch(ctx context.Context, id sluice.ID) (Recount, error)
}

// Opener opens and closes batches. It is a [Store], or a transaction of the caller: the InTx of a store returns one.
type Opener interface {
	// OpenBatch stores a new batch. It returns the stored batch if the ID is stored already. An unknown parent is an
	// ErrNotFound, a closed one an ErrNotAllowed.
	OpenBatch(ctx context.Context, batch Batch, act sluice.Act) (Batch, error)
	// CloseBatch closes a batch; with all, every batch in it too. A closed batch stays as it is. An unknown ID is an
	// ErrNotFound.
	CloseBatch(ctx context.Context, id sluice.ID, all bool, act sluice.Act) error
}

// Filter chooses batches. The zero value chooses all.
type Filter struct {
	// Parent chooses the batches that are directly in a batch. Default: all.
	Parent sluice.ID
	// Unfinished chooses the batches that are not complete. Default: all.
	Unfinished bool
	// Before is the last ID of the previous page. Default: begin with the newest batch.
	Before sluice.ID
	// Limit is the size of a page, 1 to 10,000. Default: 100.
	Limit int
}

// Advanced is the result of AdvanceBatches.
type Advanced struct {
	// Changes counts the changes that were looked at. Callbacks counts the jobs that were enqueued.
	Changes   int
	Callbacks int
	// Open says that some batch is not complete yet.
	Open bool
}

// Recount compares the counts of a batch with its jobs.
type Recount struct {
	// Batch has the counts that the store keeps.
	Batch Batch
	// Unfinished counts the unfinished jobs that are stored. Ended counts the finished ones; those that upkeep or a
	// person has deleted are missing.
	Unfinished int
	Ended      Counts
}

// Exact reports whether the counts fit the jobs. Finished jobs may be missing.
func (r Recount) Exact() bool {
	b := r.Batch.Counts
	return b.Unfinished() == r.Unfinished && r.Ended.Completed <= b.Completed && r.Ended.Dead <= b.Dead && r.Ended.Cancelled <= b.Cancelled
}

// Given returns the port of a store, through decorators too. For nil, every method of the returned Store returns a
// [sluice.ErrInvalid]. For a store without batches, every method returns a [sluice.ErrNotFound].
func Given(store sluice.Store) Store {
	port, err := feature.Port[Store](store, "keeps no batches")
	if err != nil {
		return missing{err}
	}
	return port
}

// opener returns the port of a store, or of a transaction of the caller.
func opener(to sluice.Enqueuer) Opener {
	if store, is := to.(sluice.Store); is || to == nil {
		return Given(store)
	}
	if tx, is := to.(Opener); is {
		return tx
	}
	return missing{feature.Invalid("transaction", "it must be a store, or what InTx of a store returns")}
}

// missing is the port of a store without batches. Every method returns the reason.
type missing struct{ err error }

func (m missing) OpenBatch(context.Context, Batch, sluice.Act) (Batch, error) { return Batch{}, m.err }

func (m missing) CloseBatch(context.Context, sluice.ID, bool, sluice.Act) error { return m.err }

func (m missing) Batch(context.Context, sluice.ID) (Batch, error) { return Batch{}, m.err }

func (m missing) Batches(context.Context, Filter) ([]Batch, error) { return nil, m.err }

func (m missing) PauseBatch(context.Context, sluice.ID, string, sluice.Act) error { return m.err }

func (m missing) AdvanceBatches(context.Context, int) (Advanced, error) { return Advanced{}, m.err }

func (m missing) ForgetBatches(context.Context, time.Duration, int) (int, error) { return 0, m.err }

func (m missing) RecountBatch(context.Context, sluice.ID) (Recount, error) { return Recount{}, m.err }
