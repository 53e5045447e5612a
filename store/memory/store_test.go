package memory_test

import (
	"flag"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/sluice-queue/sluice/store/memory"
	"github.com/sluice-queue/sluice/store/storetest"
)

// clock is a clock that tests move.
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

// TestMain runs many random sequences, which cost little in memory. The race detector makes a sequence 6 times as slow
// and sees only one goroutine in it. So few sequences run with the race detector.
func TestMain(m *testing.M) {
	if err := flag.Set("rapid.checks", sequences); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

func open(*testing.T) storetest.Bench {
	c := &clock{}
	store := memory.New(memory.Options{Now: c.Now})
	setColumn := func(column string, value any) { store.SetColumn("payments", column, value) }
	return storetest.Bench{Store: store, Other: store, Now: c.Now, Advance: c.Advance, SetColumn: setColumn}
}

func TestMemoryObeysTheRules(t *testing.T) {
	t.Parallel()
	storetest.Run(t, open)
}

func TestMemoryAgreesWithTheModel(t *testing.T) {
	t.Parallel()
	storetest.Model(t, open)
}

func TestMemoryAgreesWithTheModelOfLimits(t *testing.T) {
	t.Parallel()
	storetest.ModelOfLimits(t, open)
}

func TestMemoryKeepsLimitsAndGetsNothingStuck(t *testing.T) {
	t.Parallel()
	storetest.Turns(t, open)
}
