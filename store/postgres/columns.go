package postgres

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/columns"
	"github.com/sluice-queue/sluice/internal/storing"
)

//go:embed sql/columns.sql
var columnsFile string

// jobColumns are the lists of a job's columns. Statements name them as placeholders.
var jobColumns = columns.Read(columnsFile)

// statementOf returns a statement by the name of its file.
func statementOf(name string) (string, error) {
	file, err := fs.ReadFile(statementFiles, "sql/"+name)
	return jobColumns.In(string(file)), err
}

// jobRest holds the columns of the list more.
type jobRest struct {
	orderKey, failing pgtype.Text
	after             []pgtype.UUID
	timeout           pgtype.Int8 // ms
	batch             pgtype.UUID
	limitKey          pgtype.Text
	cost              pgtype.Int4
}

// targets returns the variables to scan into, in the order of the list.
func (r *jobRest) targets() []any {
	return []any{&r.orderKey, &r.after, &r.failing, &r.timeout, &r.batch, &r.limitKey, &r.cost}
}

func (r *jobRest) fill(j *sluice.Job) (err error) {
	j.OrderKey, j.After = r.orderKey.String, idsOf(r.after)
	j.Timeout = time.Duration(r.timeout.Int64) * time.Millisecond
	j.Batch, j.LimitKey, j.Cost = idOf(r.batch), r.limitKey.String, int(r.cost.Int32)
	j.AfterFailure, j.AfterFailures, err = storing.AfterRules(r.failing.String)
	return err
}

func scanJob(row pgx.CollectableRow) (sluice.Job, error) { return scanJobAnd(row) }

// scanJobAnd reads a job and the columns after it.
func scanJobAnd(row pgx.CollectableRow, more ...any) (sluice.Job, error) {
	var j sluice.Job
	var id, blockedBy pgtype.UUID
	var state string
	var key, holder, ref, failure, engine *string
	var rest jobRest
	var maxAttempts *int
	var labels, payload, checkpoint, result []byte
	var createdAt, expiresAt, dueAt, claimedAt, dispatchedAt, leaseUntil, finishedAt pgtype.Timestamptz
	targets := append([]any{
		&id, &j.Queue, &j.Tenant, &j.Priority, &key, &labels, &maxAttempts, &createdAt, &expiresAt, &state, &j.Generation,
		&dueAt, &j.Attempts, &j.Releases, &j.Recoveries, &holder, &claimedAt, &dispatchedAt, &leaseUntil, &ref, &blockedBy,
		&finishedAt, &failure, &payload, &checkpoint, &result,
	}, rest.targets()...)
	err := row.Scan(append(append(targets, &engine), more...)...)
	if err != nil {
		return j, err
	}
	if err = rest.fill(&j); err != nil {
		return j, err
	}
	j.ID, j.BlockedBy, j.State = idOf(id), idOf(blockedBy), sluice.State(state)
	j.Key, j.Holder, j.Ref, j.Error, j.MaxAttempts = orZero(key), orZero(holder), orZero(ref), orZero(failure), orZero(maxAttempts)
	j.Engine, j.Payload, j.Checkpoint = orZero(engine), payload, checkpoint
	j.Result, _ = storing.Result(result)
	j.CreatedAt, j.ExpiresAt, j.DueAt = timeOf(createdAt), timeOf(expiresAt), timeOf(dueAt)
	if j.Generation > 1 { // a requeued job does not expire
		j.ExpiresAt = time.Time{}
	}
	j.ClaimedAt, j.DispatchedAt, j.LeaseUntil, j.FinishedAt = timeOf(claimedAt), timeOf(dispatchedAt), timeOf(leaseUntil), timeOf(finishedAt)
	j.Labels, err = labelsOf(labels)
	return j, err
}

// claimScanner reads the rows of a claim into one set of variables: a claim of 1,000 jobs would otherwise allocate
// 10,000. More are the targets of further columns.
func claimScanner(request sluice.ClaimRequest, more ...any) pgx.RowToFunc[*sluice.Claim] {
	var row struct {
		id                    pgtype.UUID
		dueAt, expiresAt      pgtype.Timestamptz
		claimedAt, leaseUntil pgtype.Timestamptz
		createdAt             pgtype.Timestamptz // null: the job's row was deleted by hand
		failure, tenant, key  pgtype.Text
		labels, checkpoint    []byte
		maxAttempts           pgtype.Int4
		rest                  jobRest
	}
	last := append(row.rest.targets(), more...)
	return func(rows pgx.CollectableRow) (*sluice.Claim, error) {
		c := &sluice.Claim{Token: request.Token}
		c.Queue, c.State, c.Holder = request.Queue, sluice.StateClaimed, request.Holder
		targets := append([]any{
			&row.id, &c.Priority, &row.dueAt, &c.Generation, &c.Attempts, &c.Releases, &c.Recoveries, &row.claimedAt, &row.leaseUntil,
			&row.failure, &row.checkpoint, &row.tenant, &row.expiresAt, &row.key, (*[]byte)(&c.Payload), &row.labels, &row.maxAttempts, &row.createdAt,
		}, last...)
		err := rows.Scan(targets...)
		if err != nil {
			return nil, err
		}
		c.ID, c.Tenant, c.Key, c.Error = idOf(row.id), row.tenant.String, row.key.String, row.failure.String
		if err = row.rest.fill(&c.Job); err != nil {
			return nil, err
		}
		c.MaxAttempts, c.Checkpoint = int(row.maxAttempts.Int32), row.checkpoint
		c.DueAt, c.ClaimedAt, c.LeaseUntil = timeOf(row.dueAt), timeOf(row.claimedAt), timeOf(row.leaseUntil)
		c.CreatedAt, c.ExpiresAt = timeOf(row.createdAt), timeOf(row.expiresAt)
		c.Labels, err = labelsOf(row.labels)
		return c, err
	}
}

// plain reports whether a job needs no column that only the statements for many jobs write.
func plain(j *sluice.Insert) bool {
	return j.Key == "" && j.Timeout == 0 && !ordered(j) && !j.ByTenant && !j.AuditFull && j.Hold == "" && j.Batch.IsZero() && j.LimitKey == "" && j.Cost == 0
}

// insertOne stores a plain job. Carried is the signal that goes with it, if any.
func insertOne(ctx context.Context, db rowsQuerier, j *sluice.Insert, carried string) (map[sluice.ID]bool, error) {
	labels, err := labelsText(*j)
	if err != nil {
		return nil, err
	}
	return takenIDs(ctx, db, enqueueOneSQL, []any{
		[16]byte(j.ID), j.Queue, j.Tenant, int16(j.Priority), []byte(j.Payload), orNull(labels), orNull(int16(j.MaxAttempts)), nullTime(j.DueAt), orNull(j.Delay),
		nullTime(j.ExpiresAt), j.Known, orNull(carried),
	}, j.Queue)
}

// insertColumns holds the jobs of a batch as the statement takes them, one array per column. A column in which
// every value is zero stays empty, and the statement reads it as null in every row.
type insertColumns struct {
	ids           uuidArray
	queues        []string
	tenants       []string
	priorities    []int16
	keys          []string
	payloads      []byte // concatenated: the driver would copy each element of an array five times
	begins        []int32
	lengths       []int32
	labels        []string
	maxAttempts   []int16
	dueAt         []*time.Time
	delays        []time.Duration
	expiresAt     []*time.Time
	keyed         []bool
	blockedBy     []pgtype.UUID
	told          []bool
	inTenantQueue []bool
	orderKeys     []string
	orderPlaces   []int64
	after         []string
	failures      []string
	timeouts      []int64 // ms
	batches       []pgtype.UUID
	limitKeys     []string
	costs         []int32
}

func newInsertColumns(n, payloadBytes int) *insertColumns {
	return &insertColumns{
		ids: make(uuidArray, 0, n), queues: make([]string, 0, n), tenants: make([]string, 0, n), priorities: make([]int16, 0, n),
		keys: make([]string, 0, n), payloads: make([]byte, 0, payloadBytes), begins: make([]int32, 0, n), lengths: make([]int32, 0, n), labels: make([]string, 0, n), maxAttempts: make([]int16, 0, n),
		dueAt: make([]*time.Time, 0, n), delays: make([]time.Duration, 0, n), expiresAt: make([]*time.Time, 0, n),
		keyed: make([]bool, 0, n), blockedBy: make([]pgtype.UUID, 0, n), told: make([]bool, 0, n), inTenantQueue: make([]bool, 0, n),
	}
}

// labelsText returns a job's labels as JSON. Empty: the job has none.
func labelsText(j sluice.Insert) (string, error) {
	if len(j.Labels) == 0 {
		return "", nil
	}
	text, err := json.Marshal(j.Labels)
	if err != nil {
		return "", fmt.Errorf("labels of job %s: %w", j.ID, err)
	}
	return string(text), nil
}

func (c *insertColumns) add(j *sluice.Insert, place keyPlace) error {
	labels, err := labelsText(*j)
	if err != nil {
		return err
	}
	c.ids = append(c.ids, j.ID)
	c.queues = append(c.queues, j.Queue)
	c.tenants = append(c.tenants, j.Tenant)
	c.priorities = append(c.priorities, int16(j.Priority))
	c.keys = append(c.keys, j.Key)
	c.begins, c.lengths = append(c.begins, int32(len(c.payloads)+1)), append(c.lengths, int32(len(j.Payload)))
	c.payloads = append(c.payloads, j.Payload...)
	c.labels = append(c.labels, labels)
	c.maxAttempts = append(c.maxAttempts, int16(j.MaxAttempts))
	due := j.DueAt
	if !place.dueAt.IsZero() {
		due = place.dueAt
	}
	c.dueAt = append(c.dueAt, nullTime(due))
	c.delays = append(c.delays, j.Delay)
	c.expiresAt = append(c.expiresAt, nullTime(j.ExpiresAt))
	c.keyed = append(c.keyed, j.Key != "" && j.KeyScope == sluice.WhileUnfinished)
	if j.Hold != "" {
		place.blockedBy = j.ID
	}
	c.blockedBy = append(c.blockedBy, nullUUID(place.blockedBy))
	c.told = append(c.told, j.AuditFull)
	c.inTenantQueue = append(c.inTenantQueue, j.ByTenant)
	if !j.Batch.IsZero() || c.batches != nil {
		c.batches = append(append(c.batches, make([]pgtype.UUID, len(c.ids)-1-len(c.batches))...), nullUUID(j.Batch))
	}
	if j.LimitKey != "" || c.limitKeys != nil {
		c.limitKeys = append(append(c.limitKeys, make([]string, len(c.ids)-1-len(c.limitKeys))...), j.LimitKey)
	}
	if j.Cost != 0 || c.costs != nil {
		c.costs = append(append(c.costs, make([]int32, len(c.ids)-1-len(c.costs))...), int32(j.Cost))
	}
	if place.order != 0 || len(place.after) > 0 || c.orderKeys != nil {
		c.addPlace(j, place)
	}
	if j.Timeout != 0 || c.timeouts != nil {
		c.timeouts = append(append(c.timeouts, make([]int64, len(c.ids)-1-len(c.timeouts))...), j.Timeout.Milliseconds())
	}
	return nil
}

// addPlace adds the order and the dependencies of a job. The columns begin with the first job that has them.
func (c *insertColumns) addPlace(j *sluice.Insert, place keyPlace) {
	for len(c.orderKeys) < len(c.ids)-1 {
		c.orderKeys, c.orderPlaces = append(c.orderKeys, ""), append(c.orderPlaces, 0)
		c.after, c.failures = append(c.after, ""), append(c.failures, "")
	}
	c.orderKeys, c.orderPlaces = append(c.orderKeys, j.OrderKey), append(c.orderPlaces, place.order)
	c.after, c.failures = append(c.after, textOf(place.after)), append(c.failures, storing.AfterText(j.AfterFailure, place.failures))
}

// few reports whether enqueue_new.sql stores all that the jobs have, but for batches. Jobs with places among others need a
// transaction, and never use it.
func (c *insertColumns) few() bool {
	return c.timeouts == nil && c.limitKeys == nil && c.costs == nil && unlessZero(c.inTenantQueue) == nil
}

// onlyBatch returns the batch of all jobs. Not valid: enqueue_batch.sql does not store all that they have.
func (c *insertColumns) onlyBatch() (of pgtype.UUID) {
	if c.batches == nil || !c.few() {
		return of
	}
	for _, other := range c.batches {
		if other != c.batches[0] {
			return of
		}
	}
	return c.batches[0]
}

// fewArguments returns the arguments of enqueue_new.sql. Known are the queues that must be stored still.
func (c *insertColumns) fewArguments(known []string) []any {
	return append(c.common(known), c.payloads)
}

// arguments returns the arguments of enqueue.sql. Known are the queues that must be stored still.
func (c *insertColumns) arguments(known []string) []any {
	return append(c.common(known), unlessZero(c.inTenantQueue), unlessZero(c.orderKeys), unlessZero(c.orderPlaces), unlessZero(c.after),
		unlessZero(c.failures), unlessZero(c.timeouts), c.batches, c.limitKeys, c.costs, c.payloads)
}

// common returns the first arguments of both statements.
func (c *insertColumns) common(known []string) []any {
	return []any{
		c.ids, c.queues, unlessZero(c.tenants), c.priorities, unlessZero(c.keys), known, unlessZero(c.labels), unlessZero(c.maxAttempts),
		unlessZero(c.dueAt), unlessZero(c.delays), unlessZero(c.expiresAt), unlessZero(c.keyed), unlessZero(c.blockedBy), unlessZero(c.told),
		c.begins, c.lengths,
	}
}
