package batch

import (
	"fmt"
	"time"

	"github.com/sluice-queue/sluice"
)

// Look is what a store has found of a batch that has changed.
type Look struct {
	// Batch is the batch with its exact counts.
	Batch Batch
	// Died says that a job has died, in the batch or in one in it.
	Died bool
	// Adding says that a transaction may be under way that adds jobs or batches.
	Adding bool
	// Behind counts the batches directly in it that are not complete, and Failed those that have not succeeded.
	Behind, Failed int
}

// May reports whether something may have become of a batch, by its counts alone. Stores call it before the rest of a Look
// is read.
func (l Look) May() bool {
	b := l.Batch
	return l.died() && b.DiedAt.IsZero() || l.MayComplete() ||
		!b.CompletedAt.IsZero() && b.SucceededAt.IsZero() && b.Completed == b.Total
}

// died reports whether a job has died, also before the store was moved.
func (l Look) died() bool { return l.Died || l.Batch.Dead > 0 }

// MayComplete reports whether a batch may be complete now, by its counts alone.
func (l Look) MayComplete() bool {
	b := l.Batch
	return !b.ClosedAt.IsZero() && b.CompletedAt.IsZero() && b.Unfinished() == 0
}

// Decide returns what has become of a batch at an instant, and the jobs of its callbacks.
func (l Look) Decide(at time.Time) (after Batch, jobs []sluice.Insert) {
	after = l.Batch
	become := func(since *time.Time, callback *Callback, event string) {
		*since = at
		if callback != nil {
			jobs = append(jobs, callback.insert(after, event, at))
		}
	}
	if l.died() && after.DiedAt.IsZero() {
		become(&after.DiedAt, after.OnDeath, eventDeath)
	}
	if l.MayComplete() && !l.Adding && l.Behind == 0 {
		become(&after.CompletedAt, after.OnComplete, eventComplete)
	}
	if !after.CompletedAt.IsZero() && after.SucceededAt.IsZero() && after.Completed == after.Total && l.Failed == 0 {
		become(&after.SucceededAt, after.OnSuccess, eventSuccess)
	}
	return after, jobs
}

// Changed reports whether something has become of a batch since the other.
func (b Batch) Changed(other Batch) bool {
	return b.CompletedAt != other.CompletedAt || b.SucceededAt != other.SucceededAt || b.DiedAt != other.DiedAt
}

// Refusal returns the error of a job for a batch that is closed, or not stored. Nil: the batch is open.
func Refusal(id sluice.ID, known, open bool) error {
	switch {
	case !known:
		return fmt.Errorf("batch %s is not stored: %w", id, sluice.ErrNotFound)
	case !open:
		return fmt.Errorf("batch %s is closed; open another one: %w", id, sluice.ErrNotAllowed)
	}
	return nil
}
