package httpapi

import (
	"testing"
	"time"
)

// Two requests read the clock, and the later one takes the lock first.
func TestARequestThatEntersLateCostsItsCallerNoOthers(t *testing.T) {
	t.Parallel()
	c := crowd{bounds: Bounds{Rate: 1000, Burst: 100, Concurrency: 100}}
	now := time.Now()
	for i, at := range []time.Time{now.Add(time.Second), now, now.Add(time.Second)} {
		leave, refused := c.enter("ada", false, at)
		if refused != nil {
			t.Fatalf("request %d: %v", i+1, refused)
		}
		leave()
	}
}
