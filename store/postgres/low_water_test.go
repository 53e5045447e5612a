package postgres_test

import (
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
)

// TestFullClaimsWalkFromTheFrontRarely claims as many jobs as it asks for. The durations of such claims hide what dead
// index entries cost, so the next claim begins at the mark. A job that this process puts behind the mark is found at once.
func TestFullClaimsWalkFromTheFrontRarely(t *testing.T) {
	t.Parallel()
	store := openStore(t, migrated.Copy(t))
	enqueueOf(t, store, 3, sluice.EnqueueOptions{}, "")
	if n := claimed(t, store, 2)[""]; n != 2 {
		t.Fatalf("claimed %d jobs, want 2", n)
	}
	if every := store.FrontEvery("q"); every < 100*time.Millisecond {
		t.Errorf("after a full claim, claims may walk from the front every %s, want 100ms or more", every)
	}
	enqueueOf(t, store, 1, sluice.EnqueueOptions{DueAt: time.Now().Add(-time.Hour)}, "")
	if n := claimed(t, store, 3)[""]; n != 2 {
		t.Errorf("claimed %d jobs, want the third and the one behind the mark", n)
	}
}
