package postgres_test

import (
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
)

// TestWindowBeginsAtTheEnqueueInATransaction enqueues in a transaction that began before. The window of the key begins at
// the enqueue, and a window that has passed since the transaction began refuses nothing.
func TestWindowBeginsAtTheEnqueueInATransaction(t *testing.T) {
	s := newShop(t)
	within := s.client.Within(s.store.InTx(s.tx))
	short := sluice.EnqueueOptions{Key: "old", KeyScope: sluice.ForWindow, KeyWindow: time.Millisecond}
	old := s.add(s.client, short)
	for passed := false; !passed; {
		if err := s.store.Pool().QueryRow(t.Context(), "select until < clock_timestamp() from sluice.job_key where key = 'old'").Scan(&passed); err != nil {
			t.Fatal(err)
		}
	}
	if got := s.add(within, short); got.Duplicate {
		t.Errorf("receipt %+v: the window of %s has passed", got, old.ID)
	}

	begin := func(key string, options sluice.EnqueueOptions) {
		t.Helper()
		var at, until time.Time
		if err := s.tx.QueryRow(t.Context(), "select clock_timestamp()").Scan(&at); err != nil {
			t.Fatal(err)
		}
		options.Key, options.KeyScope, options.KeyWindow = key, sluice.ForWindow, time.Hour
		if got := s.add(within, options); got.Duplicate {
			t.Errorf("receipt %+v, want a new job", got)
		}
		if err := s.tx.QueryRow(t.Context(), "select until from sluice.job_key where key = $1", key).Scan(&until); err != nil {
			t.Fatal(err)
		}
		if rest := until.Sub(at); rest < time.Hour {
			t.Errorf("the key %s is held for %s after the enqueue, want an hour", key, rest)
		}
	}
	begin("new", sluice.EnqueueOptions{})
	s.add(within, sluice.EnqueueOptions{Key: "replaced"})
	begin("replaced", sluice.EnqueueOptions{OnDuplicate: sluice.Replace})
}
