package temporal

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/sluice-queue/sluice/engine"
)

// pass sends a call with a given answer through the gate.
func (g *gate) pass(t *testing.T, answer error) bool {
	t.Helper()
	began, err := g.enter(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return g.leave(began, answer)
}

func TestTheGateIsHalvedByBusyAnswersAndGrowsBackSlowly(t *testing.T) {
	t.Parallel()
	g := newGate(8)
	for _, want := range []int{4, 2, 1} {
		if g.pass(t, engine.ErrBusy) || g.limit != want {
			t.Fatalf("the bound is %d, want %d", g.limit, want)
		}
	}
	if !g.pass(t, engine.ErrBusy) || g.limit != 1 {
		t.Fatalf("the bound is %d, want it to stay 1, and to be told that asking is of no use", g.limit)
	}
	for limit := 1; limit < 8; limit++ {
		for range 10 * limit {
			if g.limit != limit {
				t.Fatalf("the bound is %d, want %d", g.limit, limit)
			}
			g.pass(t, nil)
		}
	}
	if g.limit != 8 {
		t.Fatalf("the bound is %d, want 8 again", g.limit)
	}
	for range 100 {
		g.pass(t, nil)
	}
	if g.limit != 8 {
		t.Errorf("the bound is %d, more than it may", g.limit)
	}
}

func TestCallsThatWereInFlightHalveTheGateOnce(t *testing.T) {
	t.Parallel()
	g := newGate(8)
	var began [8]int
	for i := range began {
		began[i], _ = g.enter(t.Context())
	}
	for _, b := range began {
		g.leave(b, engine.ErrBusy)
	}
	if g.limit != 4 || g.flying != 0 {
		t.Errorf("the bound is %d with %d in flight, want 4 and none", g.limit, g.flying)
	}
}

func TestNoMoreAreLetInThanTheGateAllows(t *testing.T) {
	t.Parallel()
	g := newGate(3)
	var mu sync.Mutex
	flying, most := 0, 0
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			began, err := g.enter(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			flying++
			most = max(most, flying)
			mu.Unlock()
			mu.Lock()
			flying--
			mu.Unlock()
			g.leave(began, nil)
		})
	}
	all.Wait()
	if most > 3 || g.flying != 0 || len(g.waiting) != 0 {
		t.Errorf("%d were in at once, %d are left in and %d waiting", most, g.flying, len(g.waiting))
	}
}

func TestACallThatNoLongerWaitsLeavesItsPlaceToOthers(t *testing.T) {
	t.Parallel()
	g := newGate(1)
	began, _ := g.enter(t.Context())
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan error)
	go func() {
		_, err := g.enter(ctx)
		gone <- err
	}()
	cancel()
	if err := <-gone; !errors.Is(err, context.Canceled) {
		t.Fatalf("the error is %v", err)
	}
	g.leave(began, nil)
	g.pass(t, nil)
	if g.flying != 0 {
		t.Errorf("%d are in flight, want none", g.flying)
	}
}
