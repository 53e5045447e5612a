// Package edit changes waiting jobs: payload, priority, due time, timeout, labels, tenant,
// limit key and cost.
//
// Begin with [Job], which takes the job as the caller has read it, and refuses if somebody changed the job since.
//
// Read next: docs/guide/hold.md. Package hold keeps a job from running while you look at it.
package edit

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/feature"
)

// Change is the new content of a job. Fields that are not set stay as they are.
type Change struct {
	// Payload is the new payload. It must pass the checks of an enqueue. Default: no change.
	Payload json.RawMessage
	// Priority is from 1 (first) to 10 (last). Default: no change.
	Priority int
	// DueAt is the new earliest start. Default: no change.
	DueAt time.Time
	// Labels are all labels of the job; an empty map removes them. Nil: no change.
	Labels map[string]string
	// Tenant is the new tenant; empty: no tenant. Nil: no change.
	Tenant *string
	// Timeout is the new timeout of an attempt or run; 0: as the handler or the queue says. Nil: no change.
	Timeout *time.Duration
	// LimitKey is the new limit key; empty: none. Nil: no change. A job that waits for its old key looks for room anew.
	LimitKey *string
	// Cost is the new cost, from 1 to 1,000,000; 0: 1. Nil: no change.
	Cost *int
}

// Edit is a checked change on its way into a store.
type Edit struct {
	Change
	// JobID is the job, and Version its content before the change; see [VersionOf].
	JobID   sluice.ID
	Version string
}

// VersionOf returns a hash of all that an edit can change, and of the job's life: generation, attempts, releases and
// recoveries. Two looks at a job have the same version if nobody has changed or run the job between them.
func VersionOf(job sluice.Job) string {
	labels := job.Labels
	if len(labels) == 0 {
		labels = nil
	}
	text, err := json.Marshal([]any{
		job.ID, job.Generation, job.Attempts, job.Releases, job.Recoveries, job.Priority, job.Tenant, job.DueAt.UnixMicro(), labels,
		[]byte(job.Payload), job.Timeout, job.LimitKey, job.Cost,
	})
	if err != nil {
		return "" // numbers, texts and maps of texts always encode
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}

// Job changes a waiting job. The argument is the job as the caller read it, with its payload. Checker checks the payload
// if the queue has a payload_schema; nil refuses a new payload of such a queue.
//
// If somebody changed or ran the job since it was read, the error is a [sluice.ErrConflict]: read the job again. A job
// that does not wait is a [sluice.ErrNotAllowed], an unknown one a [sluice.ErrNotFound]. A broken rule is a
// [sluice.ErrInvalid].
func Job(ctx context.Context, store sluice.Store, job sluice.Job, change Change, act sluice.Act, checker sluice.PayloadChecker) error {
	if err := sluice.CheckGiven("store", store); err != nil {
		return err
	}
	if err := act.Check(); err != nil {
		return err
	}
	if change.DueAt = feature.Instant(change.DueAt); change.empty() {
		return feature.Invalid("change", "it changes nothing")
	}
	if err := change.check(ctx, store, job, checker); err != nil {
		return err
	}
	change.Labels = maps.Clone(change.Labels)
	if err := Given(store).EditJob(ctx, Edit{Change: change, JobID: job.ID, Version: VersionOf(job)}, act); err != nil {
		return fmt.Errorf("edit job %s: %w", job.ID, err)
	}
	return nil
}

func (c Change) empty() bool {
	return c.Payload == nil && c.Priority == 0 && c.DueAt.IsZero() && c.Labels == nil && c.Tenant == nil && c.Timeout == nil && c.LimitKey == nil && c.Cost == nil
}

// Apply changes a job.
func (c Change) Apply(job *sluice.Job) {
	if c.Payload != nil {
		job.Payload = c.Payload
	}
	if c.Priority != 0 {
		job.Priority = c.Priority
	}
	if !c.DueAt.IsZero() {
		job.DueAt = c.DueAt
	}
	if c.Labels != nil {
		job.Labels = c.Labels
	}
	if c.Tenant != nil {
		job.Tenant = *c.Tenant
	}
	if c.Timeout != nil {
		job.Timeout = *c.Timeout
	}
	if c.LimitKey != nil {
		job.LimitKey = *c.LimitKey
	}
	if c.Cost != nil {
		job.Cost = *c.Cost
	}
}

// AuditText returns the fields of a job that a change names, as the audit keeps them. Of a payload it has the size only,
// because a payload may be secret.
func (c Change) AuditText(job sluice.Job) json.RawMessage {
	told := make(map[string]any)
	if c.Payload != nil {
		told["payload_bytes"] = len(job.Payload)
	}
	if c.Priority != 0 {
		told["priority"] = job.Priority
	}
	if !c.DueAt.IsZero() {
		told["due_at"] = job.DueAt.UTC()
	}
	if c.Labels != nil {
		told["labels"] = job.Labels
	}
	if c.Tenant != nil {
		told["tenant"] = job.Tenant
	}
	if c.Timeout != nil {
		told["timeout"] = sluice.FormatDuration(job.Timeout)
	}
	if c.LimitKey != nil {
		told["limit_key"] = job.LimitKey
	}
	if c.Cost != nil {
		told["cost"] = max(job.Cost, 1)
	}
	text, err := json.Marshal(told)
	if err != nil {
		return nil // a year that JSON has no instants for
	}
	return text
}

// check checks the changed job by the rules of an enqueue. It enqueues nothing.
func (c Change) check(ctx context.Context, store sluice.Store, job sluice.Job, checker sluice.PayloadChecker) error {
	c.Apply(&job)
	if c.Payload == nil {
		job.Payload = json.RawMessage("null")
	}
	client := sluice.NewClient(store, sluice.ClientOptions{PayloadChecker: checker, Logger: slog.New(slog.DiscardHandler)})
	due := c.DueAt
	if job.ExpiresAt.IsZero() || due.IsZero() {
		due = time.Time{} // only a new due time can come after the expiry
	}
	_, err := client.Within(dry{store, c.Payload == nil}).Enqueue(ctx, sluice.NewJob{
		Queue: job.Queue, Payload: job.Payload,
		EnqueueOptions: sluice.EnqueueOptions{
			Tenant: job.Tenant, Priority: job.Priority, Labels: job.Labels, DueAt: due, ExpiresAt: job.ExpiresAt, Timeout: job.Timeout,
			LimitKey: job.LimitKey, Cost: job.Cost,
		},
	})
	if err != nil {
		return fmt.Errorf("edit job %s: %w", job.ID, err)
	}
	return feature.CheckInstant("due_at", c.DueAt)
}

// dry takes checked jobs and stores none.
type dry struct {
	sluice.Store
	anyPayload bool // the payload stays as it is, whatever the queue asks for now
}

// Enqueue stores nothing.
func (d dry) Enqueue(_ context.Context, jobs []sluice.Insert) ([]sluice.Receipt, error) {
	return make([]sluice.Receipt, len(jobs)), nil
}

// Admit admits all queues, and makes none.
func (d dry) Admit(_ context.Context, queues []string, _ sluice.Act) ([]error, error) {
	return make([]error, len(queues)), nil
}

// Queues lists queues. If the payload stays as it is, they have no schema.
func (d dry) Queues(ctx context.Context, filter sluice.QueueFilter) ([]sluice.Queue, error) {
	queues, err := d.Store.Queues(ctx, filter)
	for i := range queues {
		if d.anyPayload {
			queues[i].Settings.PayloadSchema = ""
		}
	}
	return queues, err
}
