package sqlite_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/batch"
	"github.com/sluice-queue/sluice/store/sqlite"
)

func TestABatchItsJobsAndItsEndCommitTogether(t *testing.T) {
	t.Parallel()
	store, client := newStore(t)
	importer, undone := sluice.Act{By: "importer"}, errors.New("undone")
	for _, want := range []error{undone, nil} {
		var b batch.Batch
		err := store.Transact(t.Context(), func(tx sqlite.Tx) (err error) {
			if b, err = batch.Open(t.Context(), store.InTx(tx), batch.Batch{Name: "import"}, importer); err != nil {
				return err
			}
			job := sluice.NewJob{Queue: "q", Payload: json.RawMessage(`{}`), EnqueueOptions: sluice.EnqueueOptions{Batch: b.ID}}
			if _, err := client.Within(store.InTx(tx)).Enqueue(t.Context(), job); err != nil {
				return err
			}
			if err := batch.Close(t.Context(), store.InTx(tx), b.ID, importer); err != nil {
				return err
			}
			if _, err := client.Within(store.InTx(tx)).Enqueue(t.Context(), job); !errors.Is(err, sluice.ErrNotAllowed) {
				t.Errorf("an enqueue after the end: %v, want ErrNotAllowed", err)
			}
			return want
		})
		if !errors.Is(err, want) {
			t.Fatal(err)
		}
		got, err := batch.Read(t.Context(), store, b.ID)
		switch {
		case want != nil && !errors.Is(err, sluice.ErrNotFound):
			t.Errorf("after the rollback: %v, want ErrNotFound", err)
		case want == nil && (err != nil || got.Total != 1 || got.State() != batch.StateClosed):
			t.Errorf("after the commit: %+v, %v, want 1 job in a closed batch", got, err)
		}
	}
}

func TestACompletionInTheCallersTransactionCounts(t *testing.T) {
	t.Parallel()
	store, client := newStore(t)
	b, err := batch.Open(t.Context(), store, batch.Batch{}, sluice.Act{By: "importer"})
	if err != nil {
		t.Fatal(err)
	}
	job := sluice.NewJob{Queue: "q", Payload: json.RawMessage(`{}`), EnqueueOptions: sluice.EnqueueOptions{Batch: b.ID}}
	if _, err := client.Enqueue(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	claim, undone := claimOne(t, store), errors.New("undone")
	for want, outcome := range []error{undone, nil} {
		err := store.Transact(t.Context(), func(tx sqlite.Tx) error {
			if err := sqlite.CompleteTx(t.Context(), tx, claim, nil); err != nil {
				return err
			}
			return outcome
		})
		if !errors.Is(err, outcome) {
			t.Fatal(err)
		}
		if got, err := batch.Read(t.Context(), store, b.ID); err != nil || got.Completed != want {
			t.Errorf("completed %d, %v, want %d", got.Completed, err, want)
		}
	}
}
