package flow

import (
	"math"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/limit"
)

// Key is the state of one key of a limit that is per key, as a claim needs it.
type Key struct {
	InFlight    int
	Bucket      Bucket
	ClosedUntil time.Time
}

// Rewind makes the bucket of the rate be filled from now on if the clock was set back since, and reports whether it was. The caller
// stores the bucket, as a claim that gets no job stores none.
func (k *Key) Rewind(l limit.Limit, now time.Time) bool {
	if l.Rate.IsZero() || k.Bucket.SetBack(now) == 0 {
		return false
	}
	k.Bucket = k.Bucket.FilledAlone(KeyFigures(l), now)
	return true
}

// KeyFigures returns the figures that a limit has for each key, as those of a queue. A key has a bucket and no window, so the bucket
// keeps the rate as that of a tenant does: see pace. It holds as many units as Burst says.
func KeyFigures(l limit.Limit) sluice.Settings {
	figures := sluice.Settings{}
	if !l.Rate.IsZero() {
		figures = pace(sluice.EffectiveLimits{Rate: l.Rate, Burst: l.Burst})
	}
	figures.Concurrency = l.Concurrency
	return figures
}

// KeyRoom returns how many jobs of a key a limit lets a claim take. The rate counts claims, by a bucket.
func KeyRoom(l limit.Limit, k Key, now time.Time) Room {
	room := Room{Jobs: math.MaxInt32}
	if k.ClosedUntil.After(now) {
		return Room{Wait: k.ClosedUntil.Sub(now)}
	}
	if figures := KeyFigures(l); !l.Rate.IsZero() {
		b := k.Bucket.FilledAlone(figures, now)
		room.Jobs = b.whole()
		room.Wait = b.Take(room.Jobs).until(1, figures)
	}
	if free := l.Concurrency - k.InFlight; l.Concurrency > 0 && free <= room.Jobs {
		room.Jobs, room.Full = max(free, 0), true
	}
	return room
}

// KeyIdle returns from when on a bucket of a key says nothing, because it is full.
func KeyIdle(l limit.Limit, b Bucket) time.Time {
	figures := KeyFigures(l)
	return b.FilledAt.Add(b.until(float64(figures.Burst), figures))
}

// KeyUseOf says how much of a limit a key uses. The caller adds the waiting jobs.
func KeyUseOf(l limit.Limit, key string, k Key, now time.Time) limit.KeyUse {
	use := limit.KeyUse{Key: key, InFlight: min(k.InFlight, limit.MaxFigure)}
	if k.ClosedUntil.After(now) {
		use.ClosedUntil = k.ClosedUntil
	}
	figures := KeyFigures(l)
	use.Wait = k.Bucket.FilledAlone(figures, now).UntilNext(figures)
	return use
}

// Budget is what a claim may take of a limit that is per key or by cost: of one key, or of all its jobs together.
type Budget struct {
	limit  limit.Limit
	closed time.Duration // until it opens
	free   int
	bucket Bucket
}

// KeyBudget returns the budget of a claim.
func KeyBudget(l limit.Limit, k Key, now time.Time) *Budget {
	return &Budget{
		limit: l, closed: max(k.ClosedUntil.Sub(now), 0), free: max(l.Concurrency-k.InFlight, 0),
		bucket: k.Bucket.FilledAlone(KeyFigures(l), now),
	}
}

// UnitsOf returns what a job takes of a limit.
func UnitsOf(l limit.Limit, j *sluice.Job) int {
	if l.ByCost {
		return max(j.Cost, 1)
	}
	return 1
}

// Room says whether there is room for a job, or for what the claim has to wait. A job that takes more than the whole limit has room
// when nothing else counts.
func (b *Budget) Room(j *sluice.Job) Room {
	figures, units := KeyFigures(b.limit), UnitsOf(b.limit, j)
	needed := math.Min(float64(units), float64(figures.Burst))
	switch {
	case b.closed > 0:
		return Room{Wait: b.closed}
	case b.limit.Concurrency > 0 && b.free < min(units, b.limit.Concurrency):
		return Room{Full: true}
	case !b.limit.Rate.IsZero() && b.bucket.Tokens+1e-9 < needed:
		return Room{Wait: b.bucket.until(needed, figures)}
	}
	return Room{Jobs: 1}
}

// Take counts a claimed job.
func (b *Budget) Take(j *sluice.Job) {
	units := UnitsOf(b.limit, j)
	b.free -= units
	if !b.limit.Rate.IsZero() {
		b.bucket = b.bucket.Take(units)
	}
}

// Bucket returns what is left of the rate.
func (b *Budget) Bucket() Bucket { return b.bucket }
