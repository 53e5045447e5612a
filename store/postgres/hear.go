package postgres

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/sluice-queue/sluice"
)

const (
	// quietTime is how long a process hears nothing until it asks whether it still hears. All that listen hear the
	// question, so that one in a while does for however many processes.
	quietTime = time.Second
	// quietSpread is how much later some of them ask, so that most hear another's question first.
	quietSpread = 200 * time.Millisecond
	// answerTime is how long it waits for its own question to come back, until it counts as deaf.
	answerTime = 600 * time.Millisecond
	// deafTime is how long a connection may hear nothing until another is made.
	deafTime = 10 * time.Second
)

// hearing watches whether a connection that listens hears what is notified. A server, or something on the way to it, may
// swallow that, and nothing else tells.
type hearing struct {
	store  *Store
	signal func(sluice.Signal)
	heard  chan struct{} // something was heard; room for one
	says   sluice.Hearing
}

func newHearing(s *Store, signal func(sluice.Signal)) *hearing {
	return &hearing{store: s, signal: signal, heard: make(chan struct{}, 1)}
}

// note notes that something was heard.
func (h *hearing) note() {
	select {
	case h.heard <- struct{}{}:
	default:
	}
}

// tell tells how far signals can be relied on, if that has changed.
func (h *hearing) tell(says sluice.Hearing) {
	if h.says != says {
		h.says = says
		h.store.crowds.hear(says == sluice.HearsAll)
		h.signal(sluice.Signal{Hearing: says})
	}
}

// watch asks at once, and whenever nothing was heard for a while, until ctx ends or it has heard nothing for long; then it
// calls quit.
func (h *hearing) watch(ctx context.Context, quit func()) {
	defer h.tell(sluice.HearsLess)
	last := time.Now()
	for wait := time.Duration(0); ; wait = quietTime + rand.N(quietSpread) {
		for h.hears(ctx, wait) {
			last, wait = time.Now(), quietTime+rand.N(quietSpread)
			h.tell(sluice.HearsAll)
		}
		if ctx.Err() != nil {
			return
		}
		h.ask(ctx)
		if h.hears(ctx, answerTime) {
			last = time.Now()
			h.tell(sluice.HearsAll)
			continue
		}
		h.tell(sluice.HearsLess)
		if time.Since(last) > deafTime {
			quit()
		}
	}
}

// hears reports whether something is heard within a time.
func (h *hearing) hears(ctx context.Context, within time.Duration) bool {
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-h.heard:
		return true
	case <-timer.C:
		return false
	}
}

// ask notifies everybody of nothing. What goes wrong is seen by that it is not heard.
func (h *hearing) ask(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	_ = exec(ctx, h.store.pool, aliveSQL)
}
