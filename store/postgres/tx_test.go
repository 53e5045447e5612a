package postgres_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/admission"
	"github.com/sluice-queue/sluice/internal/pgtest"
	"github.com/sluice-queue/sluice/presence"
	"github.com/sluice-queue/sluice/store/postgres"
)

// pgxTx and sqlTx are the two kinds of transactions a caller may have.
type anyTx struct {
	enqueuer sluice.Enqueuer
	complete func(claim *sluice.Claim, result any) error
	exec     func(text string) error
	commit   func() error
	rollback func() error
}

// begin returns functions that begin a transaction of each kind.
func begin(t *testing.T, store *postgres.Store) map[string]func() anyTx {
	t.Helper()
	ctx := t.Context()
	db := stdlib.OpenDBFromPool(store.Pool())
	t.Cleanup(func() { _ = db.Close() })
	return map[string]func() anyTx{
		"pgx.Tx": func() anyTx {
			tx, err := store.Pool().Begin(ctx)
			if err != nil {
				t.Fatal(err)
			}
			return anyTx{
				enqueuer: store.InTx(tx),
				complete: func(c *sluice.Claim, result any) error { return postgres.CompleteTx(ctx, tx, c, result) },
				exec:     func(text string) error { _, err := tx.Exec(ctx, text); return err },
				commit:   func() error { return tx.Commit(ctx) },
				rollback: func() error { return tx.Rollback(ctx) },
			}
		},
		"*sql.Tx": func() anyTx {
			tx, err := db.BeginTx(ctx, &sql.TxOptions{})
			if err != nil {
				t.Fatal(err)
			}
			return anyTx{
				enqueuer: store.InSQLTx(tx),
				complete: func(c *sluice.Claim, result any) error { return postgres.CompleteSQLTx(ctx, tx, c, result) },
				exec:     func(text string) error { _, err := tx.ExecContext(ctx, text); return err },
				commit:   tx.Commit,
				rollback: tx.Rollback,
			}
		},
	}
}

func newStore(t *testing.T) (*postgres.Store, *sluice.Client) {
	t.Helper()
	store := openStore(t, migrated.Copy(t))
	return store, sluice.NewClient(store, sluice.ClientOptions{})
}

func claimOne(t *testing.T, store sluice.Store) *sluice.Claim {
	t.Helper()
	claimed, err := store.Claim(t.Context(), sluice.ClaimRequest{Queue: "q", Limit: 1, Holder: "h:1:x", Lease: time.Minute, Token: sluice.NewToken()})
	if err != nil || len(claimed.Jobs) != 1 {
		t.Fatalf("claimed %d, %v", len(claimed.Jobs), err)
	}
	return claimed.Jobs[0]
}

func stateOf(t *testing.T, client *sluice.Client, id sluice.ID) sluice.State {
	t.Helper()
	job, err := client.Job(t.Context(), id)
	if errors.Is(err, sluice.ErrNotFound) {
		return ""
	}
	if err != nil {
		t.Fatal(err)
	}
	return job.State
}

func keyed() sluice.NewJob {
	return sluice.NewJob{Queue: "q", Payload: []byte(`{}`), EnqueueOptions: sluice.EnqueueOptions{
		Key: "k", KeyScope: sluice.WhileUnfinished, Labels: map[string]string{"a": "b"}, DueAt: time.Now().Add(-time.Minute),
	}}
}

func TestEnqueueInATransactionFindsTheSettingsOfItsQueue(t *testing.T) {
	t.Parallel()
	store, client := newStore(t)
	settings := sluice.DefaultSettings()
	settings.PayloadLimit = 1
	if _, err := client.EnsureQueue(t.Context(), "q", settings, sluice.Act{By: "ada"}); err != nil {
		t.Fatal(err)
	}
	for kind, start := range begin(t, store) {
		tx := start()
		fresh := sluice.NewClient(store, sluice.ClientOptions{}) // this client reads the settings through the transaction
		if _, err := fresh.Within(tx.enqueuer).Enqueue(t.Context(), keyed()); !errors.Is(err, sluice.ErrInvalid) {
			t.Errorf("%s: a payload beyond the queue's limit: %v", kind, err)
		}
		if err := tx.rollback(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestEnqueueInATransactionStandsOrFallsWithIt(t *testing.T) {
	t.Parallel()
	store, client := newStore(t)
	for kind, start := range begin(t, store) {
		tx := start()
		undone, err := client.Within(tx.enqueuer).Enqueue(t.Context(), keyed())
		if err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
		if err := tx.rollback(); err != nil {
			t.Fatal(err)
		}
		tx = start()
		stored, err := client.Within(tx.enqueuer).Enqueue(t.Context(), keyed())
		if err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
		twin, err := client.Within(tx.enqueuer).Enqueue(t.Context(), keyed())
		if err != nil || twin != (sluice.Receipt{ID: stored.ID, Duplicate: true}) {
			t.Errorf("%s: the second of one key: %+v, %v", kind, twin, err)
		}
		if err := tx.commit(); err != nil {
			t.Fatal(err)
		}
		if got := stateOf(t, client, undone.ID); got != "" {
			t.Errorf("%s: rolled back, and %s", kind, got)
		}
		if got := stateOf(t, client, stored.ID); got != sluice.StateQueued {
			t.Errorf("%s: committed, and %q", kind, got)
		}
		if err := client.Cancel(t.Context(), []sluice.ID{stored.ID}, sluice.Act{By: "test"}); err != nil {
			t.Fatal(err)
		}
	}
}

func TestEnqueueInATransactionIntoAnUndeclaredQueueIsRefused(t *testing.T) {
	t.Parallel()
	store, client := newStore(t)
	if _, err := admission.Save(t.Context(), store, admission.Policy{MaxQueues: 1, Declared: true}, sluice.Act{By: "ada", Reason: "test"}); err != nil {
		t.Fatal(err)
	}
	for kind, start := range begin(t, store) {
		tx := start()
		job := keyed()
		job.ID = sluice.NewID()
		_, err := client.Within(tx.enqueuer).Enqueue(t.Context(), job)
		var unknown *admission.UnknownQueueError
		if !errors.As(err, &unknown) || unknown.Queue != "q" {
			t.Errorf("%s: error %v", kind, err)
		}
		if err := tx.commit(); err != nil {
			t.Fatal(err)
		}
		if got := stateOf(t, client, job.ID); got != "" {
			t.Errorf("%s: it is %s", kind, got)
		}
	}
}

func TestCompletionInATransactionStandsOrFallsWithIt(t *testing.T) {
	t.Parallel()
	store, client := newStore(t)
	if _, err := store.Pool().Exec(t.Context(), "create table effect (kind text)"); err != nil {
		t.Fatal(err)
	}
	for kind, start := range begin(t, store) {
		receipt, err := client.Enqueue(t.Context(), keyed())
		if err != nil {
			t.Fatal(err)
		}
		claim := claimOne(t, store)
		for _, commit := range []bool{false, true} {
			tx := start()
			if err := tx.exec("insert into effect values ('x')"); err != nil {
				t.Fatal(err)
			}
			if err := tx.complete(claim, map[string]int{"n": 1}); err != nil {
				t.Fatalf("%s: %v", kind, err)
			}
			want, end := sluice.StateClaimed, tx.rollback
			if commit {
				want, end = sluice.StateCompleted, tx.commit
			}
			if err := end(); err != nil {
				t.Fatal(err)
			}
			if got := stateOf(t, client, receipt.ID); got != want {
				t.Errorf("%s: state %s, want %s", kind, got, want)
			}
		}
		tx := start()
		if err := tx.complete(claim, nil); !errors.Is(err, sluice.ErrLost) {
			t.Errorf("%s: completed twice: %v", kind, err)
		}
		if err := tx.complete(claim, func() {}); err == nil {
			t.Errorf("%s: a result that is no JSON is taken", kind)
		}
		_ = tx.rollback()
		job, err := client.Job(t.Context(), receipt.ID)
		if err != nil || string(job.Result) != `{"n":1}` {
			t.Errorf("%s: result %s, %v", kind, job.Result, err)
		}
		if next, err := client.Enqueue(t.Context(), keyed()); err != nil || next.Duplicate {
			t.Errorf("%s: the key is not free: %+v, %v", kind, next, err)
		} else if err := client.Cancel(t.Context(), []sluice.ID{next.ID}, sluice.Act{By: "test"}); err != nil {
			t.Fatal(err)
		}
	}
	var effects int
	if err := store.Pool().QueryRow(t.Context(), "select count(*) from effect").Scan(&effects); err != nil || effects != 2 {
		t.Errorf("%d effects, want 2; %v", effects, err)
	}
}

func TestCompletionInATransactionLetsTheLaterRunGo(t *testing.T) {
	t.Parallel()
	store, client := newStore(t)
	if _, err := client.Enqueue(t.Context(), keyed()); err != nil {
		t.Fatal(err)
	}
	claim := claimOne(t, store)
	coalesced := keyed()
	coalesced.OnDuplicate = sluice.Coalesce
	later, err := client.Enqueue(t.Context(), coalesced)
	if err != nil || later.Duplicate {
		t.Fatalf("enqueued %+v, %v, want a new job", later, err)
	}
	if err := pgx.BeginFunc(t.Context(), store.Pool(), func(tx pgx.Tx) error {
		return postgres.CompleteTx(t.Context(), tx, claim, nil)
	}); err != nil {
		t.Fatal(err)
	}
	if got := claimOne(t, store); got.ID != later.ID {
		t.Errorf("claimed %s, want the later run %s", got.ID, later.ID)
	}
}

func TestEnqueueInATransactionWakesWorkersOfAllProcesses(t *testing.T) {
	t.Parallel()
	url := migrated.Copy(t)
	store, other := openStore(t, url), openStore(t, url)
	client := sluice.NewClient(store, sluice.ClientOptions{})
	ctx, cancel := context.WithCancel(t.Context())
	var listening sync.WaitGroup
	defer listening.Wait()
	defer cancel()
	heard := map[string]chan struct{}{}
	for name, s := range map[string]*postgres.Store{"this process": store, "another process": other} {
		woken := make(chan struct{}, 100)
		heard[name] = woken
		listening.Go(func() {
			_ = s.Watch(ctx, func(signal sluice.Signal) {
				if signal.Queue == "in-tx" {
					woken <- struct{}{}
				}
			})
		})
	}
	for name, woken := range heard {
		deadline := time.After(10 * time.Minute)
		for got := false; !got; {
			if err := pgx.BeginFunc(t.Context(), store.Pool(), func(tx pgx.Tx) error {
				_, err := client.Within(store.InTx(tx)).Enqueue(t.Context(), sluice.NewJob{Queue: "in-tx", Payload: []byte(`{}`)})
				return err
			}); err != nil {
				t.Fatal(err)
			}
			select {
			case <-woken:
				got = true
			case <-time.After(200 * time.Millisecond):
			case <-deadline:
				t.Fatalf("%s is not woken", name)
			}
		}
	}
}

func TestMigrationsArePreviewedAndRunOnceByManyAtOnce(t *testing.T) {
	t.Parallel()
	url := pgtest.NewDatabase(t)
	if _, err := postgres.Open(t.Context(), url, postgres.Options{}); !errors.Is(err, sluice.ErrNotMigrated) {
		t.Errorf("open before the migration: %v", err)
	}
	pending, err := postgres.PendingMigrations(t.Context(), url)
	if err != nil || len(pending) == 0 {
		t.Fatalf("pending %v, %v", pending, err)
	}
	var wait sync.WaitGroup
	var mu sync.Mutex
	ran := 0
	for range 8 {
		wait.Go(func() {
			steps, err := postgres.Migrate(t.Context(), url)
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			ran += len(steps)
		})
	}
	wait.Wait()
	if ran != len(pending) {
		t.Errorf("%d steps were run, want %d", ran, len(pending))
	}
	if pending, err := postgres.PendingMigrations(t.Context(), url); err != nil || len(pending) != 0 {
		t.Errorf("pending after the migration: %v, %v", pending, err)
	}
}

func TestNewerDatabaseIsRefusedUnlessItSaysThatItWorks(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		worksFrom int
		want      error
	}{"works with this program": {1, nil}, "needs a newer program": {99, sluice.ErrNewerSchema}} {
		url := migrated.Copy(t)
		store := openStore(t, url)
		if _, err := store.Pool().Exec(t.Context(), "insert into sluice.migration values (99, 'of the future', 'x', $1)", c.worksFrom); err != nil {
			t.Fatal(err)
		}
		again, err := postgres.Open(t.Context(), url, postgres.Options{Migrate: true})
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil {
			_ = again.Close()
		}
	}
}

// TestOneOfManyLeadsHoweverManyAsk makes many holders ask for the same tasks at once, in different orders.
func TestOneOfManyLeadsHoweverManyAsk(t *testing.T) {
	t.Parallel()
	url := migrated.Copy(t)
	stores := []*postgres.Store{openStore(t, url), openStore(t, url)}
	var mu sync.Mutex
	led := make(map[string][]string)
	var all sync.WaitGroup
	for i := range 16 {
		tasks := []string{"upkeep", "follow a", "follow b", "follow c"}
		if i%2 == 0 {
			slices.Reverse(tasks)
		}
		all.Go(func() {
			holder := fmt.Sprint("h", i)
			for range 5 {
				leads, err := stores[i%2].Elect(t.Context(), holder, tasks, time.Hour)
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				for _, task := range leads {
					if !slices.Contains(led[task], holder) {
						led[task] = append(led[task], holder)
					}
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	for _, task := range []string{"upkeep", "follow a", "follow b", "follow c"} {
		if len(led[task]) != 1 {
			t.Errorf("%s is led by %v, want one", task, led[task])
		}
	}
}

func TestTransactionPoolerNeedsNoSession(t *testing.T) {
	t.Parallel()
	url := pgtest.NewDatabase(t)
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	// Behind a pooler, each statement may run in another session, so the store must leave nothing in a session.
	store, err := postgres.New(t.Context(), pool, postgres.Options{Migrate: true, TransactionPooler: true})
	if err != nil {
		t.Fatal(err)
	}
	client := sluice.NewClient(store, sluice.ClientOptions{})
	if _, err := client.Enqueue(t.Context(), keyed()); err != nil {
		t.Fatal(err)
	}
	claim := claimOne(t, store)
	if _, err := store.Renew(t.Context(), []sluice.Renewal{{ID: claim.ID, Token: claim.Token, Lease: time.Minute}}); err != nil {
		t.Error(err)
	}
	inTurns := sluice.DefaultSettings()
	inTurns.Fair = true
	if _, err := client.EnsureQueue(t.Context(), "q", inTurns, sluice.Act{By: "test"}); err != nil {
		t.Fatal(err)
	}
	enqueueOf(t, store, 1, sluice.EnqueueOptions{}, "a", "b")
	if got := claimed(t, store, 2); len(got) != 2 {
		t.Errorf("claimed %v from a queue that serves its tenants in turns, want one of each", got)
	}
	if leads, err := presence.Given(store).Elect(t.Context(), "h", []string{"upkeep"}, time.Minute); err != nil || len(leads) != 1 {
		t.Errorf("leads %v, %v", leads, err)
	}
	var prepared, locks, listens int
	if err := pool.QueryRow(t.Context(), `select
		(select count(*) from pg_prepared_statements where statement like '%sluice.live%' and statement not like '%pg_locks%'),
		(select count(*) from pg_locks where locktype = 'advisory' and database = (select oid from pg_database where datname = current_database())),
		(select count(*) from pg_listening_channels())`).Scan(&prepared, &locks, &listens); err != nil {
		t.Fatal(err)
	}
	if prepared+locks+listens > 0 {
		t.Errorf("left in the session: %d prepared statements, %d locks, %d channels", prepared, locks, listens)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	if err := pool.Ping(t.Context()); err != nil {
		t.Errorf("the caller's pool after the store was closed: %v", err)
	}
}
