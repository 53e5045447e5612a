package postgres_test

import (
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/store/postgres"
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

// TestFirstSlowWalksDelayTheNextLittle gives a process slow first walks from the front, as a new connection makes them.
// Jobs behind the marks must not wait 20 times as long. After 3 walks the shortest one tells of dead entries.
func TestFirstSlowWalksDelayTheNextLittle(t *testing.T) {
	t.Parallel()
	const slow, usual = 400 * time.Millisecond, time.Millisecond
	for _, test := range []struct {
		name        string
		walks       []time.Duration
		looks       int
		claim, look time.Duration
	}{
		{"no walk", nil, 0, 0, 0},
		{"one slow walk", []time.Duration{slow}, 0, slow, slow},
		{"two slow walks", []time.Duration{slow, slow}, 0, slow, slow},
		{"one of two is slow", []time.Duration{slow, usual}, 0, usual, usual},
		{"one of three is slow", []time.Duration{slow, usual, usual}, 0, 20 * usual, 20 * usual},
		{"dead entries", []time.Duration{slow, slow, slow}, 0, 20 * slow, 20 * slow},
		{"one slow walk and two looks", []time.Duration{slow}, 2, slow, slow},
		{"one slow walk and many looks", []time.Duration{slow}, 3, slow, 20 * slow},
	} {
		if claim, look := postgres.RestsAfter(test.walks, test.looks); claim != test.claim || look != test.look {
			t.Errorf("%s: claims walk from the front every %s and looks every %s, want %s and %s", test.name, claim, look, test.claim, test.look)
		}
	}
}
