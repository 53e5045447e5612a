package postgres_test

import (
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/pgtest"
)

func TestLeasesThatRanOutInAStepOfTheServersClockGetASecondLook(t *testing.T) {
	t.Parallel()
	store := openStore(t, pgtest.NewDatabase(t))
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
	recovered() // it looks at the clock
	lives, _ := claimOne(t, store), claimOne(t, store)
	// As the clock is set an hour ahead, all that is stored is an hour older.
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
