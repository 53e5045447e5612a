package postgres_test

import (
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/store/postgres"
)

// newTwins returns a shop with a running job and a job with the same key that waits for it. An open transaction has
// locked the key.
func newTwins(t *testing.T) (s *shop, within *sluice.Client, running *sluice.Claim, waiting sluice.ID) {
	t.Helper()
	s = newShop(t)
	s.add(s.client, sluice.EnqueueOptions{Key: "k"})
	running = s.claim(1)[0]
	waiting = s.add(s.client, sluice.EnqueueOptions{Key: "k", OnDuplicate: sluice.Coalesce}).ID
	within = s.client.Within(s.store.InTx(s.tx))
	if got := s.add(within, sluice.EnqueueOptions{Key: "k"}); got.ID != waiting {
		t.Fatalf("receipt %+v, want a duplicate of the waiting job", got)
	}
	return s, within, running, waiting
}

// TestCancelDoesNotWaitForATransactionThatHasLockedTheKey cancels a job whose key an open transaction has locked. The
// transaction locks the key before the job, so a cancel that waited for the key would deadlock with the transaction.
func TestCancelDoesNotWaitForATransactionThatHasLockedTheKey(t *testing.T) {
	for _, rule := range []sluice.OnDuplicate{sluice.Keep, sluice.Replace, sluice.Coalesce, sluice.Debounce} {
		t.Run(string(rule), func(t *testing.T) {
			s, within, running, waiting := newTwins(t)
			if err := s.client.Cancel(t.Context(), []sluice.ID{waiting}, sluice.Act{By: "test"}); err != nil {
				t.Fatal(err)
			}
			got := s.add(within, sluice.EnqueueOptions{Key: "k", OnDuplicate: rule})
			s.commit()
			s.runsAlone(running, got, rule)
		})
	}
}

// TestKeyOfACancelledJobGoesBackToItsTwin lets the transaction end before the next enqueue.
func TestKeyOfACancelledJobGoesBackToItsTwin(t *testing.T) {
	for _, rule := range []sluice.OnDuplicate{sluice.Keep, sluice.Replace, sluice.Coalesce, sluice.Debounce} {
		t.Run(string(rule), func(t *testing.T) {
			s, _, running, waiting := newTwins(t)
			if err := s.client.Cancel(t.Context(), []sluice.ID{waiting}, sluice.Act{By: "test"}); err != nil {
				t.Fatal(err)
			}
			s.commit()
			if err := s.client.Requeue(t.Context(), []sluice.ID{waiting}, sluice.Act{By: "test", Reason: "r"}); !errors.Is(err, sluice.ErrDuplicate) {
				t.Errorf("requeue: %v, want ErrDuplicate", err)
			}
			s.runsAlone(running, s.add(s.client, sluice.EnqueueOptions{Key: "k", OnDuplicate: rule}), rule)
		})
	}
}

// runsAlone checks that a job is a duplicate of the running one, or waits for it.
func (s *shop) runsAlone(running *sluice.Claim, got sluice.Receipt, rule sluice.OnDuplicate) {
	s.Helper()
	merges := rule == sluice.Coalesce || rule == sluice.Debounce
	if got.Duplicate == merges || !merges && got.ID != running.ID {
		s.Fatalf("receipt %+v, want a new job: %t; the running job is %s", got, merges, running.ID)
	}
	if merges {
		if job := s.state(got.ID); job.BlockedBy != running.ID {
			s.Errorf("the new job waits for %s, want %s", job.BlockedBy, running.ID)
		}
	}
	s.settle(sluice.EventComplete, running)
	if merges {
		s.goesNext(got.ID)
	}
	if next := s.add(s.client, sluice.EnqueueOptions{Key: "k"}); next.Duplicate {
		s.Errorf("the key is not free after the last job with it: %+v", next)
	}
}

// TestReplacementOfAJobThatEndsMeanwhileIsStored lets the job that holds the key end while a replacement waits for it.
func TestReplacementOfAJobThatEndsMeanwhileIsStored(t *testing.T) {
	for name, enqueue := range map[string]func(s *shop) (sluice.Receipt, error){
		"store": func(s *shop) (sluice.Receipt, error) {
			return s.client.Enqueue(s.Context(), newJob(sluice.EnqueueOptions{Key: "k", OnDuplicate: sluice.Replace}))
		},
		"function": func(s *shop) (got sluice.Receipt, err error) {
			var id [16]byte
			err = s.store.Pool().QueryRow(s.Context(), `select id, duplicate from sluice.enqueue(queue => 'payments', payload => '1', key => 'k', on_duplicate => 'replace')`).Scan(&id, &got.Duplicate)
			got.ID = id
			return got, err
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShop(t)
			old := s.add(s.client, sluice.EnqueueOptions{Key: "k"})
			if _, err := s.tx.Exec(t.Context(), "delete from sluice.live where id = $1", [16]byte(old.ID)); err != nil {
				t.Fatal(err)
			}
			done := make(chan error, 1)
			var got sluice.Receipt
			go func() {
				var err error
				got, err = enqueue(s)
				done <- err
			}()
			s.blocked(1)
			s.commit()
			if err := <-done; err != nil || got.Duplicate || got.ID == old.ID {
				t.Errorf("receipt %+v, %v; want a new job", got, err)
			}
		})
	}
}

// TestReplaceLocksTheRunningTwinFirst replaces a job beside a completion that has locked the running twin. The
// completion then lets the waiting twin go, so a replacement that had locked it would deadlock.
func TestReplaceLocksTheRunningTwinFirst(t *testing.T) {
	s := newShop(t)
	s.add(s.client, sluice.EnqueueOptions{Key: "k"})
	running := s.claim(1)[0]
	waiting := s.add(s.client, sluice.EnqueueOptions{Key: "k", OnDuplicate: sluice.Coalesce}).ID
	for _, lock := range []string{"set local deadlock_timeout = '10ms'", "select from sluice.live where id = '" + running.ID.String() + "' for update"} {
		if _, err := s.tx.Exec(t.Context(), lock); err != nil {
			t.Fatal(err)
		}
	}
	done := make(chan error, 1)
	var got sluice.Receipt
	go func() {
		var err error
		got, err = s.client.Enqueue(t.Context(), newJob(sluice.EnqueueOptions{Key: "k", OnDuplicate: sluice.Replace}))
		done <- err
	}()
	s.blocked(1)
	if err := postgres.CompleteTx(t.Context(), s.tx, running, nil); err != nil {
		t.Fatal(err)
	}
	s.commit()
	if err := <-done; err != nil || got.Replaced != waiting {
		t.Fatalf("receipt %+v, %v; want a replacement of %s", got, err, waiting)
	}
	s.goesNext(got.ID)
}

// TestSettlingDoesNotWaitForATransactionThatReplacesTheWaitingTwin settles a running job whose waiting twin an open transaction has
// replaced, among others of one batch.
func TestSettlingDoesNotWaitForATransactionThatReplacesTheWaitingTwin(t *testing.T) {
	for name, settle := range map[string]func(s *shop, claims []*sluice.Claim){
		"store": func(s *shop, claims []*sluice.Claim) { s.settle(sluice.EventComplete, claims...) },
		"transaction": func(s *shop, claims []*sluice.Claim) {
			err := pgx.BeginFunc(s.Context(), s.store.Pool(), func(tx pgx.Tx) error { return postgres.CompleteTx(s.Context(), tx, claims[0], nil) })
			if err != nil {
				s.Fatal(err)
			}
		},
		"function": func(s *shop, claims []*sluice.Claim) {
			if _, err := s.store.Pool().Exec(s.Context(), "select sluice.complete($1, $2)", [16]byte(claims[0].ID), [16]byte(claims[0].Token)); err != nil {
				s.Fatal(err)
			}
		},
	} {
		for _, end := range []string{"commits", "rolls back"} {
			t.Run(name+", which "+end, func(t *testing.T) {
				s := newShop(t)
				s.add(s.client, sluice.EnqueueOptions{Key: "k"})
				s.add(s.client, sluice.EnqueueOptions{Priority: 6})
				claims := s.claim(2)
				next := s.add(s.client, sluice.EnqueueOptions{Key: "k", OnDuplicate: sluice.Coalesce})
				later := s.add(s.client.Within(s.store.InTx(s.tx)), sluice.EnqueueOptions{Key: "k", OnDuplicate: sluice.Replace})
				if later.Replaced != next.ID {
					t.Fatalf("receipt %+v, want a replacement of %s", later, next.ID)
				}
				settle(s, claims)
				if state := s.state(claims[0].ID).State; state != sluice.StateCompleted {
					t.Errorf("the running job is %s", state)
				}
				if end == "commits" {
					s.commit()
					next = later
				} else if err := s.tx.Rollback(t.Context()); err != nil {
					t.Fatal(err)
				}
				if _, err := s.store.Repair(t.Context(), "upkeep"); err != nil {
					t.Fatal(err)
				}
				s.goesNext(next.ID)
			})
		}
	}
}
