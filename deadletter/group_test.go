package deadletter_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/deadletter"
	"github.com/sluice-queue/sluice/store/memory"
)

// bury stores dead letters of a queue, one for each error, of two tenants in turns.
func bury(t *testing.T, store sluice.Store, queue string, texts ...string) {
	t.Helper()
	client := sluice.NewClient(store, sluice.ClientOptions{})
	for i, text := range texts {
		options := sluice.EnqueueOptions{Tenant: fmt.Sprintf("t%d", i%2)}
		if _, err := client.Enqueue(t.Context(), sluice.NewJob{Queue: queue, Payload: []byte(`1`), EnqueueOptions: options}); err != nil {
			t.Fatal(err)
		}
		claimed, err := store.Claim(t.Context(), sluice.ClaimRequest{Queue: queue, Limit: 1, Holder: "h", Lease: time.Minute, Token: sluice.NewToken()})
		if err != nil || len(claimed.Jobs) != 1 {
			t.Fatalf("claimed %d: %v", len(claimed.Jobs), err)
		}
		c := claimed.Jobs[0]
		end := sluice.Settlement{ID: c.ID, Token: c.Token, Event: sluice.EventBury, Error: text}
		if errs, err := store.Settle(t.Context(), []sluice.Settlement{end}); errors.Join(append(errs, err)...) != nil {
			t.Fatal(errs, err)
		}
	}
}

func TestDeadLettersOfOneCauseAreAGroupOfTheirQueue(t *testing.T) {
	t.Parallel()
	store := memory.New(memory.Options{})
	bury(t, store, "mail", "no answer after 3s", "no answer after 5s", "no answer after 7s", "panic: nil")
	bury(t, store, "payments", "no answer after 3s")
	found, err := deadletter.Read(t.Context(), store, nil, 0)
	if err != nil || found.Compared != 5 || found.More || len(found.Groups) != 3 {
		t.Fatalf("found %+v, %v, want 3 groups of 5 dead letters, and no more", found, err)
	}
	first := found.Groups[0]
	if first.Queue != "mail" || first.Count != 3 || first.Tenants != 2 || first.SampleError != "no answer after 7s" ||
		first.Fingerprint != deadletter.Fingerprint("mail", "no answer after 1s") || first.Last.Before(first.First) || first.Hours[deadletter.Hours-1] != 3 {
		t.Errorf("the largest group is %+v", first)
	}
	found, err = deadletter.Read(t.Context(), store, []string{"payments"}, 0)
	if err != nil || len(found.Groups) != 1 || found.Groups[0].Queue != "payments" {
		t.Errorf("of one queue: %+v, %v", found, err)
	}
	bury(t, store, "mail.welcome", "no answer after 3s")
	found, err = deadletter.Read(t.Context(), store, []string{"mail.*", "mail.welcome"}, 0)
	if err != nil || found.Compared != 1 || len(found.Groups) != 1 || found.Groups[0].Queue != "mail.welcome" {
		t.Errorf("of a group of queues: %+v, %v", found, err)
	}
}

func TestGroupingStopsAtItsLimitInTurnsFromTheQueues(t *testing.T) {
	t.Parallel()
	store := memory.New(memory.Options{})
	for _, queue := range []string{"mail", "payments"} {
		bury(t, store, queue, "a", "b", "c")
	}
	found, err := deadletter.Read(t.Context(), store, nil, 4)
	if err != nil || found.Compared != 4 || !found.More {
		t.Errorf("%+v, %v; want 4 looked at, and more", found, err)
	}
}
