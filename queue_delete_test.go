package sluice_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/sluice-queue/sluice"
)

func TestQueueThatHoldsSomethingIsNotDeletedAndSaysWhatToDo(t *testing.T) {
	t.Parallel()
	client, _ := newClient(t)
	receipt, err := client.Enqueue(t.Context(), sluice.NewJob{Queue: "mail", Payload: []byte(`1`)})
	if err != nil {
		t.Fatal(err)
	}
	full := (*sluice.QueueNotEmptyError)(nil)
	switch err := client.DeleteQueue(t.Context(), "mail", ada); {
	case !errors.As(err, &full), !errors.Is(err, sluice.ErrNotAllowed):
		t.Fatalf("delete a queue with a job: %v, want a QueueNotEmptyError", err)
	case full.Holds.Unfinished != 1, !strings.Contains(err.Error(), "sluice cancel --queue mail"):
		t.Errorf("it says %q", err)
	}
	if err := client.Cancel(t.Context(), []sluice.ID{receipt.ID}, ada); err != nil {
		t.Fatal(err)
	}
	if err := client.DeleteQueue(t.Context(), "mail", ada); !errors.As(err, &full) || full.Holds.Finished != 1 {
		t.Errorf("delete a queue with a finished job: %v, want a QueueNotEmptyError that counts it", err)
	}
	for name, refused := range map[string]struct {
		queue string
		act   sluice.Act
		want  error
	}{
		"without a reason": {"mail", sluice.Act{By: "ada"}, sluice.ErrInvalid},
		"by nobody":        {"mail", sluice.Act{Reason: "test"}, sluice.ErrInvalid},
		"of a bad name":    {"a b", ada, sluice.ErrInvalid},
		"that is unknown":  {"calls", ada, sluice.ErrNotFound},
	} {
		if err := client.DeleteQueue(t.Context(), refused.queue, refused.act); !errors.Is(err, refused.want) {
			t.Errorf("delete a queue %s: %v, want %v", name, err, refused.want)
		}
	}
}

func TestEmptyQueueIsDeleted(t *testing.T) {
	t.Parallel()
	client, _ := newClient(t)
	if _, err := client.EnsureQueue(t.Context(), "mail", sluice.DefaultSettings(), ada); err != nil {
		t.Fatal(err)
	}
	if err := client.DeleteQueue(t.Context(), "mail", ada); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Queue(t.Context(), "mail"); !errors.Is(err, sluice.ErrNotFound) {
		t.Errorf("a deleted queue: %v, want an ErrNotFound", err)
	}
}
