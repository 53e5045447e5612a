package sluice

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
)

// PayloadChecker checks payloads against a JSON Schema. Package schema has one.
type PayloadChecker interface {
	// Compile says whether a text is a JSON Schema.
	Compile(schema string) error
	// Check says whether a payload matches a schema.
	Check(schema string, payload []byte) error
}

// ClientOptions adjust a Client. The zero value works.
type ClientOptions struct {
	// PayloadChecker checks the payloads of queues that have a payload_schema. Without one, an
	// enqueue into such a queue is refused. Default: none.
	PayloadChecker PayloadChecker
	// Logger gets a line when settings that were stored by plain SQL break a rule, and one for each job that was not
	// stored because another holds its key or id; at most 10 of these for a queue within 10 s. Default: slog.Default.
	Logger *slog.Logger
}

// Client puts jobs in, looks at them and acts on them. It does not run them; a Worker does. It may
// be used by many goroutines.
type Client struct {
	store      Store
	enqueuer   Enqueuer
	inTx       bool // the enqueuer is a transaction of the caller's
	settings   *LiveSettings
	checker    PayloadChecker
	duplicates *duplicateLog
	fresh      *newQueues
}

// NewClient makes a client of a store. It does no reading or writing itself. Without a store (nil) each method that gives an
// error gives an ErrInvalid.
func NewClient(store Store, options ClientOptions) *Client {
	store = GivenStore(store)
	live := NewLiveSettings(store, LiveOptions(options))
	return &Client{
		store: store, enqueuer: store, settings: live, checker: options.PayloadChecker, duplicates: newDuplicateLog(options.Logger),
		fresh: newNewQueues(),
	}
}

// Within gives a client that enqueues inside the caller's own transaction, so that the job exists
// if and only if the transaction commits. The SQL stores' InTx makes the argument. Everything but
// enqueueing goes to the store as before.
func (c *Client) Within(tx Enqueuer) *Client {
	inner := *c
	inner.enqueuer, inner.inTx = GivenEnqueuer(tx), true
	return &inner
}

// Enqueue stores one job. When it returns without an error, the job is durable. After an *EnqueueError the job may be
// stored or not; send it again under the id that the receipt and the error have.
func (c *Client) Enqueue(ctx context.Context, job NewJob) (Receipt, error) {
	receipts, err := c.EnqueueMany(ctx, []NewJob{job})
	var batch *BatchError
	if errors.As(err, &batch) {
		return Receipt{}, fmt.Errorf("enqueue into %q: %w", job.Queue, batch.Failed[0])
	}
	return receipts[0], err
}

// EnqueueMany stores jobs in one transaction; a few thousand at a time go fastest. More than MaxBatch, or than 512 MiB of
// payloads, are an ErrInvalid of the field "jobs", and nothing is stored: split them. On SQLite every other writer of the
// file waits until all are stored. A job that
// breaks a rule, names a new queue that the policy of package admission refuses, or is to run after one that is not stored, fails alone: the error is then a
// *BatchError, and the others are stored. Any other
// error is an *EnqueueError: whether the jobs are stored may not be known, and it has their ids, as the receipts have
// them, under which they can be sent again.
func (c *Client) EnqueueMany(ctx context.Context, jobs []NewJob) ([]Receipt, error) {
	if err := checkBatch(jobs); err != nil {
		return nil, err
	}
	jobs = slices.Clone(jobs)
	receipts := make([]Receipt, len(jobs))
	for i := range jobs {
		if jobs[i].ID.IsZero() {
			jobs[i].ID = NewID()
		}
		receipts[i].ID = jobs[i].ID
	}
	for try := 1; ; try++ {
		err := c.enqueueInto(ctx, jobs, receipts)
		if !errors.Is(err, ErrQueueGone) || try == enqueueTries {
			return receipts, err
		}
		c.settings.Forget() // a queue was deleted since: this time it is made anew
	}
}

// checkBatch refuses what would keep other writers of a SQLite file waiting until they give up, or is more than PostgreSQL
// takes in one statement.
func checkBatch(jobs []NewJob) error {
	if len(jobs) > MaxBatch {
		return invalid("jobs", fmt.Sprintf("%d are more than %d in one call; store them in parts", len(jobs), MaxBatch))
	}
	bytes := 0
	for i := range jobs {
		bytes += len(jobs[i].Payload)
	}
	if len(jobs) > 1 && bytes > maxBatchBytes {
		return invalid("jobs", fmt.Sprintf("payloads of %d bytes are more than %d in one call; store them in parts", bytes, maxBatchBytes))
	}
	return nil
}

// enqueueTries bounds how often jobs are sent whose queue is deleted again and again.
const enqueueTries = 5

// enqueueInto stores jobs that have ids, and fills in their receipts.
func (c *Client) enqueueInto(ctx context.Context, jobs []NewJob, receipts []Receipt) error {
	inserts := make([]Insert, 0, len(jobs))
	places := make([]int, 0, len(jobs))
	failed := make(map[int]error)
	for i, job := range jobs {
		if err := job.check(); err != nil {
			failed[i] = err
		}
	}
	refused, err := c.admit(ctx, jobs, failed)
	if err != nil {
		return enqueueError(jobs, err)
	}
	for i, job := range jobs {
		if err := refused[job.Queue]; err != nil && failed[i] == nil {
			failed[i] = err
		}
		if failed[i] != nil {
			continue
		}
		insert, err := c.prepare(ctx, job)
		switch {
		case errors.Is(err, ErrInvalid):
			failed[i] = err
		case err != nil:
			return enqueueError(jobs, err)
		default:
			inserts = append(inserts, insert)
			places = append(places, i)
		}
	}
	inserts, places = inOrder(inserts, places, failed)
	if len(inserts) > 0 {
		stored, err := c.enqueuer.Enqueue(ctx, inserts)
		var refused *BatchError
		if err != nil && !errors.As(err, &refused) {
			return enqueueError(jobs, err)
		}
		c.duplicates.tell(inserts, stored)
		for k, receipt := range stored {
			receipts[places[k]] = receipt
			if refused != nil && refused.Failed[k] != nil {
				failed[places[k]] = refused.Failed[k]
			}
		}
	}
	if len(failed) > 0 {
		for i := range failed {
			receipts[i] = Receipt{}
		}
		return &BatchError{Failed: failed, Total: len(jobs)}
	}
	return nil
}

// queuesOf names the queues of those jobs that have not failed.
func queuesOf(jobs []NewJob, failed map[int]error) []string {
	var names []string
	seen := make(map[string]bool)
	for i, job := range jobs {
		if failed[i] == nil && !seen[job.Queue] {
			seen[job.Queue] = true
			names = append(names, job.Queue)
		}
	}
	return names
}

func enqueueError(jobs []NewJob, err error) *EnqueueError {
	ids := make([]ID, len(jobs))
	for i, job := range jobs {
		ids[i] = job.ID
	}
	return &EnqueueError{IDs: ids, Err: err}
}

// inOrder puts jobs behind those of the batch that they are to run after, and takes out those that wait
// for each other.
func inOrder(inserts []Insert, places []int, failed map[int]error) ([]Insert, []int) {
	if !slices.ContainsFunc(inserts, func(in Insert) bool { return len(in.After) > 0 }) {
		return inserts, places
	}
	order, cycles := sortBatch(inserts)
	for k, err := range cycles {
		failed[places[k]] = err
	}
	sorted, sortedPlaces := make([]Insert, len(order)), make([]int, len(order))
	for k, from := range order {
		sorted[k], sortedPlaces[k] = inserts[from], places[from]
	}
	return sorted, sortedPlaces
}

// prepare checks a job by the rules of its queue, and fills in what it leaves open.
func (c *Client) prepare(ctx context.Context, job NewJob) (Insert, error) {
	queue, err := c.settings.queueBy(ctx, c.enqueuer, c.inTx, job.Queue)
	if err != nil {
		return Insert{}, err
	}
	now := c.settings.Now()
	if now.IsZero() && !job.ExpiresAt.IsZero() { // nothing was stored that shows the store's clock
		if _, err := c.settings.queueBy(ctx, c.enqueuer, c.inTx, job.Queue); err != nil {
			return Insert{}, err
		}
		now = c.settings.Now()
	}
	if err := job.checkExpiry(now); err != nil {
		return Insert{}, err
	}
	if err := job.checkPayload(queue.Settings.PayloadLimit); err != nil {
		return Insert{}, err
	}
	if err := CheckSchema(c.checker, queue, job.Payload); err != nil {
		return Insert{}, err
	}
	if job.Priority == 0 {
		job.Priority = DefaultPriority
	}
	if job.Key != "" {
		job.KeyScope = orElse(job.KeyScope, WhileUnfinished)
		job.OnDuplicate = orElse(job.OnDuplicate, Keep)
	}
	if len(job.After) > 0 {
		job.After = sortedIDs(job.After)
		job.AfterFailure = orElse(job.AfterFailure, FailureCancels)
	}
	return Insert{NewJob: job, AuditFull: queue.Settings.Audit == AuditFull, ByTenant: queue.ByTenant, Known: !c.inTx}, nil
}

func orElse[T comparable](value, otherwise T) T {
	var unset T
	if value == unset {
		return otherwise
	}
	return value
}

// CheckSchema checks a payload by the queue's payload_schema. A queue without one accepts every
// payload; a queue with one, in a program without a checker, accepts none.
func CheckSchema(checker PayloadChecker, queue Queue, payload []byte) error {
	if queue.Settings.PayloadSchema == "" {
		return nil
	}
	if checker == nil {
		return invalid("payload", fmt.Sprintf("queue %q has a payload_schema, and this program has no PayloadChecker to check it with; package schema has one", queue.Name))
	}
	if err := checker.Check(queue.Settings.PayloadSchema, payload); err != nil {
		return invalid("payload", fmt.Sprintf("it does not match the payload_schema of queue %q: %v", queue.Name, err))
	}
	return nil
}

// EnsureQueue stores a queue with these settings if it is not stored yet, and returns the queue as
// it is stored. From then on the database rules: settings that are given in code do not overwrite
// what an operator changed. It declares the queue; if the store has as many as package admission allows, it is a
// *QueueLimitError.
func (c *Client) EnsureQueue(ctx context.Context, name string, settings Settings, act Act) (Queue, error) {
	if err := CheckQueueName(name); err != nil {
		return Queue{}, err
	}
	return c.ensureQueue(ctx, Queue{Name: name, Settings: settings}, act)
}

// ensureQueue stores a new queue unless it is stored, and returns the stored one.
func (c *Client) ensureQueue(ctx context.Context, queue Queue, act Act) (Queue, error) {
	for try := 1; ; try++ {
		stored, err := c.saveQueue(ctx, queue, act)
		if !errors.Is(err, ErrConflict) {
			return stored, err
		}
		stored, err = c.Queue(ctx, queue.Name)
		if !errors.Is(err, ErrNotFound) || try == enqueueTries { // else it was deleted in between
			return stored, err
		}
	}
}

// Job looks a job up.
func (c *Client) Job(ctx context.Context, id ID) (Job, error) { return c.store.Job(ctx, id) }

// Attempts lists a job's failed attempts, the oldest first.
func (c *Client) Attempts(ctx context.Context, id ID) ([]Attempt, error) {
	return c.store.Attempts(ctx, id)
}

// Jobs lists jobs, the newest first, without their payloads.
func (c *Client) Jobs(ctx context.Context, filter JobFilter) (Page, error) {
	limit, err := pageLimit(filter.Limit)
	if err != nil {
		return Page{}, err
	}
	filter.Limit = limit
	return c.store.Jobs(ctx, filter)
}

// Audit lists what was done, the newest first.
func (c *Client) Audit(ctx context.Context, filter AuditFilter) ([]AuditEntry, error) {
	limit, err := pageLimit(filter.Limit)
	if err != nil {
		return nil, err
	}
	filter.Limit = limit
	return c.store.Audit(ctx, filter)
}

func pageLimit(limit int) (int, error) {
	switch {
	case limit == 0:
		return 100, nil
	case limit < 0 || limit > 10_000:
		return 0, invalid("limit", fmt.Sprintf("%d is not from 1 to 10000", limit))
	}
	return limit, nil
}

// Depth counts the jobs of a queue, each figure at most DepthLimit.
func (c *Client) Depth(ctx context.Context, queue string) (Depth, error) {
	return c.store.Depth(ctx, queue, DepthLimit)
}
