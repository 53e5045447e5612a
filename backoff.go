package sluice

import (
	"math"
	"math/rand/v2"
	"time"
)

// Backoff says how long a failed job waits before its next attempt:
// Base × Factor^(attempt−1), at most Max, plus up to Jitter by chance.
type Backoff struct {
	// Base is the wait after the first failed attempt. Default 2 s.
	Base time.Duration
	// Factor multiplies the wait with each further attempt. Default 2.
	Factor float64
	// Max bounds the wait before the jitter is added. Default 60 s.
	Max time.Duration
	// Jitter is added by chance, from 0 up to this much. Default 1 s.
	Jitter time.Duration
	// FullJitter draws the whole wait from 0 to the computed one instead of adding Jitter.
	FullJitter bool
}

// Delay gives the wait after the given failed attempt, counted from 1.
func (b Backoff) Delay(attempt int) time.Duration {
	wait := b.wait(attempt)
	if b.FullJitter {
		return upTo(wait)
	}
	return wait + upTo(b.Jitter)
}

func (b Backoff) wait(attempt int) time.Duration {
	wait := float64(b.Base) * math.Pow(b.Factor, float64(max(attempt, 1)-1))
	if wait >= float64(b.Max) || math.IsNaN(wait) { // also where the power overflows
		return b.Max
	}
	return time.Duration(wait)
}

func upTo(d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	return rand.N(d + 1)
}
