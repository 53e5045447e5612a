package sluice_test

import (
	"math"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
)

func TestDefaultBackoffWaitsTwoFourEightUpToSixtySeconds(t *testing.T) {
	t.Parallel()
	backoff := sluice.DefaultSettings().Backoff
	for i, want := range []time.Duration{2, 4, 8, 16, 32, 60, 60, 60} {
		for range 100 {
			got := backoff.Delay(i + 1)
			if got < want*time.Second || got > (want+1)*time.Second {
				t.Fatalf("attempt %d waits %s, want %ds and up to 1s of jitter", i+1, got, want)
			}
		}
	}
}

func TestFullJitterDrawsFromZeroToTheWait(t *testing.T) {
	t.Parallel()
	backoff := sluice.Backoff{Base: time.Second, Factor: 2, Max: time.Minute, Jitter: time.Hour, FullJitter: true}
	low, high := time.Hour, time.Duration(0)
	for range 2000 {
		d := backoff.Delay(3)
		low, high = min(low, d), max(high, d)
	}
	if low > 200*time.Millisecond || high < 3800*time.Millisecond || high > 4*time.Second {
		t.Errorf("drawn from %s to %s, want about 0s to 4s", low, high)
	}
}

func TestBackoffNeverOverflows(t *testing.T) {
	t.Parallel()
	for name, b := range map[string]sluice.Backoff{
		"many attempts":  {Base: time.Second, Factor: 100, Max: time.Minute},
		"a huge factor":  {Base: time.Second, Factor: math.Inf(1), Max: time.Minute},
		"not a number":   {Base: 0, Factor: math.Inf(1), Max: time.Minute},
		"the zero value": {},
	} {
		for _, attempt := range []int{-5, 0, 1, 50, 10_000, math.MaxInt} {
			if d := b.Delay(attempt); d < 0 || d > time.Minute {
				t.Errorf("%s, attempt %d: waits %s", name, attempt, d)
			}
		}
	}
}
