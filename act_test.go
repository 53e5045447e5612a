package sluice_test

import (
	"errors"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/store/memory"
)

// TestAnUndoneRescheduleLeavesWhatSomebodyHasClaimed undoes reschedules of jobs that wait, that are claimed, and that have come
// back from a claim.
func TestAnUndoneRescheduleLeavesWhatSomebodyHasClaimed(t *testing.T) {
	t.Parallel()
	store := memory.New(memory.Options{})
	client := sluice.NewClient(store, sluice.ClientOptions{})
	ada := sluice.Act{By: "ada", Reason: "test"}
	var ids []sluice.ID
	for range 3 {
		receipt, err := client.Enqueue(t.Context(), sluice.NewJob{Queue: "q", Payload: []byte("1"), EnqueueOptions: sluice.EnqueueOptions{Delay: time.Hour}})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, receipt.ID)
	}
	before, err := client.Job(t.Context(), ids[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := client.RunNow(t.Context(), ids[1:], ada); err != nil {
		t.Fatal(err)
	}
	if err := client.Reschedule(t.Context(), ids[:1], time.Now().Add(48*time.Hour), ada); err != nil {
		t.Fatal(err)
	}
	claimed, err := store.Claim(t.Context(), sluice.ClaimRequest{Queue: "q", Limit: 2, Holder: "w", Lease: time.Minute, Token: sluice.NewToken()})
	if err != nil || len(claimed.Jobs) != 2 {
		t.Fatalf("claimed %d, %v", len(claimed.Jobs), err)
	}
	back := claimed.Jobs[0]
	if errs, err := store.Settle(t.Context(), []sluice.Settlement{{ID: back.ID, Token: back.Token, Holder: "w", Claim: back, Event: sluice.EventRelease, Delay: time.Minute}}); err != nil || errs[0] != nil {
		t.Fatal(errs, err)
	}
	err = client.UndoReschedule(t.Context(), append(ids, sluice.NewID()), ada)
	var batch *sluice.BatchError
	if !errors.As(err, &batch) || len(batch.Failed) != 3 || !errors.Is(batch.Failed[1], sluice.ErrNotAllowed) || !errors.Is(batch.Failed[2], sluice.ErrNotAllowed) || !errors.Is(batch.Failed[3], sluice.ErrNotFound) {
		t.Errorf("undone with %v, want the two that were claimed refused, and the one that nobody knows", err)
	}
	after, err := client.Job(t.Context(), ids[0])
	if err != nil || !after.DueAt.Equal(before.DueAt) {
		t.Errorf("it is due at %s, want %s; %v", after.DueAt, before.DueAt, err)
	}
}
