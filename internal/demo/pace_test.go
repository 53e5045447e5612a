package demo_test

import (
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/demo"
	"github.com/sluice-queue/sluice/store/memory"
)

// TestPaceFindsClaimsThatWereTooEarly claims without a rate, and checks against one.
func TestPaceFindsClaimsThatWereTooEarly(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 16, 0, 0, 0, time.UTC)
	store := memory.New(memory.Options{Now: func() time.Time { return now }})
	client := sluice.NewClient(store, sluice.ClientOptions{})
	settings := sluice.DefaultSettings()
	settings.Audit = sluice.AuditFull
	queue, err := client.EnsureQueue(t.Context(), "q", settings, sluice.Act{By: "test"})
	if err != nil {
		t.Fatal(err)
	}
	for range 12 {
		if _, err := client.Enqueue(t.Context(), sluice.NewJob{Queue: "q", Payload: []byte("1")}); err != nil {
			t.Fatal(err)
		}
	}
	for range 3 { // four at a time, one second apart
		if _, err := store.Claim(t.Context(), sluice.ClaimRequest{Queue: "q", Limit: 4, Holder: "h", Lease: time.Minute, Token: sluice.NewToken()}); err != nil {
			t.Fatal(err)
		}
		now = now.Add(time.Second)
	}
	for _, c := range []struct {
		rate  sluice.Rate
		burst int
		kept  bool
	}{{sluice.RatePerSecond(4), 0, true}, {sluice.RatePerSecond(4), 4, true}, {sluice.RatePerSecond(3), 0, false}, {sluice.RatePerSecond(1), 2, false}, {sluice.RatePerSecond(1), 12, true}, {sluice.Rate{Jobs: 8, Per: 3 * time.Second}, 3, false}} {
		queue.Settings.Rate, queue.Settings.Burst = c.rate, c.burst
		pace, err := demo.CheckPace(t.Context(), client, queue)
		if err != nil || pace.Claims != 12 {
			t.Fatalf("%d claims, %v", pace.Claims, err)
		}
		if kept := pace.Over == 0; kept != c.kept {
			t.Errorf("at %s with a burst of %d, %d claims were too early", c.rate, pace.Burst, pace.Over)
		}
	}
}
