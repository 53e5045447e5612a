package sqlite_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
)

// TestClaimedJobsAreReadAlsoWhenNobodyCanRead lets the caller's queries occupy every read connection. A claim must
// still return its jobs.
func TestClaimedJobsAreReadAlsoWhenNobodyCanRead(t *testing.T) {
	t.Parallel()
	store := openStore(t, filepath.Join(t.TempDir(), "sluice.db"))
	client := sluice.NewClient(store, sluice.ClientOptions{})
	for range 3 {
		if _, err := client.Enqueue(t.Context(), sluice.NewJob{Queue: "q", Payload: []byte("1")}); err != nil {
			t.Fatal(err)
		}
	}
	for range 4 {
		rows, err := store.DB().QueryContext(t.Context(), "select 1 union all select 2")
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = rows.Close() }()
		if !rows.Next() {
			t.Fatal("there is nothing to read")
		}
	}
	claimed, err := store.Claim(t.Context(), sluice.ClaimRequest{Queue: "q", Limit: 10, Holder: "h", Lease: time.Minute, Token: sluice.NewToken()})
	if err != nil || len(claimed.Jobs) != 3 {
		t.Errorf("claimed %d jobs, %v", len(claimed.Jobs), err)
	}
}
