package postgres_test

import (
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/timetest"
	"github.com/sluice-queue/sluice/limit"
)

// TestFunctionsGoOnWhenTheClockWasSetBack has functions alone claim under the rate of a shared limit. After the step, they take the
// whole window for used, once.
func TestFunctionsGoOnWhenTheClockWasSetBack(t *testing.T) {
	t.Parallel()
	store := openStore(t, migrated.Copy(t))
	client := sluice.NewClient(store, sluice.ClientOptions{})
	act := sluice.Act{By: "test"}
	_, err := limit.Change(t.Context(), store, "bank", act, func(l *limit.Limit) error {
		l.Rate = sluice.Rate{Jobs: 10, Per: time.Minute}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	settings := sluice.DefaultSettings()
	settings.Limits = "bank"
	if _, err := client.EnsureQueue(t.Context(), "q", settings, act); err != nil {
		t.Fatal(err)
	}
	claim := func(want int, when string) {
		t.Helper()
		if _, err := client.Enqueue(t.Context(), sluice.NewJob{Queue: "q", Payload: []byte("1")}); err != nil {
			t.Fatal(err)
		}
		var got int
		if err := store.Pool().QueryRow(t.Context(), "select count(*) from sluice.claim(queues => '{q}', holder => 'h:1:a')").Scan(&got); err != nil {
			t.Fatal(err)
		}
		if got != want {
			t.Errorf("%s, a claim gets %d jobs, want %d", when, got, want)
		}
	}
	claim(1, "before")
	run(t, store, timetest.AdvancePostgres(-24*time.Hour))
	claim(0, "right after the step")
	run(t, store, timetest.AdvancePostgres(50*time.Second))
	claim(0, "in the window after the step")
	run(t, store, timetest.AdvancePostgres(11*time.Second))
	claim(1, "after the window")
}
