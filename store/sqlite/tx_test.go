package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"sync"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/admission"
	"github.com/sluice-queue/sluice/store/sqlite"
)

func newStore(t *testing.T) (*sqlite.Store, *sluice.Client) {
	t.Helper()
	store := openStore(t, filepath.Join(t.TempDir(), "sluice.db"))
	return store, sluice.NewClient(store, sluice.ClientOptions{})
}

func enqueueOne(t *testing.T, client *sluice.Client) sluice.ID {
	t.Helper()
	receipt, err := client.Enqueue(t.Context(), sluice.NewJob{Queue: "q", Payload: []byte(`{}`)})
	if err != nil {
		t.Fatal(err)
	}
	return receipt.ID
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

func TestEnqueueInATransactionStandsOrFallsWithIt(t *testing.T) {
	t.Parallel()
	store, client := newStore(t)
	for name, commit := range map[string]bool{"committed": true, "rolled back": false} {
		tx, err := store.DB().BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		receipt, err := client.Within(store.InTx(tx)).Enqueue(t.Context(), sluice.NewJob{
			Queue: "new-" + name[:3], Payload: []byte(`{}`), EnqueueOptions: sluice.EnqueueOptions{Key: "k", Labels: map[string]string{"a": "b"}},
		})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		want := sluice.State("")
		if commit {
			want = sluice.StateQueued
			err = tx.Commit()
		} else {
			err = tx.Rollback()
		}
		if err != nil {
			t.Fatal(err)
		}
		if got := stateOf(t, client, receipt.ID); got != want {
			t.Errorf("%s: state %q, want %q", name, got, want)
		}
	}
}

func TestEnqueueInATransactionIntoAnUndeclaredQueueIsRefused(t *testing.T) {
	t.Parallel()
	store, client := newStore(t)
	if _, err := admission.Save(t.Context(), store, admission.Policy{MaxQueues: 1, Declared: true}, sluice.Act{By: "ada", Reason: "test"}); err != nil {
		t.Fatal(err)
	}
	tx, err := store.DB().BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	receipt, err := client.Within(store.InTx(tx)).Enqueue(t.Context(), sluice.NewJob{Queue: "mial", Payload: []byte(`{}`)})
	var unknown *admission.UnknownQueueError
	if !errors.As(err, &unknown) || unknown.Queue != "mial" {
		t.Errorf("error %v", err)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	if got := stateOf(t, client, receipt.ID); got != "" {
		t.Errorf("it is %s", got)
	}
}

func TestEnqueueInATransactionWakesWorkersWhenItCommits(t *testing.T) {
	t.Parallel()
	store, client := newStore(t)
	woken := make(chan struct{}, 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var listening sync.WaitGroup
	listening.Go(func() {
		_ = store.Watch(ctx, func(sluice.Signal) {
			select {
			case woken <- struct{}{}:
			default:
			}
		})
	})
	defer listening.Wait()
	defer cancel()
	enqueueOne(t, client)
	<-woken // it listens
	time.Sleep(100 * time.Millisecond)
	select {
	case <-woken:
	default:
	}
	tx, err := store.DB().BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Within(store.InTx(tx)).Enqueue(t.Context(), sluice.NewJob{Queue: "q", Payload: []byte(`{}`)}); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-woken:
	case <-time.After(10 * time.Minute):
		t.Error("no signal came within 10 min, want one after the commit")
	}
}

func TestCompletionInATransactionStandsOrFallsWithIt(t *testing.T) {
	t.Parallel()
	errUndo := errors.New("undo")
	for name, fail := range map[string]error{"committed": nil, "undone": errUndo} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store, client := newStore(t)
			if _, err := store.DB().ExecContext(t.Context(), "create table effect (id text)"); err != nil {
				t.Fatal(err)
			}
			id := enqueueOne(t, client)
			claim := claimOne(t, store)
			err := store.Transact(t.Context(), func(tx sqlite.Tx) error {
				if _, err := tx.ExecContext(t.Context(), "insert into effect values (?)", id.String()); err != nil {
					return err
				}
				if err := sqlite.CompleteTx(t.Context(), tx, claim, map[string]int{"n": 1}); err != nil {
					return err
				}
				return fail
			})
			if !errors.Is(err, fail) {
				t.Fatalf("error %v", err)
			}
			var effects int
			if err := store.DB().QueryRowContext(t.Context(), "select count(*) from effect").Scan(&effects); err != nil {
				t.Fatal(err)
			}
			want, state := 1, sluice.StateCompleted
			if fail != nil {
				want, state = 0, sluice.StateClaimed
			}
			if got := stateOf(t, client, id); got != state || effects != want {
				t.Errorf("state %s with %d effects, want %s with %d", got, effects, state, want)
			}
			if !claim.SettledInTx() {
				t.Error("the claim does not know that it was completed in a transaction")
			}
		})
	}
}

func TestHolderThatLostItsJobCannotCompleteItInATransaction(t *testing.T) {
	t.Parallel()
	store, client := newStore(t)
	id := enqueueOne(t, client)
	claim := claimOne(t, store)
	if err := client.Cancel(t.Context(), []sluice.ID{id}, sluice.Act{By: "ada"}); err != nil {
		t.Fatal(err)
	}
	tx, err := store.DB().BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	if err := sqlite.CompleteTx(t.Context(), tx, claim, nil); !errors.Is(err, sluice.ErrLost) {
		t.Errorf("error %v", err)
	}
	if err := sqlite.CompleteTx(t.Context(), tx, claim, func() {}); err == nil {
		t.Error("a result that is no JSON is taken")
	}
}

func TestOneFailingWriteOfAGroupIsUndoneAlone(t *testing.T) {
	t.Parallel()
	store, client := newStore(t)
	var wait sync.WaitGroup
	for i := range 50 {
		wait.Go(func() {
			if i%5 == 0 {
				err := store.Transact(t.Context(), func(tx sqlite.Tx) error {
					if _, err := client.Within(store.InTx(tx)).Enqueue(t.Context(), sluice.NewJob{Queue: "q", Payload: []byte(`{}`)}); err != nil {
						return err
					}
					_, err := tx.ExecContext(t.Context(), "insert into no_such_table values (1)")
					return err
				})
				if err == nil {
					t.Error("a write into a table that is not there succeeds")
				}
				return
			}
			if _, err := client.Enqueue(t.Context(), sluice.NewJob{Queue: "q", Payload: []byte(`{}`)}); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	depth, err := client.Depth(t.Context(), "q")
	if err != nil || depth.Ready != 40 {
		t.Errorf("ready %d, want 40; %v", depth.Ready, err)
	}
}

func TestStoreWorksOnADatabaseOfTheCaller(t *testing.T) {
	t.Parallel()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "mine.db")+"?_txlock=immediate&_pragma=busy_timeout(5000)")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	db.SetMaxOpenConns(1)
	if _, err := sqlite.New(t.Context(), db, sqlite.Options{Migrate: true}); !errors.Is(err, sluice.ErrInvalid) {
		t.Errorf("a database of one connection: %v", err)
	}
	db.SetMaxOpenConns(4)
	store, err := sqlite.New(t.Context(), db, sqlite.Options{Migrate: true, Relaxed: true})
	if err != nil {
		t.Fatal(err)
	}
	client := sluice.NewClient(store, sluice.ClientOptions{})
	id := enqueueOne(t, client)
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	var jobs int
	if err := db.QueryRowContext(t.Context(), "select count(*) from sluice_jobs").Scan(&jobs); err != nil || jobs != 1 {
		t.Errorf("the caller's database after the store was closed: %d jobs of which one is %s, %v", jobs, id, err)
	}
}

func TestMigrationsArePreviewedAndRunOnceByManyAtOnce(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "sluice.db")
	if _, err := sqlite.Open(t.Context(), path, sqlite.Options{}); !errors.Is(err, sluice.ErrNotMigrated) {
		t.Errorf("open before the migration: %v", err)
	}
	pending, err := sqlite.PendingMigrations(t.Context(), path)
	if err != nil || len(pending) == 0 {
		t.Fatalf("pending %v, %v", pending, err)
	}
	var wait sync.WaitGroup
	var mu sync.Mutex
	ran := 0
	for range 8 {
		wait.Go(func() {
			steps, err := sqlite.Migrate(t.Context(), path)
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
	if pending, err := sqlite.PendingMigrations(t.Context(), path); err != nil || len(pending) != 0 {
		t.Errorf("pending after the migration: %v, %v", pending, err)
	}
	if pending, err := sqlite.PendingMigrations(t.Context(), path+".none"); err != nil || len(pending) == 0 {
		t.Errorf("pending of a file that is not there: %v, %v", pending, err)
	}
}

func TestNewerDatabaseIsRefusedUnlessItSaysThatItWorks(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		worksFrom int
		want      error
	}{"works with this program": {1, nil}, "needs a newer program": {99, sluice.ErrNewerSchema}} {
		path := filepath.Join(t.TempDir(), "sluice.db")
		store := openStore(t, path)
		if _, err := store.DB().ExecContext(t.Context(), "insert into sluice_migration values (99, 'of the future', 'x', ?, 0)", c.worksFrom); err != nil {
			t.Fatal(err)
		}
		_ = store.Close()
		again, err := sqlite.Open(t.Context(), path, sqlite.Options{Migrate: true})
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
		if err == nil {
			_ = again.Close()
		}
	}
}
