package postgres_test

import (
	"errors"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
)

// TestTheLargestFanInGoesOnWithTheEndOfItsLast enqueues a job that runs after sluice.MaxAfter jobs. When the last of
// them ends, the store must read them all, in steps and without upkeep.
func TestTheLargestFanInGoesOnWithTheEndOfItsLast(t *testing.T) {
	t.Parallel()
	store := openStore(t, migrated.Copy(t))
	client := sluice.NewClient(store, sluice.ClientOptions{})
	jobs := make([]sluice.NewJob, sluice.MaxAfter)
	last := sluice.NewJob{Queue: "last", Payload: []byte(`{}`)}
	for i := range jobs {
		jobs[i] = sluice.NewJob{Queue: "q", Payload: []byte(`{}`), EnqueueOptions: sluice.EnqueueOptions{ID: sluice.NewID()}}
		last.After = append(last.After, jobs[i].ID)
	}
	if _, err := client.EnqueueMany(t.Context(), append(jobs, last)); err != nil {
		t.Fatal(err)
	}
	claim := func(queue string) []*sluice.Claim {
		claimed, err := store.Claim(t.Context(), sluice.ClaimRequest{Queue: queue, Limit: 1000, Holder: "h:1:x", Lease: time.Hour, Token: sluice.NewToken()})
		if err != nil {
			t.Fatal(err)
		}
		return claimed.Jobs
	}
	ended := 0
	for claims := claim("q"); len(claims) > 0; claims = claim("q") {
		if early := claim("last"); len(early) > 0 {
			t.Fatalf("it runs after %d of %d", ended, len(jobs))
		}
		settlements := make([]sluice.Settlement, len(claims))
		for i, c := range claims {
			settlements[i] = sluice.Settlement{ID: c.ID, Token: c.Token, Holder: c.Holder, Event: sluice.EventComplete, Claim: c}
		}
		if errs, err := store.Settle(t.Context(), settlements); errors.Join(append(errs, err)...) != nil {
			t.Fatal(err)
		}
		ended += len(claims)
	}
	if got := len(claim("last")); ended != len(jobs) || got != 1 {
		t.Errorf("after %d ends, %d jobs may run, want 1", ended, got)
	}
}
