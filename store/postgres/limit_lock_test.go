package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/limit"
	"github.com/sluice-queue/sluice/store/postgres"
)

// shareLimits makes a store whose queues share limits, with jobs in each.
func shareLimits(t *testing.T, concurrency int, limitsOf map[string]string) *postgres.Store {
	t.Helper()
	store := openStore(t, migrated.Copy(t))
	client := sluice.NewClient(store, sluice.ClientOptions{})
	for queue, limits := range limitsOf {
		for _, name := range limit.Names(limits) {
			_, err := limit.Change(t.Context(), store, name, sluice.Act{By: "test"}, func(l *limit.Limit) error {
				l.Concurrency = concurrency
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		settings := sluice.DefaultSettings()
		settings.Limits = limits
		if _, err := client.EnsureQueue(t.Context(), queue, settings, sluice.Act{By: "test"}); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if _, err := client.Enqueue(t.Context(), sluice.NewJob{Queue: queue, Payload: []byte("1")}); err != nil {
				t.Fatal(err)
			}
		}
	}
	return store
}

// lockFlows locks rows of flow in a transaction of another process, until somebody calls the function, or the test ends.
func lockFlows(t *testing.T, store *postgres.Store, rows ...string) (unlock func()) {
	t.Helper()
	run(t, store, "insert into sluice.flow (queue) select unnest($1::text[]) on conflict do nothing", rows)
	tx, err := store.Pool().Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	unlock = sync.OnceFunc(func() {
		if err := tx.Rollback(context.Background()); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(unlock)
	if _, err := tx.Exec(t.Context(), "select from sluice.flow where queue = any ($1) order by queue for update", rows); err != nil {
		t.Fatal(err)
	}
	return unlock
}

// TestAClaimWaitsBrieflyForTheLockOfASharedLimit has a frozen process hold the lock. The worker of the claim has other
// queues, so the claim must not wait until the server ends the frozen transaction.
func TestAClaimWaitsBrieflyForTheLockOfASharedLimit(t *testing.T) {
	t.Parallel()
	store := shareLimits(t, 1, map[string]string{"q": "bank"})
	unlock := lockFlows(t, store, "@bank")
	ended := make(chan struct{})
	late := time.AfterFunc(time.Minute, func() { close(ended); unlock() })
	defer late.Stop()
	answer := answerOf(t, store, 1)
	select {
	case <-ended:
		t.Fatal("the claim waited as long as the process was frozen")
	default:
	}
	if len(answer.Jobs) > 0 || !answer.Limited || !answer.Unheard || answer.NextDue <= 0 {
		t.Errorf("beside a frozen claim the answer is %+v", answer)
	}
	unlock()
	if n := len(answerOf(t, store, 1).Jobs); n != 1 {
		t.Errorf("afterwards a claim gets %d jobs, want 1", n)
	}
}

// TestAFunctionWaitsBrieflyForTheLockOfASharedLimit calls the function claim while a frozen process holds the lock, and
// then beside a claim by a program. Together they get what the limit allows.
func TestAFunctionWaitsBrieflyForTheLockOfASharedLimit(t *testing.T) {
	t.Parallel()
	store := shareLimits(t, 1, map[string]string{"q": "bank", "other": "bank,ledger", "third": "ledger"})
	unlock := lockFlows(t, store, "@bank")
	claim := func(queues ...string) (n int) {
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		if err := store.Pool().QueryRow(ctx, "select count(*) from sluice.claim(queues => $1, holder => 'h:1:a')", queues).Scan(&n); err != nil {
			t.Errorf("claim from %s: %v", queues, err)
		}
		return n
	}
	if n := claim("other") + claim("other", "third"); n != 0 {
		t.Errorf("beside a frozen claim the function gets %d jobs", n)
	}
	unlock()
	got := make(chan int, 1)
	go func() { got <- len(answerOf(t, store, 1).Jobs) }()
	if n := claim("other") + <-got; n > 1 {
		t.Errorf("both get %d jobs, and the limit allows 1", n)
	}
}

// TestFunctionsLockTheLimitsOfSeveralQueuesInOneOrder has two calls claim from the same two queues, which share limits with
// different names. Each call begins with another queue.
func TestFunctionsLockTheLimitsOfSeveralQueuesInOneOrder(t *testing.T) {
	t.Parallel()
	store := shareLimits(t, 9, map[string]string{"q": "ledger", "other": "bank"})
	unlock := lockFlows(t, store, "@bank", "@ledger")
	errs := make(chan error, 2)
	for first := range 2 {
		go func() {
			token := fmt.Sprintf("018f0000-0000-7000-8000-00000000000%d", first)
			_, err := store.Pool().Exec(t.Context(), "select from sluice.claim(queues => '{q,other}', holder => 'h:1:a', batch => 4, claim_token => $1)", token)
			errs <- err
		}()
	}
	for got := 0; got < 2 && len(errs) == 0; { // on a slow machine, a call may have given up before
		const count = "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
		if err := store.Pool().QueryRow(t.Context(), count).Scan(&got); err != nil {
			t.Fatal(err)
		}
	}
	unlock()
	if err := errors.Join(<-errs, <-errs); err != nil {
		t.Error(err)
	}
}
