package counter_test

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/pgtest"
	"github.com/sluice-queue/sluice/presence"
	"github.com/sluice-queue/sluice/stat"
	"github.com/sluice-queue/sluice/store/postgres"
	"github.com/sluice-queue/sluice/store/sqlite"
	"github.com/sluice-queue/sluice/worker"
)

// opener opens the same store each time it is called.
type opener func(t *testing.T, noStatistics bool) sluice.Store

// onStores runs a test on each of the SQL stores.
func onStores(t *testing.T, test func(t *testing.T, open opener)) {
	t.Helper()
	opened := func(t *testing.T, store sluice.Store, err error) sluice.Store {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = store.Close() })
		return store
	}
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		path := filepath.Join(t.TempDir(), "jobs.db")
		test(t, func(t *testing.T, off bool) sluice.Store {
			t.Helper()
			store, err := sqlite.Open(t.Context(), path, sqlite.Options{Migrate: true, NoStatistics: off})
			return opened(t, store, err)
		})
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		url := pgtest.NewDatabase(t)
		test(t, func(t *testing.T, off bool) sluice.Store {
			t.Helper()
			store, err := postgres.Open(t.Context(), url, postgres.Options{Migrate: true, NoStatistics: off})
			return opened(t, store, err)
		})
	})
}

// mailProgram enqueues mails and works until all have ended: a third of them are dead. Then it closes the store.
func mailProgram(t *testing.T, store sluice.Store) {
	t.Helper()
	client := sluice.NewClient(store, sluice.ClientOptions{})
	quiet := slog.New(slog.DiscardHandler)
	w := worker.New(store, worker.Options{Poll: 10 * time.Millisecond, Logger: quiet})
	worker.Handle(w, sluice.QueueOf[int]("mail"), func(_ context.Context, job *worker.Job[int]) error {
		if job.Payload == 0 {
			return worker.Permanent(errors.New("no such address"))
		}
		return nil
	}, worker.QueueOptions{})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	for n := range 30 {
		payload := []byte{byte('0' + n%3)}
		if _, err := client.Enqueue(t.Context(), sluice.NewJob{Queue: "mail", Payload: payload, EnqueueOptions: sluice.EnqueueOptions{Tenant: "acme"}}); err != nil {
			t.Fatal(err)
		}
	}
	go func() { ended <- w.Run(ctx) }()
	for {
		depth, err := client.Depth(t.Context(), "mail")
		if err != nil {
			t.Fatal(err)
		}
		if depth.Dead == 10 && depth.Ready == 0 && depth.InFlight() == 0 {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	stop()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestAProgramIsCountedByItself(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, open opener) {
		mailProgram(t, open(t, false))
		store := open(t, false)
		client := sluice.NewClient(store, sluice.ClientOptions{})
		page, err := client.Jobs(t.Context(), sluice.JobFilter{Queue: "mail", States: []sluice.State{sluice.StateDead}})
		if err != nil || len(page.Jobs) != 10 {
			t.Fatal(page, err)
		}
		act := sluice.Act{By: "test", Reason: "test"}
		for _, id := range []sluice.ID{page.Jobs[0].ID, page.Jobs[1].ID} {
			if err := client.Requeue(t.Context(), []sluice.ID{id}, act); err != nil {
				t.Fatal(err)
			}
		}
		if err := client.Cancel(t.Context(), []sluice.ID{page.Jobs[0].ID}, act); err != nil {
			t.Fatal(err)
		}
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
		got, err := stat.Of(t.Context(), open(t, false), "mail", 0)
		if err != nil {
			t.Fatal(err)
		}
		want := stat.Counts{Enqueued: 30, Claimed: 30, Completed: 20, Dead: 10, Failed: 10, Requeued: 2, Cancelled: 1}
		if got.Counts != want {
			t.Errorf("%+v, want %+v", got.Counts, want)
		}
		if got.SuccessRate != 2.0/3 || got.Run.P50 <= 0 || got.Wait.P50 <= 0 {
			t.Errorf("success rate %v, run %v, wait %v", got.SuccessRate, got.Run, got.Wait)
		}
	})
}

func TestAProgramThatDoesNotWantToIsNotCounted(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, open opener) {
		mailProgram(t, open(t, true))
		stats, err := stat.Given(open(t, true)).Stats(t.Context(), stat.Filter{Every: stat.Fine, From: time.Now().Add(-time.Hour), To: time.Now().Add(time.Hour), Limit: 10})
		if err != nil || len(stats) > 0 {
			t.Error(stats, err)
		}
	})
}

func TestReplacedJobsCountAsCancelled(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, open opener) {
		store := open(t, false)
		client := sluice.NewClient(store, sluice.ClientOptions{})
		job := sluice.NewJob{Queue: "mail", Payload: []byte("1"), EnqueueOptions: sluice.EnqueueOptions{Key: "report", OnDuplicate: sluice.Replace}}
		for range 3 {
			if _, err := client.Enqueue(t.Context(), job); err != nil {
				t.Fatal(err)
			}
		}
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
		got, err := stat.Of(t.Context(), open(t, false), "mail", 0)
		if want := (stat.Counts{Enqueued: 3, Cancelled: 2}); err != nil || got.Counts != want {
			t.Errorf("%+v, %v; want %+v", got.Counts, err, want)
		}
	})
}

func TestMain(m *testing.M) { pgtest.Main(m) }

func TestWhereNobodyCountsTheSummarySaysSo(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, open opener) {
		counted := func(want bool) {
			t.Helper()
			got, err := stat.Of(t.Context(), open(t, true), "mail", 0)
			if err != nil || got.Counted != want || got.Depth.Dead == 0 {
				t.Errorf("counted: %v, want %v; dead %d; %v", got.Counted, want, got.Depth.Dead, err)
			}
		}
		mailProgram(t, open(t, true))
		counted(false)
		store := open(t, false)
		if _, err := sluice.NewClient(store, sluice.ClientOptions{}).Enqueue(t.Context(), sluice.NewJob{Queue: "mail", Payload: []byte("1")}); err != nil {
			t.Fatal(err)
		}
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
		counted(true)
		worker := presence.Holder{ID: presence.NewID(), Role: presence.RoleWorker, Queues: []string{"mail"}}
		if _, err := presence.Given(open(t, true)).Heartbeat(t.Context(), worker); err != nil {
			t.Fatal(err)
		}
		counted(false)
	})
}
