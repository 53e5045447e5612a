package sqlite

import (
	"database/sql"
	_ "embed"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/columns"
	"github.com/sluice-queue/sluice/internal/storing"
)

//go:embed sql/columns.sql
var columnsFile string

// jobColumns are the lists of a job's columns. Statements name them as placeholders.
var jobColumns = columns.Read(columnsFile)

//go:embed sql/enqueue_job.sql
var enqueueJobSQL string

//go:embed sql/enqueue_more.sql
var enqueueMoreFile string

var enqueueMoreSQL = jobColumns.In(enqueueMoreFile)

// putJob stores a job, and does nothing if its id is taken. Most jobs have no column of the list more: storing them
// takes fewer arguments.
func putJob(tx runner, j *sluice.Insert, others before, at int64, labels, maxAttempts any) (sql.Result, error) {
	arguments := []any{
		j.ID[:], j.Queue, j.Tenant, j.Priority, nullText(j.Key), []byte(j.Payload), labels, maxAttempts, at, micros(j.ExpiresAt),
	}
	if !ordered(j) && j.Timeout == 0 && j.Batch.IsZero() && j.LimitKey == "" && j.Cost == 0 {
		return tx.exec(enqueueJobSQL, arguments...)
	}
	var ids any
	if len(others.ids) > 0 {
		text, err := jsonOf(others.ids)
		if err != nil {
			return nil, err
		}
		ids = text
	}
	return tx.exec(enqueueMoreSQL, append(arguments, nullText(j.OrderKey), ids, nullText(storing.AfterText(j.AfterFailure, others.failures)), nullMillis(j.Timeout), nullID(j.Batch), nullText(j.LimitKey), nullInt(j.Cost))...)
}

// jobRest holds the columns of the list more.
type jobRest struct {
	orderKey, after, failing *string
	timeout                  *int64
	batch                    []byte
	limitKey                 *string
	cost                     *int
}

// targets returns the variables to scan into, in the order of the list.
func (r *jobRest) targets() []any {
	return []any{&r.orderKey, &r.after, &r.failing, &r.timeout, &r.batch, &r.limitKey, &r.cost}
}

func (r *jobRest) fill(j *sluice.Job) (err error) {
	j.OrderKey = orZero(r.orderKey)
	if j.AfterFailure, j.AfterFailures, err = storing.AfterRules(orZero(r.failing)); err != nil {
		return err
	}
	j.Timeout = time.Duration(orZero(r.timeout)) * time.Millisecond
	j.Batch, j.LimitKey, j.Cost = idOf(r.batch), orZero(r.limitKey), orZero(r.cost)
	j.After, err = idsOfJSON(r.after)
	return err
}

func scanJob(rows *sql.Rows) (listed, error) { return scanJobAnd(rows) }

// scanJobAnd reads a job and the columns after it.
func scanJobAnd(rows *sql.Rows, more ...any) (listed, error) {
	var out listed
	j := &out.job
	var id, blockedBy, payload, checkpoint, result []byte
	var state string
	var key, labels, holder, ref, failure, engine *string
	var rest jobRest
	var maxAttempts *int
	var createdAt, dueAt int64
	var expiresAt, claimedAt, dispatchedAt, leaseUntil, finishedAt *int64
	targets := append([]any{
		&out.seq, &id, &j.Queue, &j.Tenant, &j.Priority, &key, &labels, &maxAttempts, &createdAt, &expiresAt, &state,
		&j.Generation, &dueAt, &j.Attempts, &j.Releases, &j.Recoveries, &holder, &claimedAt, &dispatchedAt, &leaseUntil,
		&ref, &blockedBy, &finishedAt, &failure, &payload, &checkpoint, &result,
	}, rest.targets()...)
	err := rows.Scan(append(append(targets, &engine), more...)...)
	if err != nil {
		return out, err
	}
	j.ID, j.BlockedBy, j.State = idOf(id), idOf(blockedBy), sluice.State(state)
	j.Key, j.Holder, j.Ref, j.Error, j.MaxAttempts = orZero(key), orZero(holder), orZero(ref), orZero(failure), orZero(maxAttempts)
	j.Engine, j.Payload, j.Checkpoint = orZero(engine), payload, checkpoint
	j.Result, _ = storing.Result(result)
	j.CreatedAt, j.ExpiresAt, j.DueAt = timeOf(&createdAt), timeOf(expiresAt), timeOf(&dueAt)
	if j.Generation > 1 { // a requeued job does not expire
		j.ExpiresAt = time.Time{}
	}
	j.ClaimedAt, j.DispatchedAt, j.LeaseUntil, j.FinishedAt = timeOf(claimedAt), timeOf(dispatchedAt), timeOf(leaseUntil), timeOf(finishedAt)
	if err = rest.fill(j); err != nil {
		return out, err
	}
	j.Labels, err = labelsOf(labels)
	return out, err
}

// claimRow is a job as claimed.sql returns it.
type claimRow struct {
	job         sluice.Job
	due         int64
	created     int64
	claimedAt   int64
	leaseUntil  int64
	id          []byte
	payload     []byte
	checkpoint  []byte
	failure     *string
	key         *string
	labels      *string
	expires     *int64
	maxAttempts *int
	rest        jobRest
}

func (r *claimRow) targets() []any {
	j := &r.job
	targets := []any{
		&r.id, &j.Priority, &r.due, &j.Generation, &j.Attempts, &j.Releases, &j.Recoveries, &r.failure, &r.checkpoint, &j.Tenant,
		&r.expires, &r.key, &r.payload, &r.labels, &r.maxAttempts, &r.created, &r.claimedAt, &r.leaseUntil,
	}
	return append(append(targets, r.rest.targets()...), &j.Queue)
}

func (r *claimRow) claim(request sluice.ClaimRequest) (*sluice.Claim, error) {
	c := &sluice.Claim{Job: r.job, Token: request.Token}
	c.ID, c.State, c.Holder = idOf(r.id), sluice.StateClaimed, request.Holder
	c.Key, c.Error, c.MaxAttempts = orZero(r.key), orZero(r.failure), orZero(r.maxAttempts)
	c.DueAt, c.CreatedAt, c.ExpiresAt = timeOf(&r.due), timeOf(&r.created), timeOf(r.expires)
	c.ClaimedAt, c.LeaseUntil = timeOf(&r.claimedAt), timeOf(&r.leaseUntil)
	c.Payload, c.Checkpoint = r.payload, r.checkpoint
	err := r.rest.fill(&c.Job)
	if err != nil {
		return nil, err
	}
	c.Labels, err = labelsOf(r.labels)
	return c, err
}
