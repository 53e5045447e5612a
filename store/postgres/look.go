package postgres

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/explain"
	"github.com/sluice-queue/sluice/internal/flow"
)

//go:embed sql/job.sql
var jobFile string

var jobSQL = jobColumns.In(jobFile)

//go:embed sql/job_status.sql
var jobStatusFile string

var jobStatusSQL = jobColumns.In(jobStatusFile)

//go:embed sql/attempts.sql
var attemptsSQL string

//go:embed sql/position.sql
var positionSQL string

//go:embed sql/holding.sql
var holdingSQL string

//go:embed sql/behind.sql
var behindSQL string

//go:embed sql/depth.sql
var depthSQL string

//go:embed sql/audit.sql
var auditSQL string

//go:embed sql/audit_changes.sql
var auditChangesSQL string

// Job returns one job. For a role that only reads, payload, checkpoint and result are missing, and Withheld is set.
func (s *Store) Job(ctx context.Context, id sluice.ID) (sluice.Job, error) {
	j, err := lookUp(ctx, s, "look up job", scanJobAndKey, jobSQL, [16]byte(id))
	if !errors.Is(err, sluice.ErrReader) {
		return j, err
	}
	j, err = lookUp(ctx, s, "look up job", scanJobAndKey, jobStatusSQL, [16]byte(id))
	j.Withheld = err == nil
	return j, err
}

func scanJobAndKey(row pgx.CollectableRow) (sluice.Job, error) {
	var until pgtype.Timestamptz
	var now time.Time
	j, err := scanJobAnd(row, &until, &now)
	switch {
	case err != nil || !until.Valid:
	case until.InfinityModifier == pgtype.Infinity:
		j.KeyScope = sluice.ForEver
	case until.InfinityModifier == pgtype.Finite && until.Time.After(now):
		j.KeyScope, j.KeyUntil = sluice.ForWindow, timeOf(until)
	case until.InfinityModifier == pgtype.NegativeInfinity && !j.State.Finished():
		j.KeyScope = sluice.WhileUnfinished
	}
	return j, err
}

// lookUp reads one row. If there is none, it returns a [sluice.ErrNotFound].
func lookUp[T any](ctx context.Context, s *Store, verb string, scan pgx.RowToFunc[T], text string, args ...any) (one T, err error) {
	var found []T
	err = s.call(ctx, verb, func(ctx context.Context, _ bool) (err error) {
		found, err = list(ctx, s.pool, scan, text, args...)
		return err
	})
	if err != nil {
		return one, err
	}
	if len(found) == 0 {
		return one, sluice.ErrNotFound
	}
	return found[0], nil
}

// Attempts lists a job's failed attempts.
func (s *Store) Attempts(ctx context.Context, id sluice.ID) ([]sluice.Attempt, error) {
	if _, err := s.Job(ctx, id); err != nil {
		return nil, err
	}
	var out []sluice.Attempt
	err := s.call(ctx, "list attempts", func(ctx context.Context, _ bool) (err error) {
		out, err = list(ctx, s.pool, scanAttempt, attemptsSQL, [16]byte(id))
		return err
	})
	return out, err
}

func scanAttempt(row pgx.CollectableRow) (sluice.Attempt, error) {
	var a sluice.Attempt
	var id pgtype.UUID
	var holder, stack *string
	var claimedAt, failedAt pgtype.Timestamptz
	err := row.Scan(&id, &a.Generation, &a.Attempt, &claimedAt, &failedAt, &holder, &a.Error, &stack)
	a.JobID, a.Holder, a.Stack = idOf(id), orZero(holder), orZero(stack)
	a.ClaimedAt, a.FailedAt = timeOf(claimedAt), timeOf(failedAt)
	return a, err
}

// Position returns the facts that decide when a job starts.
func (s *Store) Position(ctx context.Context, id sluice.ID) (explain.Position, error) {
	row, err := lookUp(ctx, s, "look at a job's turn", scanPosition, positionSQL, [16]byte(id), explain.CountLimit)
	if err != nil {
		return row.Position, err
	}
	err = s.call(ctx, "look at a job's runs and the jobs behind it", func(ctx context.Context, _ bool) (err error) {
		if row.OrphanRuns, err = list(ctx, s.pool, scanStray, strayOfSQL, [16]byte(id), explain.HoldingLimit); err != nil {
			return err
		}
		behind, err := list(ctx, s.pool, pgx.RowTo[pgtype.UUID], behindSQL, [16]byte(id), explain.HoldingLimit)
		row.Behind = idsOf(behind)
		return err
	})
	if err == nil && !row.settings.Rate.IsZero() {
		err = s.call(ctx, "look at a queue's rate", func(ctx context.Context, _ bool) error {
			var w flow.Window
			err := readWindow(ctx, s.pool, permitsLookSQL, &w, row.queue, time.Time{}, flow.Since(row.settings, row.Now))
			row.TokenWait = w.Wait(row.settings, row.bucket, row.Now)
			return err
		})
	}
	if err != nil || !row.ByTenant {
		return row.Position, err
	}
	err = s.call(ctx, "look at a tenant's turn", func(ctx context.Context, _ bool) error {
		terms, err := termsOf(ctx, s.pool, row.queue, row.settings, []string{row.tenant}, row.Now)
		if err != nil {
			return err
		}
		row.EffectiveLimits = terms[row.tenant].EffectiveLimits
		holding, err := list(ctx, s.pool, pgx.RowTo[pgtype.UUID], holdingSQL, row.queue, row.tenant, explain.HoldingLimit)
		row.Holding = idsOf(holding)
		return err
	})
	row.TenantTokenWait = flow.TokenWait(row.EffectiveLimits, row.line, row.Now)
	return row.Position, err
}

// positionRow is a job's position as position.sql returns it.
type positionRow struct {
	explain.Position
	queue, tenant string
	settings      sluice.Settings // only the limits
	line          flow.Bucket     // the tenant's
	bucket        flow.Bucket     // the queue's
}

func scanPosition(row pgx.CollectableRow) (positionRow, error) {
	var out positionRow
	var rate, tokens, tenantRate, tenantTokens pgtype.Float8
	var ahead, ratePer, burst, tenantCapacity, tenantRatePer, tenantBurst pgtype.Int8
	var filledAt, tenantFilledAt pgtype.Timestamptz
	err := row.Scan(&out.Now, &ahead, &out.InFlight, &rate, &ratePer, &burst, &tokens, &filledAt, &out.ByTenant, &out.queue, &out.tenant,
		&tenantTokens, &tenantFilledAt, &out.Held, &tenantCapacity, &tenantRate, &tenantRatePer, &tenantBurst)
	out.Now, out.Ahead = out.Now.UTC(), int(ahead.Int64)
	out.settings = sluice.Settings{
		Rate: sluice.StoredRate(rate.Float64, ratePer.Int64), Burst: int(burst.Int64),
		TenantConcurrency: int(tenantCapacity.Int64), TenantRate: sluice.StoredRate(tenantRate.Float64, tenantRatePer.Int64), TenantBurst: int(tenantBurst.Int64),
	}
	out.line = flow.Bucket{Tokens: tenantTokens.Float64, FilledAt: timeOf(tenantFilledAt)}
	out.bucket = flow.Bucket{Tokens: tokens.Float64, FilledAt: timeOf(filledAt)}.Filled(out.settings, out.Now)
	out.Tokens = out.bucket.Tokens
	return out, err
}

// Depth counts the jobs of a queue, each figure up to limit.
func (s *Store) Depth(ctx context.Context, queue string, limit int) (sluice.Depth, error) {
	d := sluice.Depth{Queue: queue}
	err := s.call(ctx, "count jobs", func(ctx context.Context, _ bool) error {
		rows, err := query(ctx, s.pool, depthSQL, queue, limit)
		if err != nil {
			return err
		}
		var oldest pgtype.Timestamptz
		_, err = pgx.CollectExactlyOneRow(rows, func(row pgx.CollectableRow) (struct{}, error) {
			return struct{}{}, row.Scan(&d.Ready, &d.Scheduled, &d.Blocked, &d.Claimed, &d.Dispatched, &d.Uncertain, &d.OrphanRuns, &d.Dead, &oldest)
		})
		d.OldestDue = timeOf(oldest)
		return err
	})
	return d, err
}

// Audit lists audit entries, newest first.
func (s *Store) Audit(ctx context.Context, filter sluice.AuditFilter) ([]sluice.AuditEntry, error) {
	var out []sluice.AuditEntry
	err := s.call(ctx, "read audit", func(ctx context.Context, _ bool) (err error) {
		if filter.Object != "" && filter.Name != "" && filter.Event == audit.EventChange && filter.JobID.IsZero() {
			out, err = list(ctx, s.pool, scanAudit, auditChangesSQL, string(filter.Object), filter.Name, filter.Before, cmp.Or(filter.Limit, 100), filter.Actor, filter.After)
			return err
		}
		out, err = list(ctx, s.pool, scanAudit, auditSQL, string(filter.Object), filter.Name, nullUUID(filter.JobID), filter.Before, cmp.Or(filter.Limit, 100), filter.Actor, string(filter.Event), filter.After)
		return err
	})
	return out, err
}

func scanAudit(row pgx.CollectableRow) (sluice.AuditEntry, error) {
	var e sluice.AuditEntry
	var jobID, actID pgtype.UUID
	var object, event, from, to string
	var before, after []byte
	err := row.Scan(&e.Seq, &e.At, &e.Actor, &object, &e.Name, &event, &jobID, &e.Generation, &from, &to, &e.Reason, &before, &after, &actID)
	e.At, e.JobID, e.ActID = e.At.UTC(), idOf(jobID), idOf(actID)
	e.Object, e.Event, e.From, e.To = sluice.Object(object), sluice.Event(event), sluice.State(from), sluice.State(to)
	e.Before, e.After = slices.Clone(before), slices.Clone(after)
	return e, err
}
