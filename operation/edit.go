package operation

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/edit"
	"github.com/sluice-queue/sluice/internal/feature"
)

// Edit is the change of a [KindEdit]. Fields that are not set change nothing.
type Edit struct {
	// Priority is from 1 (first) to 10 (last). Default: no change.
	Priority int `json:"priority,omitempty"`
	// Tenant is the new tenant; empty: no tenant. Nil: no change.
	Tenant *string `json:"tenant,omitempty"`
	// Postpone is by how much later each job is due than now, and Spread by how much more at most: each job gets a share of it
	// by chance, so that jobs that are due at once are not any longer. A job that was due before the operation began counts as
	// due when it began. Both are from 0 to [MaxPostpone].
	Postpone time.Duration `json:"postpone_ns,omitempty"`
	Spread   time.Duration `json:"spread_ns,omitempty"`
}

// String returns the change in a few words.
func (e Edit) String() string {
	var parts []string
	if e.Priority > 0 {
		parts = append(parts, fmt.Sprint("priority ", e.Priority))
	}
	if e.Tenant != nil {
		parts = append(parts, "to "+cmp.Or(*e.Tenant, "no tenant"))
	}
	if e.Postpone > 0 {
		parts = append(parts, "later by "+sluice.FormatDuration(e.Postpone))
	}
	if e.Spread > 0 {
		parts = append(parts, "spread over "+sluice.FormatDuration(e.Spread))
	}
	return strings.Join(parts, ", ")
}

// MaxPostpone is the longest time by which an edit puts jobs off.
const MaxPostpone = 366 * 24 * time.Hour

// check returns the rule that an edit breaks.
func (e Edit) check() error {
	switch {
	case e == Edit{}:
		return feature.Invalid("edit", "it changes nothing; name a priority, a tenant, or by how much to postpone or spread")
	case e.Priority < 0 || e.Priority > 10:
		return feature.Invalid("priority", fmt.Sprintf("%d must be from 1 (first) to 10 (last)", e.Priority))
	case e.Postpone < 0 || e.Postpone > MaxPostpone:
		return feature.Invalid("postpone", fmt.Sprintf("%s must be from 0 to %s", sluice.FormatDuration(e.Postpone), sluice.FormatDuration(MaxPostpone)))
	case e.Spread < 0 || e.Spread > MaxPostpone:
		return feature.Invalid("spread", fmt.Sprintf("%s must be from 0 to %s", sluice.FormatDuration(e.Spread), sluice.FormatDuration(MaxPostpone)))
	case e.Tenant != nil && *e.Tenant != "":
		return sluice.CheckTenantName(*e.Tenant)
	}
	return nil
}

// editsAtOnce is how many jobs an operation edits at once: a store takes them one by one, and can write several together.
const editsAtOnce = 16

// editBatch changes the jobs of the present batch.
func editBatch(ctx context.Context, store sluice.Store, o Operation, act sluice.Act) ([]error, error) {
	under := o.course.Under
	errs := make([]error, len(under))
	var all sync.WaitGroup
	for first := range min(editsAtOnce, len(under)) {
		all.Go(func() {
			for i := first; i < len(under); i += editsAtOnce {
				errs[i] = o.editJob(ctx, store, under[i], act)
			}
		})
	}
	all.Wait()
	for _, err := range errs {
		if errors.Is(err, sluice.ErrUnavailable) || ctx.Err() != nil && err != nil {
			return nil, err // the whole batch comes again
		}
	}
	return errs, nil
}

// editTries is how often an edit reads a job that others change at the same time.
const editTries = 3

// editJob changes one job. The act may be done already: a job that was changed since, or is gone, does not show that, but the
// store knows.
func (o Operation) editJob(ctx context.Context, store sluice.Store, id sluice.ID, act sluice.Act) (err error) {
	for range editTries {
		job, found := store.Job(ctx, id)
		if err = found; err == nil {
			err = o.edit(ctx, store, job, act)
		}
		if !errors.Is(err, sluice.ErrConflict) {
			break
		}
	}
	if errors.Is(err, sluice.ErrNotFound) || errors.Is(err, sluice.ErrInvalid) || errors.Is(err, sluice.ErrConflict) {
		again := edit.Edit{JobID: id, Change: edit.Change{Priority: 1}, Version: "none"} // of no job
		if edit.Given(store).EditJob(ctx, again, act) == nil {
			return nil
		}
	}
	if errors.Is(err, sluice.ErrConflict) {
		return sluice.ErrNotAllowed // somebody else is at it
	}
	return err
}

// edit changes a job as it was read. Of the rules of an enqueue, the change can break those of the due time alone.
func (o Operation) edit(ctx context.Context, store sluice.Store, job sluice.Job, act sluice.Act) error {
	change := o.changeOf(job)
	if err := feature.CheckInstant("due_at", change.DueAt); err != nil {
		return err
	}
	if !job.ExpiresAt.IsZero() && !change.DueAt.Before(job.ExpiresAt) {
		return feature.Invalid("due_at", "the job would be due after it expires")
	}
	return edit.Given(store).EditJob(ctx, edit.Edit{Change: change, JobID: job.ID, Version: edit.VersionOf(job)}, act)
}

// changeOf is the change of one job.
func (o Operation) changeOf(job sluice.Job) edit.Change {
	change := edit.Change{Priority: o.Edit.Priority, Tenant: o.Edit.Tenant}
	if o.Edit.Postpone > 0 || o.Edit.Spread > 0 {
		from := job.DueAt
		if from.Before(o.CreatedAt) {
			from = o.CreatedAt
		}
		change.DueAt = feature.Instant(from.Add(o.Edit.Postpone + time.Duration(o.shareOf(job.ID)*float64(o.Edit.Spread))))
	}
	return change
}

// shareOf is a number from 0 to 1 that depends on the operation and the job alone, so that each process takes the same.
func (o Operation) shareOf(id sluice.ID) float64 {
	sum := sha256.Sum256(append(o.ID[:], id[:]...))
	return float64(binary.BigEndian.Uint64(sum[:])) / math.MaxUint64
}
