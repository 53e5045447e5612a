package dispatcher

import (
	"context"
	"sync"
	"time"

	"github.com/sluice-queue/sluice"
)

// lane is what a dispatcher knows of one queue.
type lane struct {
	queue string
	wake  chan struct{}
	cycle sync.Mutex // one cycle at a time

	mu      sync.Mutex
	held    map[sluice.ID]*hold // claimed, and not settled yet
	refused error               // why nothing is dispatched although the engine can be used,
	// refusedAt is since when that is so, and broken why the engine cannot be used; nil: it can.
	refusedAt time.Time
	broken    *sluice.Condition
	guards    map[string]*guarded // what is known of engines, by where they are
	// workedAt is when an engine last gave a clear answer, and asking says that it is asked again beside the cycles.
	workedAt time.Time
	asking   bool

	// Used by the cycle alone.
	breaker breaker
	paused  bool // the queue, as the log was told
}

func (l *lane) idle() bool { return l.holds() == 0 }

// holds is how many jobs are held.
func (l *lane) holds() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.held)
}

func (l *lane) hold(holds []*hold) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, h := range holds {
		l.held[h.claim.ID] = h
	}
}

func (l *lane) let(h *hold) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.held, h.claim.ID)
}

// holding lists what is held and of which a condition holds.
func (l *lane) holding(which func(*hold) bool) []*hold {
	l.mu.Lock()
	defer l.mu.Unlock()
	var found []*hold
	for _, h := range l.held {
		if which(h) {
			found = append(found, h)
		}
	}
	return found
}

func (l *lane) nudge() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// rest waits until the next cycle is due, which is not within the interval, whatever comes in.
func (l *lane) rest(ctx context.Context, wait, interval time.Duration) {
	timer := time.NewTimer(interval)
	defer timer.Stop()
	if interval > 0 {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
	}
	timer.Reset(max(wait-interval, 0))
	select {
	case <-ctx.Done():
	case <-l.wake:
	case <-timer.C:
	}
}

// breaker keeps a dispatcher from claiming for an engine that cannot be used: what is claimed then would only be held.
type breaker struct {
	openSince time.Time // zero: it is closed
	probeAt   time.Time
	worked    bool // the last time that the engine was asked, it could be used
}

// asks reports whether the engine may be asked now.
func (b *breaker) asks(now time.Time) bool { return b.openSince.IsZero() || !now.Before(b.probeAt) }

func (b *breaker) open() bool { return !b.openSince.IsZero() }

// learn takes in how starts went. It reports whether the breaker has opened or closed by that.
func (b *breaker) learn(worked, failed bool, now time.Time, probe time.Duration) (turned bool) {
	was := b.open()
	b.worked = worked
	switch {
	case worked:
		b.openSince = time.Time{}
	case failed:
		if !was {
			b.openSince = now
		}
		b.probeAt = now.Add(probe)
	}
	return was != b.open()
}
