package cell

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/bench/stat"
	"github.com/sluice-queue/sluice/limit"
	"github.com/sluice-queue/sluice/tenancy"
)

const (
	// claimLimit is the limit of a timed claim.
	claimLimit = 100
	// churnLimit is the limit of a claim in churn, which runs churners goroutines.
	churnLimit, churners = 500, 4
	lease                = 5 * time.Minute
)

// measureClaims times claims from a queue with future or blocked jobs, or with a long history under an old snapshot,
// which prevents its clean-up.
func measureClaims(ctx context.Context, task Task) (Result, error) {
	store, err := openStore(ctx, task)
	if err != nil {
		return nil, fmt.Errorf("open: %w", err)
	}
	defer func() { _ = store.Close() }()
	client := sluice.NewClient(store, sluice.ClientOptions{})
	if err := setLimits(ctx, client, task); err != nil {
		return nil, fmt.Errorf("limits: %w", err)
	}
	if err := fillAudit(ctx, task); err != nil {
		return nil, fmt.Errorf("audit: %w", err)
	}
	if err := takeStatistics(ctx, task, StaleEmpty); err != nil {
		return nil, err
	}
	if task.PerKey {
		err = blockKeys(ctx, client, store, task.Blocked)
	} else {
		err = block(ctx, client, store, task.Blocked, fullTenants)
	}
	if err != nil {
		return nil, fmt.Errorf("blocked jobs: %w", err)
	}
	if err := block(ctx, client, store, task.Giant, 1); err != nil {
		return nil, fmt.Errorf("jobs of one tenant: %w", err)
	}
	if err := takeStatistics(ctx, task, StaleGiant); err != nil {
		return nil, err
	}
	release := func() {}
	if task.Churn > 0 {
		if release, err = churn(ctx, client, store, task); err != nil {
			return nil, err
		}
	}
	defer release()
	if err := fill(ctx, client, task.Ahead, ahead); err != nil {
		return nil, fmt.Errorf("jobs for the future: %w", err)
	}
	if err := fill(ctx, client, task.Sleeping, sleeping); err != nil {
		return nil, fmt.Errorf("tenants with jobs for the future: %w", err)
	}
	options := ofTenants(task.Tenants)
	if task.PerKey {
		options = ofKeys
	}
	if err := fill(ctx, client, task.Due, options); err != nil {
		return nil, fmt.Errorf("jobs that are due: %w", err)
	}
	if err := tidy(ctx, task); err != nil {
		return nil, err
	}
	if task.ByTenant {
		if err := fillLines(ctx, store); err != nil {
			return nil, fmt.Errorf("before the claims: %w", err)
		}
	}
	took, err := timeClaims(ctx, store, task.Jobs)
	if err != nil {
		return nil, err
	}
	result := percentiles(took)
	if task.Churn == 0 {
		return result, nil
	}
	return result, measureNew(ctx, client, task, result)
}

// auditSQL inserts audit entries of jobs that no longer exist.
const auditSQL = `
	insert into sluice.audit (actor, object, name, event, job_id, from_state, to_state)
	select 'bench', 'job', $2::text, 'complete', gen_random_uuid(), 'claimed', 'completed' from generate_series(1, $1::integer)`

// fillAudit inserts task.Audited audit entries, with PostgreSQL only.
func fillAudit(ctx context.Context, task Task) error {
	if task.Audited == 0 {
		return nil
	}
	db, err := openDatabase(task)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }()
	_, err = db.ExecContext(ctx, auditSQL, task.Audited, parcels.Name())
	return err
}

// fillLines claims until 3 claims in a row get a job. By then, claims have put the stored jobs into the tenant queues.
func fillLines(ctx context.Context, store sluice.Store) error {
	for full := 0; full < 3; {
		claimed, err := store.Claim(ctx, sluice.ClaimRequest{Queue: parcels.Name(), Limit: 1, Holder: "bench", Lease: lease, Token: sluice.NewToken()})
		if err != nil {
			return err
		}
		if full++; len(claimed.Jobs) == 0 {
			full = 0
		}
		if err := complete(ctx, store, claimed.Jobs); err != nil {
			return err
		}
	}
	return nil
}

// measureNew times claims through a store just opened, which has learnt nothing from earlier claims.
func measureNew(ctx context.Context, client *sluice.Client, task Task, result Result) error {
	if err := fill(ctx, client, task.Due, ofTenants(task.Tenants)); err != nil {
		return fmt.Errorf("more jobs that are due: %w", err)
	}
	store, err := openStore(ctx, task)
	if err != nil {
		return fmt.Errorf("open once more: %w", err)
	}
	defer func() { _ = store.Close() }()
	took, err := timeClaims(ctx, store, task.Jobs)
	result[NewP50], result[NewP99] = stat.Percentile(took, 50), stat.Percentile(took, 99)
	return err
}

// timeClaims claims n times and returns the time of each claim, in milliseconds. Between claims, untimed, it completes
// the claimed jobs.
func timeClaims(ctx context.Context, store sluice.Store, n int) ([]float64, error) {
	took := make([]float64, 0, n)
	for range n {
		request := sluice.ClaimRequest{Queue: parcels.Name(), Limit: claimLimit, Holder: "bench", Lease: lease, Token: sluice.NewToken()}
		begun := time.Now()
		claimed, err := store.Claim(ctx, request)
		took = append(took, millis(time.Since(begun)))
		if err != nil {
			return nil, err
		}
		if len(claimed.Jobs) != claimLimit {
			return nil, fmt.Errorf("a claim of %d got %d jobs", claimLimit, len(claimed.Jobs))
		}
		if err := complete(ctx, store, claimed.Jobs); err != nil {
			return nil, err
		}
	}
	return took, nil
}

func complete(ctx context.Context, store sluice.Store, claims []*sluice.Claim) error {
	settlements := make([]sluice.Settlement, len(claims))
	for i, c := range claims {
		settlements[i] = sluice.Settlement{ID: c.ID, Token: c.Token, Holder: c.Holder, Event: sluice.EventComplete}
	}
	errs, err := store.Settle(ctx, settlements)
	return errors.Join(err, errors.Join(errs...))
}

// ahead makes jobs due tomorrow, every second of priority 1.
func ahead(i int) sluice.EnqueueOptions {
	options := sluice.EnqueueOptions{DueAt: time.Now().Add(24*time.Hour + time.Duration(i)*time.Millisecond)}
	if i%2 == 0 {
		options.Priority = 1
	}
	return options
}

// sleeping makes jobs due tomorrow, each of a separate tenant.
func sleeping(i int) sluice.EnqueueOptions {
	return sluice.EnqueueOptions{Tenant: fmt.Sprintf("sleeping-%d", i), DueAt: time.Now().Add(24 * time.Hour)}
}

// fullTenants is the number of tenants of the blocked jobs.
const fullTenants = 100

// block stores n jobs of some tenants, then claims one job of each: all tenants are at their capacity of 1.
func block(ctx context.Context, client *sluice.Client, store sluice.Store, n, tenants int) error {
	if n == 0 {
		return nil
	}
	tenant := func(i int) string { return fmt.Sprintf("full-%d", i%tenants) }
	for i := range tenants {
		_, err := tenancy.ChangeLimits(ctx, store, tenancy.Limits{Queue: parcels.Name(), Tenant: tenant(i)}, sluice.Act{By: "bench"},
			func(l *tenancy.Limits) error { l.Concurrency = new(1); return nil })
		if err != nil {
			return err
		}
	}
	if err := fill(ctx, client, n, func(i int) sluice.EnqueueOptions { return sluice.EnqueueOptions{Tenant: tenant(i)} }); err != nil {
		return err
	}
	held := 0
	for held < tenants {
		claimed, err := store.Claim(ctx, sluice.ClaimRequest{Queue: parcels.Name(), Limit: claimLimit, Holder: "bench", Lease: 24 * time.Hour, Token: sluice.NewToken()})
		if err != nil || len(claimed.Jobs) == 0 && claimed.NextDue < 0 {
			return errors.Join(err, fmt.Errorf("%d tenants hold their slots instead of %d", held, tenants))
		}
		held += len(claimed.Jobs)
	}
	return nil
}

// ofKeys gives job i a limit key of its own.
func ofKeys(i int) sluice.EnqueueOptions {
	return sluice.EnqueueOptions{LimitKey: fmt.Sprintf("host-%d", i)}
}

// blockKeys makes the limit, stores n jobs of a hundredth as many limit keys, and claims until one job of each key is in flight and the
// others are parked.
func blockKeys(ctx context.Context, client *sluice.Client, store sluice.Store, n int) error {
	_, err := limit.Change(ctx, store, "host", sluice.Act{By: "bench"}, func(l *limit.Limit) error {
		l.Concurrency, l.PerKey = 1, true
		return nil
	})
	if err != nil {
		return err
	}
	keys := max(n/100, 1)
	err = fill(ctx, client, n, func(i int) sluice.EnqueueOptions {
		return sluice.EnqueueOptions{LimitKey: fmt.Sprintf("full-%d", i%keys)}
	})
	if err != nil || n == 0 {
		return err
	}
	for held := 0; ; {
		claimed, err := store.Claim(ctx, sluice.ClaimRequest{Queue: parcels.Name(), Limit: claimLimit, Holder: "bench", Lease: 24 * time.Hour, Token: sluice.NewToken()})
		held += len(claimed.Jobs)
		switch {
		case err != nil:
			return err
		case len(claimed.Jobs) == 0 && claimed.NextDue > time.Minute:
			if held != keys {
				return fmt.Errorf("%d keys have a job in flight instead of %d", held, keys)
			}
			return nil
		}
	}
}

// fill stores n jobs. Function options, which may be nil, returns the options of job i.
func fill(ctx context.Context, client *sluice.Client, n int, options func(i int) sluice.EnqueueOptions) error {
	return fillQueue(ctx, client, parcels, n, options)
}

// fillQueue is fill for a queue.
func fillQueue(ctx context.Context, client *sluice.Client, q sluice.TypedQueue[Parcel], n int, options func(i int) sluice.EnqueueOptions) error {
	for at := 0; at < n; at += batch {
		jobs := make([]sluice.NewJob, min(batch, n-at))
		for k := range jobs {
			var with sluice.EnqueueOptions
			if options != nil {
				with = options(at + k)
			}
			var err error
			if jobs[k], err = q.NewJob(newParcel(), with); err != nil {
				return err
			}
		}
		if _, err := client.EnqueueMany(ctx, jobs); err != nil {
			return err
		}
	}
	return nil
}

// churn works off task.Churn jobs after a transaction has taken a snapshot. The snapshot stays until release.
func churn(ctx context.Context, client *sluice.Client, store sluice.Store, task Task) (release func(), err error) {
	if err := fill(ctx, client, task.Churn, ofTenants(task.Tenants)); err != nil {
		return nil, fmt.Errorf("jobs to work off: %w", err)
	}
	if err := tidy(ctx, task); err != nil {
		return nil, err
	}
	if release, err = holdSnapshot(ctx, task); err != nil {
		return nil, fmt.Errorf("hold a snapshot: %w", err)
	}
	var done atomic.Int64
	errs := make([]error, churners)
	var workers sync.WaitGroup
	for i := range churners {
		workers.Go(func() { errs[i] = workOffDirectly(ctx, store, &done) })
	}
	workers.Wait()
	err = errors.Join(errs...)
	if n := done.Load(); err == nil && n != int64(task.Churn) {
		err = fmt.Errorf("%d jobs were there instead of %d", n, task.Churn)
	}
	if err != nil {
		release()
		return nil, fmt.Errorf("work off: %w", err)
	}
	return release, nil
}

func workOffDirectly(ctx context.Context, store sluice.Store, done *atomic.Int64) error {
	for {
		claimed, err := store.Claim(ctx, sluice.ClaimRequest{
			Queue: parcels.Name(), Limit: churnLimit, Holder: "bench", Lease: lease, Token: sluice.NewToken(),
		})
		if err != nil || len(claimed.Jobs) == 0 && (claimed.NextDue < 0 || claimed.NextDue > time.Second) {
			return err
		}
		if err := complete(ctx, store, claimed.Jobs); err != nil {
			return err
		}
		done.Add(int64(len(claimed.Jobs)))
	}
}

// holdSnapshot begins a transaction with a snapshot of the store, and keeps it open until release.
func holdSnapshot(ctx context.Context, task Task) (release func(), err error) {
	if task.Store == SQLite {
		return holdFile(ctx, task)
	}
	conn, err := pgx.Connect(ctx, withoutPool(task.Place))
	if err != nil {
		return nil, err
	}
	for _, statement := range []string{"begin isolation level repeatable read", "select 1, pg_current_xact_id()"} {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return nil, errors.Join(err, conn.Close(ctx))
		}
	}
	return func() { _ = conn.Close(context.WithoutCancel(ctx)) }, nil
}

func holdFile(ctx context.Context, task Task) (release func(), err error) {
	db, err := sql.Open("sqlite", "file:"+task.Place)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	var jobs int
	if err := tx.QueryRowContext(ctx, "select count(*) from sluice_live").Scan(&jobs); err != nil {
		return nil, errors.Join(err, tx.Rollback(), db.Close())
	}
	return func() { _, _ = tx.Rollback(), db.Close() }, nil
}
