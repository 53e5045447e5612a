package worker_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/store/memory"
)

// TestSignalsOfJobsThatOthersTake sends signals of a queue that has no job when the claims come: other processes were
// faster. Only after many such claims does the worker ask the queue alone why it gives nothing.
func TestSignalsOfJobsThatOthersTake(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		signals int
		alone   bool
	}{{"a few", 8, false}, {"many", 12, true}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m := &mute{Store: memory.New(memory.Options{})}
				serveMute(t, m, 10)
				time.Sleep(10 * time.Second)
				claims, alone := m.claims.Load(), m.alone.Load()
				for range c.signals {
					(*m.say.Load())(sluice.Signal{Queue: muteQueue(3)})
					time.Sleep(50 * time.Millisecond)
				}
				if n := m.claims.Load() - claims; n != int64(c.signals) {
					t.Errorf("%d claims after %d signals", n, c.signals)
				}
				if n := m.alone.Load() - alone; n > 0 != c.alone {
					t.Errorf("%d of them from the queue alone", n)
				}
			})
		})
	}
}
