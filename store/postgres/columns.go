package postgres

import (
	_ "embed"
	"io/fs"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/columns"
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
}

// targets returns the variables to scan into, in the order of the list.
func (r *jobRest) targets() []any { return []any{&r.orderKey, &r.after, &r.failing} }

func (r *jobRest) fill(j *sluice.Job) {
	j.OrderKey, j.After, j.AfterFailure = r.orderKey.String, idsOf(r.after), sluice.AfterFailure(r.failing.String)
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
	rest.fill(&j)
	j.ID, j.BlockedBy, j.State = idOf(id), idOf(blockedBy), sluice.State(state)
	j.Key, j.Holder, j.Ref, j.Error, j.MaxAttempts = orZero(key), orZero(holder), orZero(ref), orZero(failure), orZero(maxAttempts)
	j.Engine, j.Payload, j.Checkpoint, j.Result = orZero(engine), payload, checkpoint, result
	j.CreatedAt, j.ExpiresAt, j.DueAt = timeOf(createdAt), timeOf(expiresAt), timeOf(dueAt)
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
		row.rest.fill(&c.Job)
		c.MaxAttempts, c.Checkpoint = int(row.maxAttempts.Int32), row.checkpoint
		c.DueAt, c.ClaimedAt, c.LeaseUntil = timeOf(row.dueAt), timeOf(row.claimedAt), timeOf(row.leaseUntil)
		c.CreatedAt, c.ExpiresAt = timeOf(row.createdAt), timeOf(row.expiresAt)
		c.Labels, err = labelsOf(row.labels)
		return c, err
	}
}
