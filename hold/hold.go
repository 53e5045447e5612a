// Package hold keeps waiting jobs from running until somebody releases them.
//
// Begin with [Hold] and [Release]. [List] lists the holds, and the option Hold of [sluice.EnqueueOptions] enqueues a
// job that is held from the first moment on.
//
// A hold is a gate, not a state: a held job stays queued, expires, and can be cancelled. Its hold ends with its life.
//
// Read next: docs/guide/hold.md. Package operation holds or releases all jobs that match a query.
package hold

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/feature"
)

// Held is the hold of one job.
type Held struct {
	// JobID is the held job, and Queue its queue.
	JobID sluice.ID `json:"job_id"`
	Queue string    `json:"queue"`
	// Reason and By say why the job is held, and who holds it. At is when the hold began, by the store's clock.
	Reason string    `json:"reason"`
	By     string    `json:"by"`
	At     time.Time `json:"at"`
}

// String returns the hold as one sentence without a full stop.
func (h Held) String() string {
	return fmt.Sprintf("held: %s, by %s, since %s", h.Reason, h.By, feature.InstantText(h.At))
}

// Filter chooses holds. The zero value chooses all.
type Filter struct {
	// Jobs chooses the holds of these jobs. Default: any.
	Jobs []sluice.ID
	// Queue chooses the holds of a queue. Default: any.
	Queue string
	// Before is the last job of the previous page. Default: begin with the newest job.
	Before sluice.ID
	// Limit is the size of a page, 1 to 10,000. Default: 100.
	Limit int
}

// ByEnqueue is By of a hold that a job has from its enqueue on.
const ByEnqueue = "producer"

// Hold holds waiting jobs: no claim takes them until [Release]. The act needs a reason.
//
// If Hold cannot hold a job, the error is a [*sluice.BatchError]. It holds [sluice.ErrNotFound] for an unknown job and
// [sluice.ErrNotAllowed] for a job that does not wait or is held already. The first hold of a job stays as it is.
func Hold(ctx context.Context, store sluice.Store, ids []sluice.ID, act sluice.Act) error {
	if act.Reason == "" {
		return feature.Invalid("reason", "a hold needs a reason; `sluice why` shows it")
	}
	return on("hold", ids, &act, "only a waiting job that is not held can be held; cancel a running job", func() ([]error, error) {
		return Given(store).Hold(ctx, ids, act)
	})
}

// Release ends the holds of jobs. A released job waits as if nobody had held it: until it is due, for the jobs that it
// runs after, for its turn.
//
// If Release cannot release a job, the error is a [*sluice.BatchError]. It holds [sluice.ErrNotFound] for an unknown
// job and [sluice.ErrNotAllowed] for a job that is not held.
func Release(ctx context.Context, store sluice.Store, ids []sluice.ID, act sluice.Act) error {
	return on("release", ids, &act, "it is not held", func() ([]error, error) {
		return Given(store).Release(ctx, ids, act)
	})
}

// on acts on jobs. The rule explains a [sluice.ErrNotAllowed].
func on(verb string, ids []sluice.ID, act *sluice.Act, rule string, do func() ([]error, error)) error {
	return act.Do(verb, ids, func() ([]error, error) {
		errs, err := do()
		for i, err := range errs {
			if errors.Is(err, sluice.ErrNotAllowed) {
				errs[i] = fmt.Errorf("%s: %w", rule, err)
			}
		}
		return errs, err
	})
}

// List lists holds, the newest job first.
func List(ctx context.Context, store sluice.Store, filter Filter) ([]Held, error) {
	limit, err := feature.PageSize(filter.Limit)
	if err != nil {
		return nil, err
	}
	filter.Limit = limit
	return Given(store).Holds(ctx, filter)
}

// NotHeld leaves out the jobs that are held, of at most 10,000. It reuses the slice.
func NotHeld(ctx context.Context, store sluice.Store, ids []sluice.ID) ([]sluice.ID, error) {
	if len(ids) == 0 {
		return ids, nil
	}
	found, err := List(ctx, store, Filter{Jobs: ids, Limit: len(ids)})
	if err != nil {
		return nil, err
	}
	held := make(map[sluice.ID]bool, len(found))
	for _, h := range found {
		held[h.JobID] = true
	}
	return slices.DeleteFunc(ids, func(id sluice.ID) bool { return held[id] }), nil
}

// Of returns the hold of a job that waits for its own ID. False: the job is not held. For any other job, Of asks the
// store nothing.
func Of(ctx context.Context, store sluice.Store, job sluice.Job) (Held, bool, error) {
	if job.State != sluice.StateQueued || job.BlockedBy != job.ID {
		return Held{}, false, nil
	}
	found, err := List(ctx, store, Filter{Jobs: []sluice.ID{job.ID}, Limit: 1})
	if errors.Is(err, sluice.ErrNotFound) { // a store without holds
		return Held{}, false, nil
	}
	if err != nil || len(found) == 0 {
		return Held{}, false, err
	}
	return found[0], true, nil
}
