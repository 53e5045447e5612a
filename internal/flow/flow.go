// Package flow is the arithmetic of limits that all stores share. The package computes how many
// jobs a claim may take from a queue by rate and concurrency limit, and divides them among the
// queue's tenants.
//
// Begin with [RoomFor], which computes the room of a claim, and [Serve], which serves tenants in
// turns. A [Bucket] spreads starts over time, a [Window] keeps the rate exact, and a [TenantQueue] is a
// tenant's queue.
//
// Read next: docs/guide/limits.md and docs/guide/tenants.md, then claim.go of package memory, the
// simplest store.
package flow

import (
	"math"
	"time"

	"github.com/sluice-queue/sluice"
)

// Limited reports whether a queue has a rate or a concurrency limit, or shares limits.
func Limited(s sluice.Settings) bool {
	return !s.Rate.IsZero() || s.Concurrency > 0 || s.Limits != ""
}

// ByTenant reports whether the settings of a queue make it serve tenants in turns. Limits of tiers
// and tenants do so, too.
func ByTenant(s sluice.Settings) bool {
	return s.Fair || s.TenantConcurrency > 0 || !s.TenantRate.IsZero() || s.TenantMaxWaiting > 0
}

// Bucket is a queue's tokens, one per job that may be claimed, as the store keeps them. The zero
// value was never filled, and is full after its first filling.
type Bucket struct {
	Tokens   float64
	FilledAt time.Time
}

// Burst returns how many jobs of a queue may start at once after a pause. The result is the largest
// of 1, 1/50 of the rate's jobs and the jobs of 0.1 s, but at most the rate's jobs. A larger burst
// setting replaces it.
//
// So the starts spread over the window of the rate, which is the limit itself. Burst is twice the
// tokens for which a claim waits: a late claim also finds the tokens of the delay. Otherwise the
// rate would lose a few percent.
func Burst(s sluice.Settings) float64 {
	share := math.Floor(math.Max(float64(s.Rate.Jobs)/50, s.Rate.PerSecond()/10))
	return math.Max(math.Min(math.Max(1, share), float64(s.Rate.Jobs)), float64(s.Burst))
}

// slack is how far two clocks may differ at one moment.
const slack = time.Second

// haste is how much faster than the rate a bucket fills if its [Window] keeps the rate. A bucket that
// is full for a moment would otherwise lose those tokens for ever, and with them a part of the rate.
const haste = 1.02

// Filled returns, as of now, the bucket of a queue or limit that has a window, too. If now is
// up to 1 s before the last filling, Filled adds nothing. If the clock was set back by more, filling
// starts again from now.
func (b Bucket) Filled(s sluice.Settings, now time.Time) Bucket {
	return b.filled(Filling(s), Burst(s), now)
}

// Filling returns how many tokens per second a queue's bucket gets. With a burst it is the rate: then
// the window lets more jobs start, and the bucket keeps the rate.
func Filling(s sluice.Settings) float64 {
	if s.Burst > 0 {
		return s.Rate.PerSecond()
	}
	return haste * s.Rate.PerSecond()
}

// FilledAlone is Filled for a limit without a window, whose bucket keeps the rate: see [KeyFigures].
func (b Bucket) FilledAlone(s sluice.Settings, now time.Time) Bucket {
	return b.filled(s.Rate.PerSecond(), float64(s.Burst), now)
}

// filled is Filled with this many tokens per second, and room for this many.
func (b Bucket) filled(perSecond, most float64, now time.Time) Bucket {
	if b.FilledAt.IsZero() {
		return Bucket{most, now}
	}
	passed := now.Sub(b.FilledAt)
	switch {
	case passed < -slack:
		passed = 0
	case passed < 0:
		passed, now = 0, b.FilledAt
	}
	return Bucket{math.Min(most, b.Tokens+perSecond*passed.Seconds()), now}
}

// after returns a filled bucket some time later.
func (b Bucket) after(passed time.Duration, s sluice.Settings) Bucket {
	return Bucket{math.Max(b.Tokens, math.Min(Burst(s), b.Tokens+s.Rate.PerSecond()*passed.Seconds())), b.FilledAt.Add(passed)}
}

// SetBack returns how far, at least, a store's clock was set back since the last filling. 0: no
// step.
func (b Bucket) SetBack(now time.Time) time.Duration {
	if by := b.FilledAt.Sub(now); !b.FilledAt.IsZero() && by > slack {
		return by
	}
	return 0
}

// whole returns the number of full tokens, and ignores rounding errors.
func (b Bucket) whole() int { return int(math.Floor(b.Tokens + 1e-9)) }

// untilUseful returns how long until a claim is worth its cost: the tokens of 0.05 s, at least one.
func (b Bucket) untilUseful(s sluice.Settings) time.Duration {
	return b.until(float64(useful(s)), s)
}

func useful(s sluice.Settings) int {
	return int(math.Max(1, math.Min(Burst(s), math.Floor(s.Rate.PerSecond()/20))))
}

// until returns how long until the bucket holds this many tokens.
func (b Bucket) until(tokens float64, s sluice.Settings) time.Duration {
	return time.Duration(math.Ceil(math.Max(0, tokens-b.Tokens) / s.Rate.PerSecond() * 1e9))
}

// UntilNext returns how long until a filled bucket has a token. 0: it has one, or there is no rate.
func (b Bucket) UntilNext(s sluice.Settings) time.Duration {
	if s.Rate.IsZero() || b.whole() > 0 {
		return 0
	}
	return b.until(1, s)
}

// Room is the number of jobs that a queue's limits let a claim take.
type Room struct {
	// Jobs is the number of jobs.
	Jobs int
	// Wait is how long until the rate allows more jobs. 0: the rate does not hold the claim back.
	Wait time.Duration
	// Full means that the concurrency limit is reached: more jobs may be claimed only after one has
	// ended.
	Full bool
}

// RoomFor returns how many of limit jobs a claim may take, by a filled bucket, the rate's window
// and the jobs in flight.
func RoomFor(limit int, s sluice.Settings, b Bucket, w *Window, now time.Time, inFlight int) Room {
	return RoomWithin(limit, s, b, w, now, inFlight, 0)
}

// RoomWithin is RoomFor of a claim whose jobs may start later. It also gives out the places that
// become free within ahead: see [Ahead].
func RoomWithin(limit int, s sluice.Settings, b Bucket, w *Window, now time.Time, inFlight int, ahead time.Duration) Room {
	room := Room{Jobs: limit}
	if !s.Rate.IsZero() {
		tokens := b.after(ahead, s).whole()
		if free := max(min(tokens, w.free(s, now.Add(ahead))), 0); free < room.Jobs {
			room.Jobs = free
			room.Wait = max(b.Take(free).untilUseful(s), w.until(free+useful(s), s, now))
			room.Wait = max(room.Wait-max(ahead-margin, 0), time.Microsecond)
		}
	}
	if free := s.Concurrency - inFlight; s.Concurrency > 0 && free <= room.Jobs {
		room.Jobs, room.Full = max(free, 0), true
	}
	return room
}

// Answer returns the answer to a claim without its jobs. The claim asked for limit jobs and got
// this many. untilDue is called only if the answer depends on it.
func (r Room) Answer(jobs, limit int, untilDue func() (time.Duration, error)) (sluice.Claimed, error) {
	out := sluice.Claimed{NextDue: -1}
	if jobs > 0 {
		out.Limited = jobs == r.Jobs && r.Jobs < limit
		out.Full = out.Limited && r.Full
		if out.Limited && !r.Full {
			out.NextDue = r.Wait
		}
		return out, nil
	}
	due, err := untilDue()
	if err != nil || due < 0 || r.Jobs > 0 {
		out.NextDue = due
		return out, err
	}
	out.Limited = due == 0
	out.Full = out.Limited && r.Full
	if !out.Full {
		out.NextDue = max(due, r.Wait)
	}
	return out, nil
}

// Take returns the bucket after jobs were claimed.
func (b Bucket) Take(jobs int) Bucket {
	b.Tokens -= float64(jobs)
	return b
}
