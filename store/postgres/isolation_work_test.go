package postgres_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/limit"
	"github.com/sluice-queue/sluice/operation"
	"github.com/sluice-queue/sluice/search"
	"github.com/sluice-queue/sluice/store/postgres"
	"github.com/sluice-queue/sluice/upkeep"
	"github.com/sluice-queue/sluice/worker"
)

// complaints keeps the log lines of faults.
type complaints struct {
	mu    sync.Mutex
	lines []string
}

func (c *complaints) Write(line []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lines = append(c.lines, string(line))
	return len(line), nil
}

// raised is a database whose transactions have another default isolation, which several processes use.
type raised struct {
	*testing.T
	url    string
	store  *postgres.Store
	client *sluice.Client
	log    complaints
}

func newRaised(t *testing.T, level string) *raised {
	t.Helper()
	r := &raised{T: t, url: migrated.Copy(t) + "&default_transaction_isolation=" + strings.ReplaceAll(level, " ", "%20")}
	r.store = openStore(t, r.url)
	r.client = sluice.NewClient(r.store, sluice.ClientOptions{})
	act := sluice.Act{By: "test"}
	_, err := limit.Change(t.Context(), r.store, "bank", act, func(l *limit.Limit) error {
		l.Concurrency, l.Rate = 6, sluice.RatePerSecond(2000)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for queue, change := range map[string]func(*sluice.Settings){
		"plain":  func(*sluice.Settings) {},
		"bank.a": func(s *sluice.Settings) { s.Limits = "bank" },
		"bank.b": func(s *sluice.Settings) { s.Limits, s.Fair, s.TenantConcurrency = "bank", true, 3 },
	} {
		settings := sluice.DefaultSettings()
		settings.RecoverInterval = 100 * time.Millisecond
		change(&settings)
		if _, err := r.client.EnsureQueue(t.Context(), queue, settings, act); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

// produce enqueues jobs with keys, in orders and alone, in calls of one and of several.
func (r *raised) produce(n int) {
	store := openStore(r.T, r.url)
	client := sluice.NewClient(store, sluice.ClientOptions{})
	for i := range 30 {
		for _, queue := range []string{"plain", "bank.a", "bank.b"} {
			job := sluice.NewJob{Queue: queue, Payload: json.RawMessage(`1`), EnqueueOptions: sluice.EnqueueOptions{Tenant: fmt.Sprint("t", i%3)}}
			keyed, ordered := job, job
			keyed.Key, keyed.OnDuplicate = fmt.Sprint("k", i%3), sluice.Coalesce
			ordered.OrderKey = fmt.Sprint("o", i%4)
			_, err := client.EnqueueMany(r.Context(), []sluice.NewJob{keyed, ordered})
			if _, one := client.Enqueue(r.Context(), job); errors.Join(err, one) != nil {
				r.Errorf("producer %d: %v", n, errors.Join(err, one))
			}
		}
	}
}

// work runs a worker and an upkeep of a process until nothing is unfinished.
func (r *raised) work(ctx context.Context) error {
	store := openStore(r.T, r.url)
	logger := slog.New(slog.NewTextHandler(&r.log, &slog.HandlerOptions{Level: slog.LevelError}))
	w := worker.New(store, worker.Options{Slots: 8, Poll: 20 * time.Millisecond, Logger: logger})
	for _, queue := range []string{"plain", "bank.a", "bank.b"} {
		worker.Handle(w, sluice.QueueOf[int](queue), func(ctx context.Context, job *worker.Job[int]) error {
			if job.Key == "" {
				return nil
			}
			return pgx.BeginTxFunc(ctx, store.Pool(), pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
				next := sluice.NewJob{Queue: "plain", Payload: job.Claim.Payload}
				if _, err := sluice.NewClient(store, sluice.ClientOptions{}).Within(store.InTx(tx)).Enqueue(ctx, next); err != nil {
					return err
				}
				return postgres.CompleteTx(ctx, tx, job.Claim, nil)
			})
		}, worker.QueueOptions{})
	}
	var helpers sync.WaitGroup
	defer helpers.Wait()
	helpers.Go(func() {
		_ = upkeep.New(store, upkeep.Options{Interval: 50 * time.Millisecond, RepairInterval: 100 * time.Millisecond, Logger: logger}).Run(ctx)
	})
	return w.Run(ctx)
}

// TestWorkIsDoneWhateverTheIsolation has producers, workers, upkeep and an operation in several processes. No conflict
// between them may reach a caller, the log, or the attempts of a job.
func TestWorkIsDoneWhateverTheIsolation(t *testing.T) {
	t.Parallel()
	for _, level := range []string{"repeatable read", "serializable"} {
		t.Run(level, func(t *testing.T) {
			t.Parallel()
			r := newRaised(t, level)
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			var all, workers sync.WaitGroup
			for n := range 3 {
				all.Go(func() { r.produce(n) })
				workers.Go(func() {
					if err := r.work(ctx); err != nil {
						t.Errorf("worker %d: %v", n, err)
					}
				})
			}
			all.Wait()
			r.operate()
			for left := 1; left > 0; time.Sleep(10 * time.Millisecond) {
				if err := r.store.Pool().QueryRow(t.Context(), "select count(*) from sluice.live").Scan(&left); err != nil {
					t.Fatal(err)
				}
			}
			stop()
			workers.Wait()
			var failed, recovered int
			err := r.store.Pool().QueryRow(t.Context(), "select count(*) filter (where attempts > 0 or outcome = 'dead'), sum(recoveries) from sluice.done").Scan(&failed, &recovered)
			if err != nil || failed+recovered > 0 {
				t.Errorf("%d jobs have failed attempts, and %d lost a holder: %v", failed, recovered, err)
			}
			for _, line := range r.log.lines {
				t.Error(line)
			}
		})
	}
}

// operate cancels and requeues jobs beside the workers, one by one and by an operation.
func (r *raised) operate() {
	later := sluice.NewJob{Queue: "plain", Payload: json.RawMessage(`1`), EnqueueOptions: sluice.EnqueueOptions{Delay: time.Hour, Labels: map[string]string{"of": "operation"}}}
	var ids []sluice.ID
	for range 40 {
		receipt, err := r.client.Enqueue(r.Context(), later)
		if err != nil {
			r.Fatal(err)
		}
		ids = append(ids, receipt.ID)
	}
	act := sluice.Act{By: "test", Reason: "test"}
	if err := r.client.Cancel(r.Context(), ids[:20], act); err != nil {
		r.Error(err)
	}
	op, err := operation.Start(r.Context(), r.store, operation.Operation{Kind: operation.KindCancel, Query: search.Query{Queue: "plain", Labels: map[string]string{"of": "operation"}}}, act)
	if err != nil {
		r.Fatal(err)
	}
	for op.State != operation.StateDone {
		time.Sleep(10 * time.Millisecond)
		if op, err = operation.Read(r.Context(), r.store, op.ID); err != nil {
			r.Fatal(err)
		}
	}
}
