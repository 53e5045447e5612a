package postgres_test

import (
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/store/postgres"
)

func TestLeasesThatRanOutInAStepOfTheServersClockGetASecondLook(t *testing.T) {
	t.Parallel()
	store := openStore(t, migrated.Copy(t))
	client := sluice.NewClient(store, sluice.ClientOptions{})
	for range 2 {
		if _, err := client.Enqueue(t.Context(), sluice.NewJob{Queue: "q", Payload: []byte("1")}); err != nil {
			t.Fatal(err)
		}
	}
	recovered := func() int {
		t.Helper()
		out, err := store.Recover(t.Context(), "q", 10, "upkeep")
		if err != nil {
			t.Fatal(err)
		}
		return out.Requeued + out.Buried
	}
	recovered() // makes the store read the clock
	lives, _ := claimOne(t, store), claimOne(t, store)
	// When the clock is set ahead by 1 h, everything stored becomes 1 h older.
	if _, err := store.Pool().Exec(t.Context(), "update sluice.live set lease_until = lease_until - interval '1 hour'"); err != nil {
		t.Fatal(err)
	}
	store.StepServer(time.Hour)
	for range 2 {
		if n := recovered(); n > 0 {
			t.Fatalf("%d jobs are recovered in the moment of the step", n)
		}
	}
	if lost, err := store.Renew(t.Context(), []sluice.Renewal{{ID: lives.ID, Token: lives.Token, Lease: time.Minute, Queue: "q"}}); err != nil || len(lost) > 0 {
		t.Fatalf("lost %v, %v", lost, err)
	}
	store.EndSecondLook()
	if n := recovered(); n != 1 {
		t.Errorf("%d jobs are recovered after the step, want that of the holder that died alone", n)
	}
}

// TestRateIsKeptThroughAStepOfTheServersClock sets the server's clock forward. Recent starts then look old, and the
// token bucket looks full.
func TestRateIsKeptThroughAStepOfTheServersClock(t *testing.T) {
	t.Parallel()
	bench := openAt(t, migrated.Copy(t))
	client := sluice.NewClient(bench.Store, sluice.ClientOptions{})
	settings := sluice.DefaultSettings()
	settings.Rate, settings.Burst = sluice.Rate{Jobs: 1, Per: time.Hour}, 9
	if _, err := client.EnsureQueue(t.Context(), "q", settings, sluice.Act{By: "test"}); err != nil {
		t.Fatal(err)
	}
	for range 50 {
		if _, err := client.Enqueue(t.Context(), sluice.NewJob{Queue: "q", Payload: []byte("1")}); err != nil {
			t.Fatal(err)
		}
	}
	claim := func(from sluice.Store) int {
		t.Helper()
		out, err := from.Claim(t.Context(), sluice.ClaimRequest{Queue: "q", Limit: 20, Holder: "h:1:x", Lease: time.Minute, Token: sluice.NewToken()})
		if err != nil {
			t.Fatal(err)
		}
		return len(out.Jobs)
	}
	started := claim(bench.Store) + claim(bench.Other)
	bench.Advance(20 * time.Hour) // everything stored becomes 20 h older
	for _, process := range []sluice.Store{bench.Store, bench.Other} {
		process.(*postgres.Store).StepWindows(20 * time.Hour)
	}
	for range 2 {
		if started += claim(bench.Other) + claim(bench.Store); started > 10 {
			t.Errorf("%d start in an hour, and 10 may", started)
		}
	}
	bench.Advance(2 * time.Hour) // these hours really pass
	if n := claim(bench.Store); n != 9 {
		t.Errorf("%d start when the hour is over, want what the bucket holds, 9", n)
	}
}
