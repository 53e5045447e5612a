package sluice

import (
	"math"
	"math/rand/v2"
	"time"
)

// Backoff says how long a failed job waits before its next attempt: Base × Factor^(attempt−1), at most Max, plus a
// random part of Jitter.
//
// [DefaultSettings] has the defaults below. The zero Backoff does not wait.
type Backoff struct {
	// Base is the wait after the first failed attempt. Default: 2 s.
	Base time.Duration
	// Factor multiplies the wait with each further attempt. Default: 2.
	Factor float64
	// Max is the longest wait, without Jitter. Default: 60 s.
	Max time.Duration
	// Jitter is the most that Delay adds to the wait at random. Default: 1 s.
	Jitter time.Duration
	// FullJitter draws the whole wait at random, from 0 to the computed wait, instead of adding Jitter. Default:
	// false.
	FullJitter bool
}

// Delay returns the wait after a failed attempt. The first attempt is 1.
func (b Backoff) Delay(attempt int) time.Duration {
	wait := b.wait(attempt)
	if b.FullJitter {
		return upTo(wait)
	}
	return wait + upTo(b.Jitter)
}

// wait returns the wait without any random part.
func (b Backoff) wait(attempt int) time.Duration {
	wait := float64(b.Base) * math.Pow(b.Factor, float64(max(attempt, 1)-1))
	if wait >= float64(b.Max) || math.IsNaN(wait) { // also where the power overflows
		return b.Max
	}
	return time.Duration(wait)
}

// upTo draws a random duration from 0 to d.
func upTo(d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	return rand.N(d + 1)
}
