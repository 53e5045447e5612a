package postgres

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/sluice-queue/sluice"
)

const (
	// quietTime is how long a process hears nothing before it asks whether it still hears. All listening processes
	// hear the question, so one question now and then is enough for any number of them.
	quietTime = time.Second
	// quietSpread is the largest random delay of a question, so that most processes hear another's question first.
	quietSpread = 200 * time.Millisecond
	// answerTime is how long a process waits to hear its own question before it counts as deaf.
	answerTime = 600 * time.Millisecond
	// deafTime is how long a connection may hear nothing before it is replaced.
	deafTime = 10 * time.Second
)

// hearing watches whether a listening connection hears notifications. A server or a pooler may swallow them without
// an error.
type hearing struct {
	store  *Store
	signal func(sluice.Signal)
	heard  chan struct{} // something was heard; room for one
	says   sluice.Hearing
}

func newHearing(s *Store, signal func(sluice.Signal)) *hearing {
	return &hearing{store: s, signal: signal, heard: make(chan struct{}, 1)}
}

// note records that something was heard.
func (h *hearing) note() {
	select {
	case h.heard <- struct{}{}:
	default:
	}
}

// tell reports how reliable signals are, if that has changed.
func (h *hearing) tell(says sluice.Hearing) {
	if h.says != says {
		h.says = says
		h.store.crowds.hear(says == sluice.HearsAll)
		h.signal(sluice.Signal{Hearing: says})
	}
}

// watch asks at once, and then whenever nothing was heard for a while, until ctx ends. If the connection has heard
// nothing for deafTime, watch calls quit.
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

// ask notifies all listening processes, without content. An error has the same effect as an unheard question.
func (h *hearing) ask(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	_ = exec(ctx, h.store.pool, aliveSQL)
}
