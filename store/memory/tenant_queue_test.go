package memory_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/store/memory"
)

// TestTenantQueuesOfTenantsWhoWentAreForgotten has many tenants whose jobs have ended, and one tenant whose job is in
// flight.
func TestTenantQueuesOfTenantsWhoWentAreForgotten(t *testing.T) {
	t.Parallel()
	store := memory.New(memory.Options{})
	client := sluice.NewClient(store, sluice.ClientOptions{})
	settings := sluice.DefaultSettings()
	settings.Fair = true
	if _, err := client.EnsureQueue(t.Context(), "q", settings, sluice.Act{By: "test"}); err != nil {
		t.Fatal(err)
	}
	for n := range 10 {
		job := sluice.NewJob{Queue: "q", Payload: []byte("1"), EnqueueOptions: sluice.EnqueueOptions{Tenant: fmt.Sprint(n)}}
		if _, err := client.Enqueue(t.Context(), job); err != nil {
			t.Fatal(err)
		}
	}
	claimed, err := store.Claim(t.Context(), sluice.ClaimRequest{Queue: "q", Limit: 20, Holder: "h", Lease: time.Minute, Token: sluice.NewToken()})
	if err != nil || len(claimed.Jobs) != 10 {
		t.Fatalf("claimed %d jobs, %v", len(claimed.Jobs), err)
	}
	for _, c := range claimed.Jobs[1:] {
		if _, err := store.Settle(t.Context(), []sluice.Settlement{{ID: c.ID, Token: c.Token, Event: sluice.EventComplete}}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := store.Claim(t.Context(), sluice.ClaimRequest{Queue: "q", Limit: 20, Holder: "h", Lease: time.Minute, Token: sluice.NewToken()}); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Prune(t.Context(), "", 100); err != nil {
		t.Fatal(err)
	}
	if n := store.TenantQueues("q"); n != 1 {
		t.Errorf("%d tenant queues are left, want that of the job in flight", n)
	}
}
