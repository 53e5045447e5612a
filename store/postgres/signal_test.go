package postgres_test

import (
	"testing"
	"time"

	"github.com/sluice-queue/sluice/store/postgres"
)

// TestSignalsThatComeNowAndThenDoNotWait sends a few signals in a row, then one every 12 ms, and then as many as
// possible for 1 s.
func TestSignalsThatComeNowAndThenDoNotWait(t *testing.T) {
	t.Parallel()
	wait, now := postgres.Pace(), time.Now()
	for range 5 {
		if w := wait(now); w != 0 {
			t.Fatalf("one of the first five waits %s", w)
		}
	}
	if w := wait(now); w != 10*time.Millisecond {
		t.Errorf("the sixth waits %s", w)
	}
	now = now.Add(time.Second)
	for range 100 {
		now = now.Add(12 * time.Millisecond)
		if w := wait(now); w != 0 {
			t.Fatalf("one that comes now and then waits %s", w)
		}
	}
	sent := 0
	for range 1000 {
		now = now.Add(time.Millisecond)
		if wait(now) == 0 {
			sent++
		}
	}
	if sent < 100 || sent > 105 {
		t.Errorf("%d were sent in a second, want 100, and at most five more", sent)
	}
}
