package memory_test

import (
	"sync"
	"testing"
	"time"

	"github.com/sluice-queue/sluice/store/memory"
	"github.com/sluice-queue/sluice/store/storetest"
)

// clock is one that tests turn.
type clock struct {
	mu     sync.Mutex
	passed time.Duration
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.passed).UTC().Truncate(time.Microsecond)
}

func (c *clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.passed += d
}

func open(*testing.T) storetest.Bench {
	c := &clock{}
	store := memory.New(memory.Options{Now: c.Now})
	return storetest.Bench{Store: store, Other: store, Now: c.Now, Advance: c.Advance}
}

func TestMemoryObeysTheRules(t *testing.T) {
	t.Parallel()
	storetest.Run(t, open)
}
