package stages_test

import (
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/apps/conversations/stages"
	"github.com/sluice-queue/sluice/schema"
	"github.com/sluice-queue/sluice/store/memory"
)

// TestJobsOfAStageInMemory enqueues and claims a job of a stage on a store in memory.
func TestJobsOfAStageInMemory(t *testing.T) {
	t.Parallel()
	store := memory.New(memory.Options{})
	client := sluice.NewClient(store, sluice.ClientOptions{PayloadChecker: schema.New()})
	if err := stages.Ensure(t.Context(), client, stages.Presets()); err != nil {
		t.Fatal(err)
	}
	job, err := stages.NewValidation(id, "1.0.0")
	if err != nil {
		t.Fatal(err)
	}
	first, err := client.Enqueue(t.Context(), job)
	if err != nil || first.Duplicate {
		t.Fatalf("the first: %+v, %v", first, err)
	}
	second, err := client.Enqueue(t.Context(), job)
	if err != nil || !second.Duplicate || second.ID != first.ID {
		t.Errorf("the second: %+v, %v", second, err)
	}
	request := sluice.ClaimRequest{Queue: stages.Validation.Name(), Limit: 10, Holder: "host:1:a", Lease: time.Minute, Token: sluice.NewToken()}
	claimed, err := store.Claim(t.Context(), request)
	if err != nil || len(claimed.Jobs) != 1 {
		t.Fatalf("claimed %+v, %v", claimed, err)
	}
	payload, err := stages.Validation.Decode(claimed.Jobs[0].Payload)
	if err != nil || payload.ConversationID != id {
		t.Errorf("payload %+v, %v", payload, err)
	}
	held, err := client.Job(t.Context(), first.ID)
	if err != nil || held.State != sluice.StateClaimed || held.Holder != "host:1:a" || held.LeaseUntil.IsZero() {
		t.Errorf("held %+v, %v", held, err)
	}
	request.Token = sluice.NewToken()
	if again, err := store.Claim(t.Context(), request); err != nil || len(again.Jobs) > 0 {
		t.Errorf("claimed again %+v, %v", again, err)
	}
}
