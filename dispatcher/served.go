package dispatcher

import (
	"context"
	"sync"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/presence"
)

// servedQueue is the state of one queue in a dispatcher.
type servedQueue struct {
	queue string
	wake  chan struct{}
	cycle sync.Mutex // one cycle at a time

	mu      sync.Mutex
	held    map[sluice.ID]*hold // claimed, and not settled yet
	refused error               // why nothing is dispatched although the engine is usable
	// refusedAt is when refused last changed. broken is why the engine is unusable; nil: the engine is usable.
	refusedAt time.Time
	broken    *presence.Condition
	guards    map[string]*guarded // retention of engines, by engine and namespace
	// workedAt is when an engine last gave a clear answer. asking is true during a request outside the cycles.
	workedAt time.Time
	asking   bool

	// Used by the cycle alone.
	breaker breaker
	paused  bool // whether the log last recorded the queue as paused
	// claiming and starting are the parts of the present cycle, as of [Cycle].
	claiming, starting time.Duration
}

func (l *servedQueue) idle() bool { return l.holds() == 0 }

// holds returns the number of held jobs.
func (l *servedQueue) holds() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.held)
}

func (l *servedQueue) hold(holds []*hold) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, h := range holds {
		l.held[h.claim.ID] = h
	}
}

func (l *servedQueue) let(h *hold) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.held, h.claim.ID)
}

// holding lists the held jobs that meet a condition.
func (l *servedQueue) holding(which func(*hold) bool) []*hold {
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

func (l *servedQueue) nudge() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// rest waits until the next cycle is due. The wait is never shorter than interval, even if jobs come in.
func (l *servedQueue) rest(ctx context.Context, wait, interval time.Duration) {
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

// breaker stops claims for an unusable engine, because the dispatcher could only hold the claimed jobs.
type breaker struct {
	openSince time.Time // zero: it is closed
	probeAt   time.Time
	worked    bool // the engine was usable at the last request
}

// asks reports whether the engine may be asked now.
func (b *breaker) asks(now time.Time) bool { return b.openSince.IsZero() || !now.Before(b.probeAt) }

func (b *breaker) open() bool { return !b.openSince.IsZero() }

// learn updates the breaker by the results of starts. turned is true if the breaker opened or closed.
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
