package sluice

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
)

// PayloadChecker checks payloads against a JSON Schema. Package schema has an implementation.
type PayloadChecker interface {
	// Compile returns an error if the text is not a JSON Schema.
	Compile(schema string) error
	// Check returns an error if the payload does not match the schema.
	Check(schema string, payload []byte) error
}

// ClientOptions configures a [Client]. The zero value works.
type ClientOptions struct {
	// PayloadChecker checks the payloads of queues that have a payload_schema. Default: none, so an enqueue into
	// such a queue fails.
	PayloadChecker PayloadChecker
	// Logger gets a line when settings that somebody stored by plain SQL break a rule. It gets a line for each
	// duplicate job too, at most 10 per queue in 10 s. Default: slog.Default().
	Logger *slog.Logger
	// Middleware wraps each enqueue of the client, the first outermost. Default: none.
	Middleware []EnqueueMiddleware
}

// EnqueueMiddleware wraps the calls that enqueue jobs, inside and outside of transactions. It may change the jobs, such
// as their labels, and calls next once with all of them; or it returns an error, and nothing is stored. The jobs have
// their IDs. [TypedQueue.Decode] reads a payload.
type EnqueueMiddleware func(ctx context.Context, jobs []NewJob, next func(context.Context, []NewJob) ([]Receipt, error)) ([]Receipt, error)

// Client enqueues jobs, looks them up and acts on them. It does not run jobs; package worker does. Many goroutines
// may share one Client.
type Client struct {
	store      Store
	enqueuer   Enqueuer
	inTx       bool // the enqueuer is a transaction of the caller's
	settings   *LiveSettings
	checker    PayloadChecker
	duplicates *duplicateLog
	fresh      *newQueues
	around     []EnqueueMiddleware
}

// NewClient makes a client of a store. It does not call the store. If store is nil, each method that returns an
// error returns an [ErrInvalid].
func NewClient(store Store, options ClientOptions) *Client {
	store = GivenStore(store)
	live := NewLiveSettings(store, LiveOptions{PayloadChecker: options.PayloadChecker, Logger: options.Logger})
	return &Client{
		store: store, enqueuer: store, settings: live, checker: options.PayloadChecker, duplicates: newDuplicateLog(options.Logger),
		fresh: newNewQueues(), around: options.Middleware,
	}
}

// Within returns a client that enqueues inside your own transaction, so that a job exists only if the transaction
// commits. InTx of the SQL stores makes tx. The client does everything else outside of the transaction.
func (c *Client) Within(tx Enqueuer) *Client {
	inner := *c
	inner.enqueuer, inner.inTx = GivenEnqueuer(tx), true
	return &inner
}

// Enqueue stores one job. If the error is nil, the job is durable, or the receipt says that it is a duplicate.
//
// After an [*EnqueueError] the job may be stored or not. Send it again with the ID of the receipt or of the error:
// a job that is stored is not stored twice.
func (c *Client) Enqueue(ctx context.Context, job NewJob) (Receipt, error) {
	receipts, err := c.EnqueueMany(ctx, []NewJob{job})
	var batch *BatchError
	if errors.As(err, &batch) {
		return Receipt{}, fmt.Errorf("enqueue into %q: %w", job.Queue, batch.Failed[0])
	}
	if len(receipts) == 0 { // a middleware refused it
		return Receipt{}, err
	}
	return receipts[0], err
}

// EnqueueMany stores jobs in one transaction. A few thousand jobs per call are fastest. On SQLite, every other
// writer of the file waits until the call ends.
//
// A job fails alone if it breaks a rule or runs after an unknown job. A job also fails alone if the store refuses
// its new queue; see package admission. The error is then a [*BatchError], and the other jobs are stored. A full
// queue refuses all jobs of a call; see package pressure.
//
// More than [MaxBatch] jobs, or more than 512 MiB of payloads, are an [ErrInvalid]; nothing is stored. Any other
// error is an [*EnqueueError]: the jobs may be stored or not. Send them again with the IDs of the receipts or of
// the error.
func (c *Client) EnqueueMany(ctx context.Context, jobs []NewJob) ([]Receipt, error) {
	if err := checkBatch(jobs); err != nil {
		return nil, err
	}
	jobs = slices.Clone(jobs)
	for i := range jobs {
		if jobs[i].ID.IsZero() {
			jobs[i].ID = NewID()
		}
	}
	if len(c.around) == 0 {
		return c.enqueueAll(ctx, jobs)
	}
	for i := range jobs {
		jobs[i].written = false // a middleware may change the payload
	}
	receipts, err := c.enqueueWithin(ctx, c.around, jobs)
	if err == nil && len(receipts) != len(jobs) {
		return receipts, fmt.Errorf("a middleware of the client answered %d receipts for %d jobs: it must call next once, with all jobs", len(receipts), len(jobs))
	}
	return receipts, err
}

// enqueueWithin enqueues within the middleware, the first outermost.
func (c *Client) enqueueWithin(ctx context.Context, around []EnqueueMiddleware, jobs []NewJob) ([]Receipt, error) {
	if len(around) == 0 {
		return c.enqueueAll(ctx, jobs)
	}
	if around[0] == nil {
		return nil, invalid("option Middleware", "a nil function; leave it out")
	}
	return around[0](ctx, jobs, func(ctx context.Context, jobs []NewJob) ([]Receipt, error) {
		return c.enqueueWithin(ctx, around[1:], jobs)
	})
}

// enqueueAll stores jobs that have IDs.
func (c *Client) enqueueAll(ctx context.Context, jobs []NewJob) ([]Receipt, error) {
	receipts := make([]Receipt, len(jobs))
	for i := range jobs {
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

// checkBatch refuses a batch that would make other writers of a SQLite file wait until they give up, or that
// exceeds one statement of PostgreSQL.
func checkBatch(jobs []NewJob) error {
	if len(jobs) > MaxBatch {
		return invalid("jobs", fmt.Sprintf("%d jobs must be at most %d in one call; split them", len(jobs), MaxBatch))
	}
	bytes := 0
	for i := range jobs {
		bytes += len(jobs[i].Payload)
	}
	if len(jobs) > 1 && bytes > maxBatchBytes {
		return invalid("jobs", fmt.Sprintf("payloads of %d bytes must be at most %d in one call; split them", bytes, maxBatchBytes))
	}
	return nil
}

// enqueueTries is how often the client sends jobs whose queue is deleted again and again.
const enqueueTries = 5

// enqueueInto stores jobs that have IDs, and fills in their receipts.
func (c *Client) enqueueInto(ctx context.Context, jobs []NewJob, receipts []Receipt) error {
	inserts := make([]Insert, 0, len(jobs))
	places := make([]int, 0, len(jobs))
	failed := make(map[int]error)
	for i, job := range jobs {
		if err := job.Check(); err != nil {
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
		}
		if refused != nil {
			for k, err := range refused.Failed {
				failed[places[k]] = err
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

// queuesOf returns the queues of the jobs that have not failed.
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

// enqueueError returns an error with the IDs of all jobs.
func enqueueError(jobs []NewJob, err error) *EnqueueError {
	ids := make([]ID, len(jobs))
	for i, job := range jobs {
		ids[i] = job.ID
	}
	return &EnqueueError{IDs: ids, Err: err}
}

// inOrder sorts jobs behind their predecessors in the batch, and removes jobs that wait for each other.
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

// prepare checks a job by the rules of its queue, and fills in defaults.
func (c *Client) prepare(ctx context.Context, job NewJob) (Insert, error) {
	queue, err := c.settings.queueBy(ctx, c.enqueuer, c.inTx, job.Queue)
	if err != nil {
		return Insert{}, err
	}
	now := c.settings.Now()
	if now.IsZero() && !job.ExpiresAt.IsZero() { // no stored queue has shown the store's clock yet
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
	of := &queue.Settings
	return Insert{NewJob: job, AuditFull: of.Audit == AuditFull, ByTenant: queue.ByTenant, Known: !c.inTx, MaxWaiting: of.MaxWaiting, TenantMaxWaiting: of.TenantMaxWaiting, Shed: of.Shed}, nil
}

// orElse returns the value, or otherwise if the value is zero.
func orElse[T comparable](value, otherwise T) T {
	var unset T
	if value == unset {
		return otherwise
	}
	return value
}

// CheckSchema returns an [ErrInvalid] if a payload does not match the payload_schema of its queue. A queue without
// a schema accepts every payload. A queue with a schema accepts none if checker is nil.
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

// EnsureQueue stores a queue with these settings unless the queue is stored, and returns the stored queue. It never
// changes a stored queue, so an operator's changes survive a deploy.
//
// EnsureQueue declares the queue; see package admission. It also stores a group of queues; see [IsGroup]. If the
// store has as many queues as it may have, the error is a *admission.QueueLimitError.
func (c *Client) EnsureQueue(ctx context.Context, name string, settings Settings, act Act) (Queue, error) {
	if err := CheckOwnQueueName(name); err != nil && !IsGroup(name) {
		return Queue{}, err
	}
	return c.ensureQueue(ctx, Queue{Name: name, Settings: settings}, act)
}

// ensureQueue stores a new queue unless it is stored, and returns the stored queue.
func (c *Client) ensureQueue(ctx context.Context, queue Queue, act Act) (Queue, error) {
	for try := 1; ; try++ {
		stored, err := c.saveQueue(ctx, queue, act)
		if !errors.Is(err, ErrConflict) {
			return stored, err
		}
		stored, err = c.Queue(ctx, queue.Name)
		if !errors.Is(err, ErrNotFound) || try == enqueueTries { // else somebody deleted the queue in between
			return stored, err
		}
	}
}

// Job returns a job. An unknown ID is an [ErrNotFound].
func (c *Client) Job(ctx context.Context, id ID) (Job, error) { return c.store.Job(ctx, id) }

// Attempts lists the failed attempts of a job, the oldest first.
func (c *Client) Attempts(ctx context.Context, id ID) ([]Attempt, error) {
	return c.store.Attempts(ctx, id)
}

// Jobs lists jobs without their payloads. A Limit outside of 1 to 10,000 is an [ErrInvalid]; 0 is 100.
func (c *Client) Jobs(ctx context.Context, filter JobFilter) (Page, error) {
	limit, err := pageLimit(filter.Limit)
	if err != nil {
		return Page{}, err
	}
	filter.Limit = limit
	return c.store.Jobs(ctx, filter)
}

// Audit lists audit entries, the newest first. A Limit outside of 1 to 10,000 is an [ErrInvalid]; 0 is 100.
func (c *Client) Audit(ctx context.Context, filter AuditFilter) ([]AuditEntry, error) {
	limit, err := pageLimit(filter.Limit)
	if err != nil {
		return nil, err
	}
	filter.Limit = limit
	return c.store.Audit(ctx, filter)
}

// pageLimit returns the size of a page, or the default for 0.
func pageLimit(limit int) (int, error) {
	switch {
	case limit == 0:
		return 100, nil
	case limit < 0 || limit > 10_000:
		return 0, invalid("limit", fmt.Sprintf("%d must be from 1 to 10000", limit))
	}
	return limit, nil
}

// Depth counts the jobs of a queue. Each count is at most [DepthLimit].
func (c *Client) Depth(ctx context.Context, queue string) (Depth, error) {
	return c.store.Depth(ctx, queue, DepthLimit)
}
