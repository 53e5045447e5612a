package postgres_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/presence"
	"github.com/sluice-queue/sluice/store/postgres"
)

// A caller's transaction may stay open for long. No other caller may wait for it.

func newJob(options sluice.EnqueueOptions) sluice.NewJob {
	return sluice.NewJob{Queue: "payments", Payload: json.RawMessage(`1`), EnqueueOptions: options}
}

// shop is a store, a client and a transaction. The test leaves the transaction open.
type shop struct {
	*testing.T
	store  *postgres.Store
	client *sluice.Client
	tx     pgx.Tx
}

func newShop(t *testing.T) *shop {
	t.Helper()
	t.Parallel()
	// Without an end of the transaction, a call that waits for it fails.
	store, err := postgres.Open(t.Context(), migrated.Copy(t)+"&pool_max_conns=10",
		postgres.Options{Migrate: true, CallTimeout: 30 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	s := &shop{T: t, store: store, client: sluice.NewClient(store, sluice.ClientOptions{})}
	if _, err := s.client.EnsureQueue(t.Context(), "payments", sluice.DefaultSettings(), sluice.Act{By: "test"}); err != nil {
		t.Fatal(err)
	}
	s.begin()
	return s
}

func (s *shop) begin() {
	s.Helper()
	tx, err := s.store.Pool().Begin(s.Context())
	if err != nil {
		s.Fatal(err)
	}
	s.tx = tx
	s.Cleanup(func() { _ = tx.Rollback(context.Background()) })
}

func (s *shop) add(client *sluice.Client, options sluice.EnqueueOptions) sluice.Receipt {
	s.Helper()
	receipt, err := client.Enqueue(s.Context(), newJob(options))
	if err != nil {
		s.Fatal(err)
	}
	return receipt
}

func (s *shop) claim(n int) []*sluice.Claim {
	s.Helper()
	claimed, err := s.store.Claim(s.Context(), sluice.ClaimRequest{
		Queue: "payments", Limit: n, Holder: "test", Lease: time.Minute, Token: sluice.NewToken(),
	})
	if err != nil || len(claimed.Jobs) != n {
		s.Fatalf("claimed %d jobs, want %d: %v", len(claimed.Jobs), n, err)
	}
	return claimed.Jobs
}

func (s *shop) settle(event sluice.Event, claims ...*sluice.Claim) {
	s.Helper()
	var settlements []sluice.Settlement
	for _, c := range claims {
		settlements = append(settlements, sluice.Settlement{ID: c.ID, Token: c.Token, Holder: c.Holder, Event: event})
	}
	errs, err := s.store.Settle(s.Context(), settlements)
	if err := errors.Join(append(errs, err)...); err != nil {
		s.Fatalf("settle: %v", err)
	}
}

func (s *shop) state(id sluice.ID) sluice.Job {
	s.Helper()
	job, err := s.client.Job(s.Context(), id)
	if err != nil {
		s.Fatal(err)
	}
	return job
}

func (s *shop) commit() {
	s.Helper()
	if err := s.tx.Commit(s.Context()); err != nil {
		s.Fatal(err)
	}
}

func TestSettlingDoesNotWaitForATransactionThatEnqueuesTheSameKey(t *testing.T) {
	s := newShop(t)
	first := s.add(s.client, sluice.EnqueueOptions{Key: "k"})
	for range 4 {
		s.add(s.client, sluice.EnqueueOptions{})
	}
	claims := s.claim(5)
	if got := s.add(s.client.Within(s.store.InTx(s.tx)), sluice.EnqueueOptions{Key: "k"}); got.ID != first.ID || !got.Duplicate {
		t.Errorf("receipt %+v", got)
	}
	s.settle(sluice.EventComplete, claims...)
	s.commit()
	if next := s.add(s.client, sluice.EnqueueOptions{Key: "k"}); next.Duplicate {
		t.Error("the key of a job that has ended keeps others out")
	}
}

func TestJobCoalescedInATransactionGoesWhenItsBlockerEndsMeanwhile(t *testing.T) {
	s := newShop(t)
	coalescing := sluice.EnqueueOptions{Key: "k", OnDuplicate: sluice.Coalesce}
	s.add(s.client, coalescing)
	claims := s.claim(1)
	later := s.add(s.client.Within(s.store.InTx(s.tx)), coalescing)
	s.settle(sluice.EventComplete, claims...)
	s.commit()
	if _, err := s.store.Repair(t.Context(), "upkeep"); err != nil {
		t.Fatal(err)
	}
	s.store.ForgetLowWater() // the job is due since its transaction began, and claims walk from the front only now and then
	if got := s.claim(1)[0].ID; got != later.ID {
		t.Errorf("claimed %s, want %s", got, later.ID)
	}
}

func TestJobCoalescedInManyCallsAtOnceIsNeverLeftBehind(t *testing.T) {
	s := newShop(t)
	coalescing := sluice.EnqueueOptions{Key: "k", OnDuplicate: sluice.Coalesce}
	for range 30 {
		s.add(s.client, coalescing)
		claims := s.claim(1)
		done := make(chan struct{})
		go func() {
			defer close(done)
			s.settle(sluice.EventComplete, claims...)
		}()
		s.add(s.client, coalescing)
		<-done
		s.settle(sluice.EventComplete, s.claim(1)...)
	}
}

func TestOpenCompletionKeepsNeitherRenewalsNorRecoveryWaiting(t *testing.T) {
	s := newShop(t)
	s.add(s.client, sluice.EnqueueOptions{})
	s.add(s.client, sluice.EnqueueOptions{})
	claims := s.claim(2)
	// Both leases nearly end, so that the store really writes the renewals.
	if _, err := s.store.Pool().Exec(t.Context(), "update sluice.live set lease_until = now() + interval '1 second'"); err != nil {
		t.Fatal(err)
	}
	if err := postgres.CompleteTx(t.Context(), s.tx, claims[0], nil); err != nil {
		t.Fatal(err)
	}
	var renewals []sluice.Renewal
	for _, c := range claims {
		renewals = append(renewals, sluice.Renewal{ID: c.ID, Token: c.Token, Lease: time.Hour})
	}
	lost, err := s.store.Renew(t.Context(), renewals)
	if err != nil || len(lost) > 0 {
		t.Errorf("lost %v, error %v", lost, err)
	}
	if until := s.state(claims[1].ID).LeaseUntil; time.Until(until) < 30*time.Minute {
		t.Errorf("the other lease was not renewed: it ends at %s", until)
	}
	if _, err := s.store.Pool().Exec(t.Context(), "update sluice.live set lease_until = now() - interval '1 hour' where id = $1", [16]byte(claims[1].ID)); err != nil {
		t.Fatal(err)
	}
	if out, err := s.store.Recover(t.Context(), "payments", 100, "upkeep"); err != nil || out.Requeued != 1 {
		t.Errorf("recovered %+v, error %v", out, err)
	}
	s.commit()
	if job := s.state(claims[0].ID); job.State != sluice.StateCompleted {
		t.Errorf("the completed one is %s", job.State)
	}
}

// TestDelayInATransactionCountsFromItsStatement enqueues in a transaction that has been open for a while.
func TestDelayInATransactionCountsFromItsStatement(t *testing.T) {
	const delay = time.Hour
	debounce := sluice.EnqueueOptions{Key: "k", OnDuplicate: sluice.Debounce, Delay: delay}
	for name, many := range map[string][]sluice.EnqueueOptions{
		"one job":    {{Delay: delay}},
		"several":    {{Delay: delay}, {Delay: delay, Tenant: "acme"}},
		"a key":      {{Delay: delay, Key: "other"}},
		"put off":    {debounce, debounce},
		"no delay":   {{}, {}},
		"a function": nil,
	} {
		t.Run(name, func(t *testing.T) {
			s := newShop(t)
			var begun, at time.Time
			if err := s.tx.QueryRow(t.Context(), "select now(), clock_timestamp() from pg_sleep(0.3)").Scan(&begun, &at); err != nil {
				t.Fatal(err)
			}
			var ids []sluice.ID
			if many == nil {
				var id [16]byte
				if err := s.tx.QueryRow(t.Context(), "select id from sluice.enqueue(queue => 'payments', payload => '1', delay => '1 hour')").Scan(&id); err != nil {
					t.Fatal(err)
				}
				ids = append(ids, id)
			}
			jobs := make([]sluice.NewJob, len(many))
			for i := range many {
				jobs[i] = newJob(many[i])
			}
			receipts, err := s.client.Within(s.store.InTx(s.tx)).EnqueueMany(t.Context(), jobs)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range receipts {
				ids = append(ids, r.ID)
			}
			s.commit()
			earliest := at.Add(delay)
			if name == "no delay" {
				earliest = begun
			}
			for _, id := range ids {
				if due := s.state(id).DueAt; due.Before(earliest) || due.After(earliest.Add(time.Minute)) {
					t.Errorf("it is due at %s, want %s or a little later", due, earliest)
				}
			}
		})
	}
}

func TestPruneLeavesAJobThatIsBeingRequeued(t *testing.T) {
	s := newShop(t)
	s.add(s.client, sluice.EnqueueOptions{})
	claims := s.claim(1)
	s.settle(sluice.EventBury, claims...)
	ctx := t.Context()
	if _, err := s.store.Pool().Exec(ctx, "update sluice.done set finished_at = now() - interval '100 days'"); err != nil {
		t.Fatal(err)
	}
	// The statements of a requeue, without the commit.
	for _, text := range []string{
		"update sluice.done set requeued_at = now()",
		"insert into sluice.live (id, queue, priority, due_at, generation) select id, queue, priority, clock_timestamp(), 2 from sluice.job",
	} {
		if _, err := s.tx.Exec(ctx, text); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := s.store.Prune(ctx, "", 1000); err != nil || out.Deleted != 0 {
		t.Errorf("pruned %+v, error %v", out, err)
	}
	s.commit()
	if out, err := s.store.Prune(ctx, "", 1000); err != nil || out.Deleted != 0 {
		t.Errorf("pruned %+v, error %v", out, err)
	}
	s.claim(1)
}

func TestPruneLeavesAKeyThatIsBeingTakenAnew(t *testing.T) {
	s := newShop(t)
	s.add(s.client, sluice.EnqueueOptions{Key: "k", KeyScope: sluice.ForWindow, KeyWindow: time.Microsecond})
	s.begin() // the transaction's clock stands still, so it must begin after the key's window
	second := s.add(s.client.Within(s.store.InTx(s.tx)), sluice.EnqueueOptions{Key: "k", KeyScope: sluice.ForEver})
	if _, err := s.store.Prune(t.Context(), "", 1000); err != nil {
		t.Fatal(err)
	}
	s.commit()
	third := s.add(s.client, sluice.EnqueueOptions{Key: "k", KeyScope: sluice.ForEver})
	if !third.Duplicate || third.ID != second.ID {
		t.Errorf("receipt %+v, want a duplicate of %s", third, second.ID)
	}
}

func TestEnqueueInATransactionNeedsNoOtherConnection(t *testing.T) {
	t.Parallel()
	store, err := postgres.Open(t.Context(), migrated.Copy(t)+"&pool_max_conns=1", postgres.Options{Migrate: true, CallTimeout: 30 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	client := sluice.NewClient(store, sluice.ClientOptions{})
	for n := range 3 {
		err := pgx.BeginFunc(t.Context(), store.Pool(), func(tx pgx.Tx) error {
			_, err := client.Within(store.InTx(tx)).Enqueue(t.Context(), newJob(sluice.EnqueueOptions{Key: fmt.Sprint(n)}))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestSignOfLifeHasEndedWhenItReturns(t *testing.T) {
	for sign, call := range map[string]func(context.Context, *postgres.Store) error{
		"heartbeat": func(ctx context.Context, store *postgres.Store) error {
			_, err := store.Heartbeat(ctx, presence.Holder{ID: "old", Role: presence.RoleUpkeep})
			return err
		},
		"election": func(ctx context.Context, store *postgres.Store) error {
			_, err := store.Elect(ctx, "old", []string{"tend"}, time.Minute)
			return err
		},
	} {
		t.Run(sign, func(t *testing.T) {
			s := newShop(t)
			if _, err := s.tx.Exec(t.Context(), `lock table sluice.holder, sluice.lead`); err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithCancel(t.Context())
			signed := make(chan error)
			go func() { signed <- call(ctx, s.store) }()
			s.waiting(1)
			stop()
			s.commit()
			if err := <-signed; err != nil {
				t.Errorf("the %s was given up while the server carried it out: %v", sign, err)
			}
		})
	}
}

// waiting returns when n statements wait for a lock.
func (s *shop) waiting(n int) {
	s.Helper()
	for got := -1; got != n; time.Sleep(time.Millisecond) {
		err := s.store.Pool().QueryRow(s.Context(), `select count(*) from pg_locks where not granted and database = (select oid from pg_database where datname = current_database())`).Scan(&got)
		if err != nil {
			s.Fatal(err)
		}
	}
}
