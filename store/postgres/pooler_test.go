package postgres_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/health"
	"github.com/sluice-queue/sluice/internal/pgtest"
	"github.com/sluice-queue/sluice/store/postgres"
	"github.com/sluice-queue/sluice/upkeep"
	"github.com/sluice-queue/sluice/worker"
)

var quiet = slog.New(slog.DiscardHandler)

// listens reports whether doctor says that the store hears notifications.
func listens(t *testing.T, store *postgres.Store) bool {
	t.Helper()
	report, err := health.Of(t.Context(), store, health.Options{})
	if err != nil {
		t.Fatal(err)
	}
	on, known := report.Metric("notifications", "")
	if !known {
		t.Fatal("nothing is said of notifications")
	}
	for _, f := range report.Findings {
		if f.Check == "notify" && f.Severity == health.SeverityNote && on == 1 {
			t.Errorf("notifications are on, and doctor says %q", f.What)
		}
	}
	return on == 1
}

func TestPoolerIsNoticed(t *testing.T) {
	t.Parallel()
	server := migrated.Copy(t)
	ignore := "ignore_startup_parameters = extra_float_digits, statement_timeout, lock_timeout, idle_in_transaction_session_timeout, jit"
	for name, c := range map[string]struct {
		pooler  *pgtest.PoolerOptions
		listens bool
	}{
		"no pooler":        {nil, true},
		"transaction mode": {&pgtest.PoolerOptions{}, false},
		"transaction mode that drops our settings":        {&pgtest.PoolerOptions{Settings: []string{ignore}}, false},
		"transaction mode with a process":                 {&pgtest.PoolerOptions{Size: 1}, false},
		"transaction mode that goes round":                {&pgtest.PoolerOptions{Settings: []string{"server_round_robin = 1", "min_pool_size = 2"}}, false},
		"session mode, where each keeps its own":          {&pgtest.PoolerOptions{Mode: "session"}, true},
		"session mode that has no second process to give": {&pgtest.PoolerOptions{Mode: "session", Size: 1}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			at := server
			if c.pooler != nil {
				_, at = pgtest.NewPooler(t, server, *c.pooler)
			}
			store, err := postgres.Open(t.Context(), at+"&pool_max_conns=1", postgres.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = store.Close() }()
			if got := listens(t, store); got != c.listens {
				t.Errorf("notifications are on: %t, want %t", got, c.listens)
			}
			if c.pooler != nil && c.pooler.Mode == "session" {
				return // the first store may hold the only server process
			}
			pool, err := pgxpool.New(t.Context(), at)
			if err != nil {
				t.Fatal(err)
			}
			defer pool.Close()
			ofCaller, err := postgres.New(t.Context(), pool, postgres.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = ofCaller.Close() }()
			if got := listens(t, ofCaller); got != c.listens {
				t.Errorf("with a pool of the caller's, notifications are on: %t, want %t", got, c.listens)
			}
		})
	}
}

func TestProcessesMigrateAtOnceThroughAPooler(t *testing.T) {
	processes := 30 // more than the server connections of the pooler
	if testing.Short() {
		processes = 10
	}
	_, through := pgtest.NewPooler(t, pgtest.NewDatabase(t), pgtest.PoolerOptions{})
	migrateAtOnce(t, through, processes)
}

// TestWorkGoesOnThroughAPoolerThatIsRestarted runs workers and upkeep through a pooler, which the test kills in the
// middle. It counts the jobs that ran and the attempts that the kill cost.
func TestWorkGoesOnThroughAPoolerThatIsRestarted(t *testing.T) {
	t.Parallel()
	pooler, through := pgtest.NewPooler(t, migrated.Copy(t), pgtest.PoolerOptions{Size: 5})
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	const jobs = 400
	var begun atomic.Int64
	half, all := make(chan struct{}), make(chan struct{})
	settings := sluice.DefaultSettings()
	settings.Lease = 2 * time.Second
	var client *sluice.Client
	for range 3 {
		store := openStore(t, through)
		client = sluice.NewClient(store, sluice.ClientOptions{})
		if _, err := client.EnsureQueue(t.Context(), "q", settings, sluice.Act{By: "test"}); err != nil {
			t.Fatal(err)
		}
		w := worker.New(store, worker.Options{Logger: quiet})
		worker.Handle(w, sluice.QueueOf[int]("q"), func(context.Context, *worker.Job[int]) error {
			switch begun.Add(1) {
			case jobs / 2:
				close(half)
			case jobs:
				close(all)
			}
			return nil
		}, worker.QueueOptions{})
		running.Go(func() { _ = w.Run(ctx) })
		running.Go(func() { _ = upkeep.New(store, upkeep.Options{Logger: quiet}).Run(ctx) })
	}
	var batch []sluice.NewJob
	for i := range jobs {
		batch = append(batch, sluice.NewJob{Queue: "q", Payload: fmt.Appendf(nil, "%d", i)})
	}
	if _, err := client.EnqueueMany(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	<-half
	pooler.Kill()
	if err := pooler.Start(); err != nil {
		t.Fatal(err)
	}
	<-all
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		page, err := client.Jobs(t.Context(), sluice.JobFilter{Queue: "q", States: []sluice.State{sluice.StateCompleted}, Limit: 1000})
		if err == nil && len(page.Jobs) == jobs {
			for _, job := range page.Jobs {
				if job.Attempts > 0 {
					t.Errorf("job %s has %d failed attempts", job.ID, job.Attempts)
				}
			}
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d jobs are completed, want %d, %v", len(page.Jobs), jobs, err)
		}
	}
}

// TestNoSettingIsLeftBehindThroughAPooler looks at the server's sessions for settings that would affect another client.
func TestNoSettingIsLeftBehindThroughAPooler(t *testing.T) {
	t.Parallel()
	server := migrated.Copy(t)
	_, through := pgtest.NewPooler(t, server, pgtest.PoolerOptions{Size: 1})
	store := openStore(t, through)
	client := sluice.NewClient(store, sluice.ClientOptions{})
	if _, err := client.Enqueue(t.Context(), keyed()); err != nil {
		t.Fatal(err)
	}
	claimOne(t, store)
	var left string
	if err := store.Pool().QueryRow(t.Context(), `select concat_ws(' ', current_setting('statement_timeout'), current_setting('lock_timeout'),
		(select count(*) from pg_prepared_statements where name <> ''),
		(select count(*) from pg_locks where locktype = 'advisory' and pid = pg_backend_pid()), (select count(*) from pg_listening_channels()))`).Scan(&left); err != nil {
		t.Fatal(err)
	}
	if strings.TrimSpace(left) != "0 0 0 0 0" {
		t.Errorf("left in the server's session: %s", left)
	}
}
