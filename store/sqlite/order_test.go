package sqlite_test

import (
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/store/sqlite"
)

func TestOrderIsKeptInTransactionsOfTheCaller(t *testing.T) {
	t.Parallel()
	store := open(t).Store.(*sqlite.Store)
	client := sluice.NewClient(store, sluice.ClientOptions{})
	if _, err := client.EnsureQueue(t.Context(), "q", sluice.DefaultSettings(), sluice.Act{By: "test"}); err != nil {
		t.Fatal(err)
	}
	ids := []sluice.ID{sluice.NewID(), sluice.NewID(), sluice.NewID()}
	err := store.Transact(t.Context(), func(tx sqlite.Tx) error {
		_, err := client.Within(store.InTx(tx)).EnqueueMany(t.Context(), []sluice.NewJob{
			{Queue: "q", Payload: []byte(`1`), EnqueueOptions: sluice.EnqueueOptions{ID: ids[2], After: ids[1:2]}},
			{Queue: "q", Payload: []byte(`1`), EnqueueOptions: sluice.EnqueueOptions{ID: ids[0], OrderKey: "o"}},
			{Queue: "q", Payload: []byte(`1`), EnqueueOptions: sluice.EnqueueOptions{ID: ids[1], OrderKey: "o"}},
		})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		claimed, err := store.Claim(t.Context(), sluice.ClaimRequest{Queue: "q", Limit: 9, Holder: "h", Lease: time.Minute, Token: sluice.NewToken()})
		if err != nil || len(claimed.Jobs) != 1 || claimed.Jobs[0].ID != id {
			t.Fatalf("claimed %d jobs, want %s alone: %v", len(claimed.Jobs), id, err)
		}
		err = store.Transact(t.Context(), func(tx sqlite.Tx) error { return sqlite.CompleteTx(t.Context(), tx, claimed.Jobs[0], nil) })
		if err != nil {
			t.Fatal(err)
		}
	}
}
