package temporal

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/sluice-queue/sluice/engine"
)

// gate limits how many calls are in flight at once. A busy server halves the limit. The limit grows by one
// after 10 × the limit calls in a row without such an answer.
type gate struct {
	mu      sync.Mutex
	most    int
	limit   int
	flying  int
	well    int
	cut     int
	waiting []chan struct{}
}

func newGate(most int) *gate { return &gate{most: most, limit: most} }

// enter waits for a place. The number names the limit under which the call began.
func (g *gate) enter(ctx context.Context) (int, error) {
	g.mu.Lock()
	if err := ctx.Err(); err != nil {
		g.mu.Unlock()
		return 0, err
	}
	if g.flying < g.limit && len(g.waiting) == 0 {
		defer g.mu.Unlock()
		g.flying++
		return g.cut, nil
	}
	turn := make(chan struct{})
	g.waiting = append(g.waiting, turn)
	g.mu.Unlock()
	select {
	case <-turn:
		g.mu.Lock()
		defer g.mu.Unlock()
		return g.cut, nil
	case <-ctx.Done():
		g.giveUp(turn)
		return 0, ctx.Err()
	}
}

// giveUp removes a waiting call, or gives back the place that it got meanwhile.
func (g *gate) giveUp(turn chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i, other := range g.waiting {
		if other == turn {
			g.waiting = append(g.waiting[:i], g.waiting[i+1:]...)
			return
		}
	}
	g.flying--
	g.wake()
}

// leave gives a place back and adapts the limit to the answer. The result is true if the server was busy
// although nothing else was in flight, so that further calls are useless now.
func (g *gate) leave(began int, err error) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.flying--
	defer g.wake()
	if !errors.Is(err, engine.ErrBusy) {
		g.grow(err)
		return false
	}
	g.well = 0
	if g.limit == 1 {
		return true
	}
	if began == g.cut { // calls that began under the old limit say nothing about the new one
		g.limit = max(g.limit/2, 1)
		g.cut++
	}
	return false
}

func (g *gate) grow(err error) {
	if g.limit == g.most || errors.Is(err, engine.ErrUnavailable) {
		return
	}
	g.well++
	if g.well >= 10*g.limit {
		g.limit++
		g.well = 0
	}
}

// wake admits waiting calls while there is room. The caller holds the lock.
func (g *gate) wake() {
	for len(g.waiting) > 0 && g.flying < g.limit {
		close(g.waiting[0])
		g.waiting = g.waiting[1:]
		g.flying++
	}
}

// errNotAsked marks items that were not sent to the server because of an earlier answer.
var errNotAsked = fmt.Errorf("%w because of the answer to another", engine.ErrNotAsked)

// each makes a call for each of n items, several at once, and returns their errors. each stops early if the
// server lacks the target, or is busy with nothing else in flight. The same holds if g.most calls in a row get
// no answer. A server that hangs then does not cost a deadline for each of 1,000 items.
func (g *gate) each(ctx context.Context, n int, call func(ctx context.Context, i int) error) []error {
	answers := make([]error, n)
	round := round{patience: g.most}
	var callers sync.WaitGroup
	for range min(n, g.most) {
		callers.Go(func() {
			for i := round.next(n); i >= 0; i = round.next(n) {
				answers[i] = g.one(ctx, &round, i, call)
			}
		})
	}
	callers.Wait()
	return answers
}

func (g *gate) one(ctx context.Context, r *round, i int, call func(ctx context.Context, i int) error) error {
	began, err := g.enter(ctx)
	if err != nil {
		return fmt.Errorf("%w: %w: %w", engine.ErrNotAsked, engine.ErrUnavailable, err)
	}
	if why := r.over(); why != nil {
		g.leave(began, why)
		return why
	}
	err = call(ctx, i)
	r.learn(err, g.leave(began, err))
	return err
}

// round is one use of each.
type round struct {
	mu       sync.Mutex
	asked    int
	silent   int
	patience int
	why      error
}

// next returns the index of the next item, -1 after the last.
func (r *round) next(n int) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.asked == n {
		return -1
	}
	r.asked++
	return r.asked - 1
}

// over returns why no more calls are to be made; nil: go on.
func (r *round) over() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.why
}

func (r *round) learn(err error, useless bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !errors.Is(err, engine.ErrUnavailable) {
		r.silent = 0
	} else {
		r.silent++
	}
	if r.why == nil && (useless || errors.Is(err, engine.ErrTarget) || r.silent >= r.patience) {
		r.why = fmt.Errorf("%w: %w", errNotAsked, err)
	}
}

// The tries and the first pause for a busy server; see patiently.
const (
	patientTries = 5
	patientPause = 100 * time.Millisecond
)

// patiently repeats a read-only call while the server is busy, with growing pauses. If one refusal spoiled a
// whole round, a server that refuses one call in a hundred would never let a follower finish.
func patiently(ctx context.Context, call func() error) error {
	pause := patientPause
	for try := 1; ; try++ {
		err := call()
		if try == patientTries || !errors.Is(err, engine.ErrBusy) {
			return err
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
			pause *= 2
		case <-ctx.Done():
			timer.Stop()
			return err
		}
	}
}
