package sqlite_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
)

// TestTenantQueuesWakeHoweverFarTheTurnsAre begins where 10,000,000,000 jobs were claimed by turns. There, rounding
// loses the step by which a tenant queue stands behind the mark.
func TestTenantQueuesWakeHoweverFarTheTurnsAre(t *testing.T) {
	t.Parallel()
	store := openStore(t, filepath.Join(t.TempDir(), "sluice.db"))
	client := sluice.NewClient(store, sluice.ClientOptions{})
	settings := sluice.DefaultSettings()
	settings.Fair = true
	if _, err := client.EnsureQueue(t.Context(), "q", settings, sluice.Act{By: "test"}); err != nil {
		t.Fatal(err)
	}
	for _, tenant := range []string{"z", "a"} {
		job := sluice.NewJob{Queue: "q", Payload: []byte("1"), EnqueueOptions: sluice.EnqueueOptions{Tenant: tenant}}
		if _, err := client.Enqueue(t.Context(), job); err != nil {
			t.Fatal(err)
		}
		claimed, err := store.Claim(t.Context(), sluice.ClaimRequest{Queue: "q", Limit: 1, Holder: "h", Lease: time.Minute, Token: sluice.NewToken()})
		if err != nil || len(claimed.Jobs) != 1 {
			t.Errorf("claimed %d jobs of %s, %v", len(claimed.Jobs), tenant, err)
		}
		if _, err := store.DB().ExecContext(t.Context(), "update sluice_flow set virtual_start = 1e10, tenant = 'z'"); err != nil {
			t.Fatal(err)
		}
	}
}

// TestManyJobsAreMovedAtOnce has more jobs than one claim moves into or out of tenant queues. The only due job comes
// last, and the claims before must say that they left jobs.
func TestManyJobsAreMovedAtOnce(t *testing.T) {
	t.Parallel()
	for name, into := range map[string]bool{"into tenant queues": true, "out of tenant queues": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := openStore(t, filepath.Join(t.TempDir(), "sluice.db"))
			client := sluice.NewClient(store, sluice.ClientOptions{})
			settings := sluice.DefaultSettings()
			settings.Fair = !into
			if _, err := client.EnsureQueue(t.Context(), "q", settings, sluice.Act{By: "test"}); err != nil {
				t.Fatal(err)
			}
			var jobs []sluice.NewJob
			for range 2500 {
				jobs = append(jobs, sluice.NewJob{Queue: "q", Payload: []byte("1"), EnqueueOptions: sluice.EnqueueOptions{Priority: 1, Delay: time.Hour}})
			}
			jobs = append(jobs, sluice.NewJob{Queue: "q", Payload: []byte("1"), EnqueueOptions: sluice.EnqueueOptions{Priority: 9}})
			if _, err := client.EnqueueMany(t.Context(), jobs); err != nil {
				t.Fatal(err)
			}
			_, err := client.ChangeSettings(t.Context(), "q", sluice.Act{By: "test"}, func(s *sluice.Settings) error {
				s.Fair = into
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			for got := 0; got == 0; {
				claimed, err := store.Claim(t.Context(), sluice.ClaimRequest{Queue: "q", Limit: 1, Holder: "h", Lease: time.Minute, Token: sluice.NewToken()})
				if got = len(claimed.Jobs); err != nil || got == 0 && claimed.NextDue != 0 {
					t.Fatalf("claimed %d, the next in %s, %v", got, claimed.NextDue, err)
				}
			}
		})
	}
}
