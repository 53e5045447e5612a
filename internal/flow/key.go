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

// KeyFigures returns the figures that a limit has for each key, as those of a queue.
func KeyFigures(l limit.Limit) sluice.Settings {
	return sluice.Settings{Rate: l.Rate, Burst: l.Burst, Concurrency: l.Concurrency}
}

// KeyRoom returns how many jobs of a key a limit lets a claim take. The rate counts claims, by a bucket.
func KeyRoom(l limit.Limit, k Key, now time.Time) Room {
	room := Room{Jobs: math.MaxInt32}
	if k.ClosedUntil.After(now) {
		return Room{Wait: k.ClosedUntil.Sub(now)}
	}
	if figures := KeyFigures(l); !l.Rate.IsZero() {
		b := k.Bucket.Filled(figures, now)
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
	return b.FilledAt.Add(b.until(Burst(figures), figures))
}

// KeyUseOf says how much of a limit a key uses. The caller adds the waiting jobs.
func KeyUseOf(l limit.Limit, key string, k Key, now time.Time) limit.KeyUse {
	use := limit.KeyUse{Key: key, InFlight: min(k.InFlight, limit.MaxFigure)}
	if k.ClosedUntil.After(now) {
		use.ClosedUntil = k.ClosedUntil
	}
	figures := KeyFigures(l)
	use.Wait = k.Bucket.Filled(figures, now).UntilNext(figures)
	return use
}
