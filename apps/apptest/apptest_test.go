package apptest_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/apps/apptest"
	"github.com/sluice-queue/sluice/store/memory"
)

func TestSomePassesOverJobsThatOthersMovedAndNothingElse(t *testing.T) {
	t.Parallel()
	client := sluice.NewClient(memory.New(memory.Options{}), sluice.ClientOptions{})
	if _, err := client.Enqueue(t.Context(), sluice.NewJob{Queue: "mail", Payload: []byte("1")}); err != nil {
		t.Fatal(err)
	}
	broken := errors.New("the disk is full")
	for name, c := range map[string]struct {
		act  func(ids []sluice.ID) error
		want error
	}{
		"another state": {func(ids []sluice.ID) error { return client.Delete(t.Context(), ids, sluice.Act{By: "test"}) }, nil},
		"a failure":     {func([]sluice.ID) error { return broken }, broken},
		"a failure of one": {func([]sluice.ID) error {
			return &sluice.BatchError{Total: 2, Failed: map[int]error{0: sluice.ErrNotFound, 1: broken}}
		}, broken},
	} {
		if err := apptest.Some(t.Context(), client, "mail", sluice.StateQueued, c.act); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

func TestUnseenNamesEventsThatTheAuditDoesNotTell(t *testing.T) {
	t.Parallel()
	client := sluice.NewClient(memory.New(memory.Options{}), sluice.ClientOptions{})
	receipt, err := client.Enqueue(t.Context(), sluice.NewJob{Queue: "mail", Payload: []byte("1")})
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Cancel(t.Context(), []sluice.ID{receipt.ID}, sluice.Act{By: "test"}); err != nil {
		t.Fatal(err)
	}
	unseen, err := apptest.Unseen(t.Context(), client, "mail", sluice.EventCancel, sluice.EventBury)
	if err != nil || !slices.Equal(unseen, []sluice.Event{sluice.EventBury}) {
		t.Errorf("unseen: %v, %v", unseen, err)
	}
}
