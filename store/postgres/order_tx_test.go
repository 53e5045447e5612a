package postgres_test

import (
	"testing"

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
