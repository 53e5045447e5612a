package faulttest

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/pgtest"
	"github.com/sluice-queue/sluice/presence"
	"github.com/sluice-queue/sluice/store/postgres"
	"github.com/sluice-queue/sluice/upkeep"
	"github.com/sluice-queue/sluice/worker"
)

// TestHundredsOfPoolerRestartsCostNoAttempt kills a PgBouncer and starts it again, while handlers complete their jobs
// in their own transactions through it. A job dies at its first failed attempt.
func TestHundredsOfPoolerRestartsCostNoAttempt(t *testing.T) {
	t.Parallel()
	restarts := 200
	if testing.Short() {
		restarts = 10
	}
	direct := pgtest.NewDatabase(t)
	pooler, through := pgtest.NewPooler(t, direct, pgtest.PoolerOptions{})
	producer, err := postgres.Open(t.Context(), direct, postgres.Options{Migrate: true, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = producer.Close() }()
	client := sluice.NewClient(producer, sluice.ClientOptions{})
	settings := sluice.DefaultSettings()
	settings.MaxAttempts, settings.MaxRecoveries, settings.Lease = 1, 10_000, 2*time.Second
	if _, err := client.EnsureQueue(t.Context(), "posts", settings, sluice.Act{By: "test"}); err != nil {
		t.Fatal(err)
	}
	if _, err := producer.Pool().Exec(t.Context(), "create table posted (n integer primary key)"); err != nil {
		t.Fatal(err)
	}
	store, err := postgres.Open(t.Context(), through, postgres.Options{Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	queue := sluice.QueueOf[int]("posts")
	w := worker.New(store, worker.Options{Slots: 10, Poll: 50 * time.Millisecond, Logger: quiet})
	worker.Handle(w, queue, func(ctx context.Context, job *worker.Job[int]) error {
		return pgx.BeginFunc(ctx, store.Pool(), func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, "insert into posted values ($1)", job.Payload); err != nil {
				return err
			}
			if _, err := tx.Exec(ctx, "select pg_sleep(0.02)"); err != nil {
				return err
			}
			return postgres.CompleteTx(ctx, tx, job.Claim, nil)
		})
	}, worker.QueueOptions{})
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended, tended := make(chan error, 1), make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	go func() { tended <- upkeep.New(store, upkeep.Options{Logger: quiet}).Run(ctx) }()
	awaitWorker(t, producer, ended) // a worker that finds no store when it starts gives up
	for n := range restarts {
		for i := range 5 {
			if _, err := queue.Enqueue(t.Context(), client, 5*n+i, sluice.EnqueueOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Duration(n%60) * time.Millisecond)
		pooler.Kill()
		if err := pooler.Start(); err != nil {
			t.Fatal(err)
		}
	}
	for deadline := time.Now().Add(10 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		depth, err := producer.Depth(t.Context(), "posts", sluice.DepthLimit)
		if err == nil && depth.Ready+depth.Scheduled+depth.Claimed == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("not settled after ten minutes: %+v, %v", depth, err)
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Errorf("drain: %v", err)
	}
	if err := <-tended; err != nil {
		t.Error(err)
	}
	var posted, attempts, dead, releases, recoveries int
	const books = `select (select count(*) from posted), coalesce(sum(attempts), 0), count(*) filter (where outcome <> 'completed'),
		coalesce(sum(releases), 0), coalesce(sum(recoveries), 0) from sluice.done`
	if err := producer.Pool().QueryRow(t.Context(), books).Scan(&posted, &attempts, &dead, &releases, &recoveries); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d jobs, released %d times and recovered %d times in %d restarts", posted, releases, recoveries, restarts)
	if posted != 5*restarts || attempts != 0 || dead != 0 {
		t.Errorf("%d of %d jobs were posted, %d attempts were counted and %d jobs did not complete", posted, 5*restarts, attempts, dead)
		page, err := client.Jobs(t.Context(), sluice.JobFilter{Queue: "posts", States: []sluice.State{sluice.StateDead}})
		for _, job := range page.Jobs {
			t.Logf("job %s: %s", job.ID, job.Error)
		}
		if err != nil {
			t.Error(err)
		}
	}
}

// awaitWorker waits until a worker is listed as a holder. If the worker ends instead, the test fails with the worker's
// error.
func awaitWorker(t *testing.T, store sluice.Store, ended <-chan error) {
	t.Helper()
	for {
		holders, err := presence.Given(store).Holders(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if slices.ContainsFunc(holders, func(h presence.Holder) bool { return h.Role == presence.RoleWorker }) {
			return
		}
		select {
		case err := <-ended:
			t.Fatalf("the worker ended before it began: %v", err)
		case <-time.After(10 * time.Millisecond):
		}
	}
}
