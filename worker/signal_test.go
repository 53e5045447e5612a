package worker_test

import (
	"context"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/pgtest"
	"github.com/sluice-queue/sluice/store/postgres"
	"github.com/sluice-queue/sluice/worker"
)

// counting counts the store's claims and renewals.
type counting struct {
	sluice.Store
	renews, claims atomic.Int64
}

// Unwrap returns the decorated store.
func (c *counting) Unwrap() sluice.Store { return c.Store }

func (c *counting) Renew(ctx context.Context, renewals []sluice.Renewal) ([]sluice.ID, error) {
	c.renews.Add(1)
	return c.Store.Renew(ctx, renewals)
}

func (c *counting) Claim(ctx context.Context, request sluice.ClaimRequest) (sluice.Claimed, error) {
	c.claims.Add(1)
	return c.Store.Claim(ctx, request)
}

// outsider connects with a role that may only connect.
func outsider(t *testing.T, at string) *pgx.Conn {
	t.Helper()
	owner, err := pgx.Connect(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	as, err := url.Parse(at)
	if err != nil {
		t.Fatal(err)
	}
	role := strings.TrimPrefix(as.Path, "/") + "_outsider"
	if _, err := owner.Exec(t.Context(), "create role "+role+" login"); err != nil {
		t.Fatal(err)
	}
	as.User = url.User(role)
	conn, err := pgx.Connect(t.Context(), as.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := context.Background()
		_ = conn.Close(ctx)
		_, _ = owner.Exec(ctx, "drop role "+role)
		_ = owner.Close(ctx)
	})
	return conn
}

// TestASignalOnlyMakesTheWorkerLook sends thousands of forged signals that a job was cancelled, from a role without any
// right. The handler must go on, and the worker must ask the store less often than that. The handler of a cancelled job
// ends.
func TestASignalOnlyMakesTheWorkerLook(t *testing.T) {
	t.Parallel()
	at := pgtest.NewDatabase(t)
	open := func() *postgres.Store {
		store, err := postgres.Open(t.Context(), at, postgres.Options{Migrate: true, Logger: quiet})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = store.Close() })
		return store
	}
	asked, other := &counting{Store: open()}, open()
	client := sluice.NewClient(other, sluice.ClientOptions{})
	began, goOn := make(chan sluice.ID, 2), make(chan struct{})
	lost := make(chan sluice.ID, 2)
	w := worker.New(asked, worker.Options{Slots: 2, Logger: quiet})
	worker.Handle(w, payments, func(ctx context.Context, job *worker.Job[payment]) error {
		began <- job.ID
		select {
		case <-ctx.Done():
			lost <- job.ID
			return ctx.Err()
		case <-goOn:
			return nil
		}
	}, worker.QueueOptions{})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- w.Run(ctx) }()
	for range 2 {
		if _, err := payments.Enqueue(t.Context(), client, payment{"acme", 4200}, sluice.EnqueueOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	kept, cancelled := <-began, <-began
	flooded := time.Now()
	before, claims := asked.renews.Load(), asked.claims.Load()
	conn := outsider(t, at)
	const floods = 20
	for range floods {
		if _, err := conn.Exec(t.Context(), `select pg_notify('sluice', 'x' || n || ' cancelled ' || $1::text), pg_notify('sluice', 'x' || n || ' queue payments') from generate_series(1, 500) n`, kept.String()); err != nil {
			t.Fatal(err)
		}
	}
	if err := client.Cancel(t.Context(), []sluice.ID{cancelled}, sluice.Act{By: "test", Reason: "test"}); err != nil {
		t.Fatal(err)
	}
	if id := <-lost; id != cancelled { // signals arrive in order
		t.Errorf("the handler of job %s ended, want that of %s", id, cancelled)
	}
	took := time.Since(flooded)
	if asks, most := asked.renews.Load()-before, int64(took/(50*time.Millisecond)+took/time.Second)+3; asks > most {
		t.Errorf("the store was asked %d times in %s about leases, want at most %d", asks, took, most)
	}
	if asks, most := asked.claims.Load()-claims, int64(took/(5*time.Millisecond))+3; asks > most {
		t.Errorf("the store was asked %d times in %s for jobs, want at most %d", asks, took, most)
	}
	close(goOn)
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if job, err := other.Job(t.Context(), kept); err != nil || job.State != sluice.StateCompleted || len(lost) > 0 {
		t.Errorf("the job is %s, %v; want it completed", job.State, err)
	}
}
