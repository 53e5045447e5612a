package sqlite

import (
	"context"
	"database/sql"
	_ "embed"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/explain"
	"github.com/sluice-queue/sluice/internal/flow"
)

//go:embed sql/job.sql
var jobFile string

var jobSQL = jobColumns.In(jobFile)

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

// listed is a job and its place in the order of arrival.
type listed struct {
	seq int64
	job sluice.Job
}

// Job returns one job with its payload.
func (s *Store) Job(ctx context.Context, id sluice.ID) (sluice.Job, error) {
	found, err := lookUp(ctx, s, "look up job", scanJobAndKey, jobSQL, id[:])
	found.job.LeaseUntil = s.steady.onWall(found.job.LeaseUntil)
	return found.job, err
}

func scanJobAndKey(rows *sql.Rows) (listed, error) {
	var until *int64
	out, err := scanJobAnd(rows, &until)
	j := &out.job
	switch {
	case err != nil || until == nil:
	case *until == forEver:
		j.KeyScope = sluice.ForEver
	case *until > now():
		j.KeyScope, j.KeyUntil = sluice.ForWindow, timeOf(until)
	case *until == 0 && !j.State.Finished():
		j.KeyScope = sluice.WhileUnfinished
	}
	return out, err
}

// lookUp reads one row. If there is none, it returns a [sluice.ErrNotFound].
func lookUp[T any](ctx context.Context, s *Store, verb string, scan func(*sql.Rows) (T, error), text string, args ...any) (one T, err error) {
	var found []T
	err = s.read(ctx, verb, func(tx runner) (err error) {
		found, err = list(tx, scan, text, args...)
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
	err := s.read(ctx, "list attempts", func(tx runner) (err error) {
		out, err = list(tx, func(rows *sql.Rows) (sluice.Attempt, error) {
			a := sluice.Attempt{JobID: id}
			var claimedAt *int64
			var failedAt int64
			var holder, stack *string
			err := rows.Scan(&a.Generation, &a.Attempt, &claimedAt, &failedAt, &holder, &a.Error, &stack)
			a.ClaimedAt, a.FailedAt, a.Holder, a.Stack = timeOf(claimedAt), timeOf(&failedAt), orZero(holder), orZero(stack)
			return a, err
		}, attemptsSQL, id[:])
		return err
	})
	return out, err
}

// Position returns the facts that decide when a job starts.
func (s *Store) Position(ctx context.Context, id sluice.ID) (explain.Position, error) {
	var out explain.Position
	err := s.read(ctx, "look at a job's turn", func(tx runner) (err error) {
		out, err = position(tx, id, now(), time.UnixMicro(s.steady.at()))
		return err
	})
	return out, err
}

// positionRow is a job's position as position.sql returns it.
type positionRow struct {
	explain.Position
	queue, tenant string
	settings      sluice.Settings // only the limits
	line          flow.Bucket     // the tenant's
	bucket        flow.Bucket     // the queue's
}

func position(tx runner, id sluice.ID, at int64, steady time.Time) (explain.Position, error) {
	found, err := list(tx, positionScanner(at), positionSQL, id[:], at, explain.CountLimit)
	if err != nil {
		return explain.Position{}, err
	}
	if len(found) == 0 {
		return explain.Position{}, sluice.ErrNotFound
	}
	row := found[0]
	if !row.settings.Rate.IsZero() {
		var w flow.Window
		if err := readWindow(tx, &w, row.queue, flow.Since(row.settings, steady)); err != nil {
			return explain.Position{}, err
		}
		row.TokenWait = w.Wait(row.settings, row.bucket, steady)
	}
	if row.OrphanRuns, err = list(tx, scanStray, strayOfSQL, id[:], explain.HoldingLimit); err != nil {
		return explain.Position{}, err
	}
	behind, err := list(tx, scanOne[[]byte], behindSQL, id[:], explain.HoldingLimit)
	if row.Behind = idsOf(behind); err != nil || !row.ByTenant {
		return row.Position, err
	}
	terms, err := termsOf(tx, row.queue, row.settings, []string{row.tenant}, at)
	if err != nil {
		return explain.Position{}, err
	}
	row.EffectiveLimits = terms[row.tenant]
	row.TenantTokenWait = flow.TokenWait(row.EffectiveLimits, row.line, row.Now)
	holding, err := list(tx, scanOne[[]byte], holdingSQL, row.queue, row.tenant, explain.HoldingLimit)
	row.Holding = idsOf(holding)
	return row.Position, err
}

func positionScanner(at int64) func(*sql.Rows) (positionRow, error) {
	return func(rows *sql.Rows) (positionRow, error) {
		out := positionRow{Position: explain.Position{Now: time.UnixMicro(at).UTC()}}
		var rate, tokens, tenantRate, tenantTokens sql.NullFloat64
		var ahead, ratePer, burst, tenantCapacity, tenantRatePer, tenantBurst sql.NullInt64
		var filledAt, tenantFilledAt *int64
		err := rows.Scan(&ahead, &out.InFlight, &rate, &ratePer, &burst, &tokens, &filledAt, &out.ByTenant, &out.queue, &out.tenant,
			&tenantTokens, &tenantFilledAt, &out.Held, &tenantCapacity, &tenantRate, &tenantRatePer, &tenantBurst)
		out.Ahead = int(ahead.Int64)
		out.settings = sluice.Settings{
			Rate: sluice.StoredRate(rate.Float64, ratePer.Int64), Burst: int(burst.Int64),
			TenantConcurrency: int(tenantCapacity.Int64), TenantRate: sluice.StoredRate(tenantRate.Float64, tenantRatePer.Int64), TenantBurst: int(tenantBurst.Int64),
		}
		out.line = flow.Bucket{Tokens: tenantTokens.Float64, FilledAt: timeOf(tenantFilledAt)}
		out.bucket = flow.Bucket{Tokens: tokens.Float64, FilledAt: timeOf(filledAt)}.Filled(out.settings, out.Now)
		out.Tokens = out.bucket.Tokens
		return out, err
	}
}

// Depth counts the jobs of a queue, each figure up to limit.
func (s *Store) Depth(ctx context.Context, queue string, limit int) (sluice.Depth, error) {
	var out []sluice.Depth
	err := s.read(ctx, "count jobs", func(tx runner) (err error) {
		out, err = list(tx, func(rows *sql.Rows) (sluice.Depth, error) {
			d := sluice.Depth{Queue: queue}
			var oldest *int64
			err := rows.Scan(&d.Ready, &d.Scheduled, &d.Blocked, &d.Claimed, &d.Dispatched, &d.Uncertain, &d.OrphanRuns, &d.Dead, &oldest)
			d.OldestDue = timeOf(oldest)
			return d, err
		}, depthSQL, queue, now(), limit)
		return err
	})
	if err != nil {
		return sluice.Depth{}, err
	}
	return out[0], nil
}
