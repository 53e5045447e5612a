package postgres_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/store/postgres"
)

// repair runs upkeep's Repair once.
func (s *shop) repair() {
	s.Helper()
	if _, err := s.store.Repair(s.Context(), "upkeep"); err != nil {
		s.Fatal(err)
	}
}

// goesNext claims one job, checks that it is the given job, and completes it.
func (s *shop) goesNext(id sluice.ID) {
	s.Helper()
	s.store.ForgetLowWater() // the job may have been due before the last claimed job
	claims := s.claim(1)
	if claims[0].ID != id {
		s.Fatalf("claimed %s, want %s", claims[0].ID, id)
	}
	s.settle(sluice.EventComplete, claims...)
}

func TestSettlingDoesNotWaitForATransactionThatEnqueuesInTheSameOrder(t *testing.T) {
	s := newShop(t)
	s.add(s.client, sluice.EnqueueOptions{OrderKey: "o"})
	second := s.add(s.client, sluice.EnqueueOptions{OrderKey: "o"})
	first := s.claim(1)
	within := s.client.Within(s.store.InTx(s.tx))
	third := s.add(within, sluice.EnqueueOptions{OrderKey: "o"})
	last := s.add(within, sluice.EnqueueOptions{After: []sluice.ID{first[0].ID, third.ID}})
	s.add(s.client, sluice.EnqueueOptions{OrderKey: "other"})
	s.settle(sluice.EventComplete, s.claim(1)...)
	s.settle(sluice.EventComplete, first...)
	if err := s.client.Cancel(t.Context(), []sluice.ID{second.ID}, sluice.Act{By: "test"}); err != nil {
		t.Fatal(err)
	}
	s.commit()
	s.repair()
	s.goesNext(third.ID)
	s.goesNext(last.ID)
}

func TestSettlingDoesNotWaitForAnOpenCompletionOfAJobBeforeTheSame(t *testing.T) {
	s := newShop(t)
	a, b := s.add(s.client, sluice.EnqueueOptions{}), s.add(s.client, sluice.EnqueueOptions{})
	last := s.add(s.client, sluice.EnqueueOptions{After: []sluice.ID{a.ID, b.ID}})
	doomed := s.add(s.client, sluice.EnqueueOptions{After: []sluice.ID{a.ID, b.ID}})
	claims := s.claim(2)
	if err := postgres.CompleteTx(t.Context(), s.tx, claims[0], nil); err != nil {
		t.Fatal(err)
	}
	s.settle(sluice.EventComplete, claims[1])
	s.commit()
	s.repair()
	if err := s.client.Cancel(t.Context(), []sluice.ID{doomed.ID}, sluice.Act{By: "test"}); err != nil {
		t.Fatal(err)
	}
	s.goesNext(last.ID)
}

func TestCompletionInATransactionLetsOthersGo(t *testing.T) {
	s := newShop(t)
	first := s.add(s.client, sluice.EnqueueOptions{OrderKey: "o"})
	dead := s.add(s.client, sluice.EnqueueOptions{})
	last := s.add(s.client, sluice.EnqueueOptions{OrderKey: "o"})
	after := s.add(s.client, sluice.EnqueueOptions{After: []sluice.ID{first.ID}})
	both := s.add(s.client, sluice.EnqueueOptions{After: []sluice.ID{first.ID, dead.ID}})
	claims := s.claim(2)
	if claims[0].ID != first.ID {
		claims[0], claims[1] = claims[1], claims[0]
	}
	if err := postgres.CompleteTx(t.Context(), s.tx, claims[0], nil); err != nil {
		t.Fatal(err)
	}
	if job := s.state(last.ID); job.BlockedBy != first.ID {
		t.Errorf("before the commit it waits for %s", job.BlockedBy)
	}
	s.commit()
	s.store.ForgetLowWater()
	s.settle(sluice.EventComplete, s.claim(2)...)
	for _, id := range []sluice.ID{last.ID, after.ID} {
		if job := s.state(id); job.State != sluice.StateCompleted {
			t.Errorf("job %s is %s", id, job.State)
		}
	}
	s.settle(sluice.EventBury, claims[1])
	if job := s.state(both.ID); job.State != sluice.StateCancelled {
		t.Errorf("the job after a dead one is %s", job.State)
	}
}

func TestUnusedOrderKeysAreForgotten(t *testing.T) {
	s := newShop(t)
	s.add(s.client, sluice.EnqueueOptions{OrderKey: "done"})
	s.settle(sluice.EventComplete, s.claim(1)...)
	s.add(s.client, sluice.EnqueueOptions{OrderKey: "waits"})
	s.repair()
	var keys []string
	if err := s.store.Pool().QueryRow(t.Context(), "select array_agg(order_key) from sluice.order_key").Scan(&keys); err != nil {
		t.Fatal(err)
	}
	if len(keys) != 1 || keys[0] != "waits" {
		t.Errorf("left are %q", keys)
	}
}

// TestARequeuedJobRunsBesideNoneOfItsOrder requeues the first job of an order while a transaction that lets the second go is
// open. The requeue does not see yet that the second is let go, and the transaction does not see the requeue.
func TestARequeuedJobRunsBesideNoneOfItsOrder(t *testing.T) {
	for name, requeue := range map[string]func(ctx context.Context, s *shop, job sluice.Job, act sluice.Act) error{
		"store": func(ctx context.Context, s *shop, job sluice.Job, act sluice.Act) error {
			return oneError(s.store.Requeue(ctx, []sluice.ID{job.ID}, act))
		},
		"function": byFunction("requeue", "queued"),
	} {
		t.Run(name, func(t *testing.T) {
			s := newShop(t)
			first := s.add(s.client, sluice.EnqueueOptions{OrderKey: "o"})
			s.settle(sluice.EventBury, s.claim(1)...)
			other := s.add(s.client, sluice.EnqueueOptions{})
			second := s.add(s.client, sluice.EnqueueOptions{OrderKey: "o", After: []sluice.ID{other.ID}})
			if err := postgres.CompleteTx(t.Context(), s.tx, s.claim(1)[0], nil); err != nil {
				t.Fatal(err)
			}
			done := make(chan error, 1)
			go func() {
				done <- requeue(t.Context(), s, s.state(first.ID), sluice.Act{ID: sluice.NewID(), By: "test", Reason: "r"})
			}()
			s.waits(done)
			s.commit()
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			s.goesNext(second.ID)
			s.goesNext(first.ID)
		})
	}
}

// waits returns when a call waits for a lock, or has ended.
func (s *shop) waits(done chan error) {
	s.Helper()
	for n := 0; n == 0 && len(done) == 0; {
		err := s.store.Pool().QueryRow(s.Context(), "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'").Scan(&n)
		if err != nil {
			s.Fatal(err)
		}
	}
}

// TestACompletionInATransactionDoesNotFailBesideARequeue completes a job in a transaction while another one, which has requeued
// the first job of an order, is open. The completion lets the second job of the order go, because it does not see the first.
func TestACompletionInATransactionDoesNotFailBesideARequeue(t *testing.T) {
	s := newShop(t)
	first := s.add(s.client, sluice.EnqueueOptions{OrderKey: "o"})
	s.settle(sluice.EventBury, s.claim(1)...)
	other := s.add(s.client, sluice.EnqueueOptions{})
	second := s.add(s.client, sluice.EnqueueOptions{OrderKey: "o", After: []sluice.ID{other.ID}})
	completed := s.claim(1)[0]
	if _, err := s.tx.Exec(t.Context(), "select sluice.requeue(array[$1::uuid], 'r')", [16]byte(first.ID)); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		done <- pgx.BeginFunc(t.Context(), s.store.Pool(), func(tx pgx.Tx) error { return postgres.CompleteTx(t.Context(), tx, completed, nil) })
	}()
	s.waits(done)
	s.commit()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	s.repair()
	s.goesNext(first.ID)
	s.goesNext(second.ID)
}

func TestARequeueDoesNotWaitForAnOpenCompletionInItsOrder(t *testing.T) {
	s := newShop(t)
	act := sluice.Act{By: "test", Reason: "r"}
	first := s.add(s.client, sluice.EnqueueOptions{OrderKey: "o"})
	s.settle(sluice.EventBury, s.claim(1)...)
	s.add(s.client, sluice.EnqueueOptions{OrderKey: "o"})
	third, fourth := s.add(s.client, sluice.EnqueueOptions{OrderKey: "o"}), s.add(s.client, sluice.EnqueueOptions{OrderKey: "o"})
	if err := s.client.Cancel(t.Context(), []sluice.ID{third.ID}, act); err != nil {
		t.Fatal(err)
	}
	if err := postgres.CompleteTx(t.Context(), s.tx, s.claim(1)[0], nil); err != nil {
		t.Fatal(err)
	}
	for _, id := range []sluice.ID{third.ID, first.ID} {
		if err := s.client.Requeue(t.Context(), []sluice.ID{id}, act); err != nil {
			t.Fatal(err)
		}
	}
	last := s.add(s.client.Within(s.store.InTx(s.tx)), sluice.EnqueueOptions{OrderKey: "o"})
	s.commit()
	s.repair()
	for _, id := range []sluice.ID{fourth.ID, first.ID, third.ID, last.ID} { // the fourth was let go by the completion
		s.goesNext(id)
	}
}
