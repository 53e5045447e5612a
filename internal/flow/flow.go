// Package flow is what every store does alike to keep limits: how many jobs a claim may take from a
// queue by its rate and by what is in flight, and how it shares them out among the queue's tenants.
package flow

import (
	"math"
	"time"

	"github.com/sluice-queue/sluice"
)

// Limited reports whether a queue has limits that a claim must keep.
func Limited(s sluice.Settings) bool { return !s.Rate.IsZero() || s.InFlightLimit > 0 }

// ByTenant reports whether the settings of a queue tell its tenants apart. Limits of tiers and tenants do so,
// too.
func ByTenant(s sluice.Settings) bool {
	return s.Fair || s.TenantCapacity > 0 || !s.TenantRate.IsZero()
}

// Bucket is a queue's tokens, one per job that may be claimed, as the store keeps them. The zero value
// is one that was never filled, and is full at its first filling.
type Bucket struct {
	Tokens   float64
	FilledAt time.Time
}

// Burst is how many jobs of a queue may start at once after a lull: a fiftieth of a window's, or what a tenth of a second
// gives, if that is more; and the burst, if that is more. It spreads the starts over the window of the rate, which is what
// bounds them. It is twice what a claim waits for: a claim that comes late finds the tokens of that time too, else the
// rate would lose a few hundredths.
func Burst(s sluice.Settings) float64 {
	share := math.Floor(math.Max(float64(s.Rate.Jobs)/50, s.Rate.PerSecond()/10))
	return math.Max(math.Min(math.Max(1, share), float64(s.Rate.Jobs)), float64(s.Burst))
}

// slack is how far clocks of one moment may be apart.
const slack = time.Second

// Filled gives the bucket of a queue as of now. A little before the last filling it fills nothing; if the clock was set
// back by more, filling begins anew from there.
func (b Bucket) Filled(s sluice.Settings, now time.Time) Bucket {
	return b.filled(s.Rate.PerSecond(), Burst(s), now)
}

// filled is Filled with so many tokens a second, and room for so many.
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

// SetBack is by how much a store's clock was set back since the last filling, at the least; 0: it was not.
func (b Bucket) SetBack(now time.Time) time.Duration {
	if by := b.FilledAt.Sub(now); !b.FilledAt.IsZero() && by > slack {
		return by
	}
	return 0
}

// whole is the number of tokens that are there in full. What a sum of fractions lacks by rounding
// does not count.
func (b Bucket) whole() int { return int(math.Floor(b.Tokens + 1e-9)) }

// untilUseful is how long it takes until a claim is worth its while: a twentieth of a second's tokens,
// and at least one.
func (b Bucket) untilUseful(s sluice.Settings) time.Duration {
	return b.until(float64(useful(s)), s)
}

func useful(s sluice.Settings) int {
	return int(math.Max(1, math.Min(Burst(s), math.Floor(s.Rate.PerSecond()/20))))
}

// until is how long it takes until so many tokens are there.
func (b Bucket) until(tokens float64, s sluice.Settings) time.Duration {
	return time.Duration(math.Ceil(math.Max(0, tokens-b.Tokens) / s.Rate.PerSecond() * 1e9))
}

// UntilNext is how long it takes until a filled bucket has a token; 0: it has one, or needs none.
func (b Bucket) UntilNext(s sluice.Settings) time.Duration {
	if s.Rate.IsZero() || b.whole() > 0 {
		return 0
	}
	return b.until(1, s)
}

// Room is what a queue's limits let a claim take.
type Room struct {
	// Jobs is how many.
	Jobs int
	// Wait is how long until there are tokens again; 0: the rate does not hold the claim back.
	Wait time.Duration
	// Full says that nothing more may be in flight until a job has ended.
	Full bool
}

// RoomFor says how many of limit jobs may be claimed, by a bucket that is filled, by what counts in the rate's window,
// and by how many jobs are in flight.
func RoomFor(limit int, s sluice.Settings, b Bucket, w *Window, now time.Time, inFlight int) Room {
	room := Room{Jobs: limit}
	if !s.Rate.IsZero() {
		if free := max(min(b.whole(), w.free(s, now)), 0); free < room.Jobs {
			room.Jobs = free
			room.Wait = max(b.Take(free).untilUseful(s), w.until(free+useful(s), s, now))
		}
	}
	if free := s.InFlightLimit - inFlight; s.InFlightLimit > 0 && free <= room.Jobs {
		room.Jobs, room.Full = max(free, 0), true
	}
	return room
}

// Answer is what a claim tells, but for the jobs: it asked for limit of them and got so many. How long
// it is until the next one is due is asked only if that matters.
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

// Take is the bucket after jobs were claimed.
func (b Bucket) Take(jobs int) Bucket {
	b.Tokens -= float64(jobs)
	return b
}
