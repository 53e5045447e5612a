package sqlite_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
)

// TestLinesWakeHoweverFarTheTurnsAre begins where ten thousand million jobs were claimed by turns, and the step by
// which a line stands behind the mark is lost by rounding.
func TestLinesWakeHoweverFarTheTurnsAre(t *testing.T) {
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
		if _, err := store.DB().ExecContext(t.Context(), "update sluice_flow set turn = 1e10, tenant = 'z'"); err != nil {
			t.Fatal(err)
		}
	}
}
