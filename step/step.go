// Package step names the parts of the work that no method of a store or an engine shows, and reports them to
// observers.
//
// Begin with [Begin]. Workers, dispatchers, forwarders and upkeep call it when a part of their work begins. A store
// that is an [Observer], such as the store of observe.Store, then measures the step.
package step

import (
	"context"

	"github.com/sluice-queue/sluice"
)

// Step is a part of the work, such as one run of a handler.
type Step struct {
	// Name is Handle, Cycle, Forward, Follow or Upkeep, or a name of your own.
	Name string
	// Queue is the queue that the step works on; empty: no single queue.
	Queue string
	// Claim is the job that a handler runs; nil for other steps.
	Claim *sluice.Claim
}

// Names of steps.
const (
	// Handle is one run of a worker's handler.
	Handle = "handle"
	// Cycle is one cycle of a dispatcher: it claims jobs of a queue, has the engine start their runs, and settles the jobs.
	Cycle = "cycle"
	// Forward is one cycle of a forwarder: it claims jobs of a queue and sends them to the central store.
	Forward = "forward"
	// Follow is one pass of upkeep along the runs of a queue.
	Follow = "follow"
	// Upkeep is one round of upkeep.
	Upkeep = "upkeep"
)

// End tells how a step ended.
type End struct {
	// Jobs counts the jobs that the step worked on; 0: the step found nothing to do.
	Jobs int
	// Err is the error of the step; nil: it succeeded.
	Err error
}

// Observer is a store that steps are reported to, such as the store of observe.Store.
type Observer interface {
	// BeginStep begins a step. The caller works under the returned context, and calls end once.
	BeginStep(ctx context.Context, step Step) (_ context.Context, end func(End))
}

// Begin reports the begin of a step to a store, if the store or a store that it decorates is an [Observer]. The
// caller works under the returned context, and calls end once. Without an Observer, Begin does nothing. A panic of an Observer
// leaves the step unreported, and goes no further: what is only watched must not stop.
//
// Call Begin in a worker or dispatcher of your own.
func Begin(ctx context.Context, store sluice.Store, step Step) (_ context.Context, end func(End)) {
	if observer, observes := sluice.StoreAs[Observer](store); observes {
		return begin(ctx, observer, step)
	}
	return ctx, func(End) {}
}

// begin reports the begin of a step to an observer that may panic.
func begin(ctx context.Context, observer Observer, step Step) (under context.Context, end func(End)) {
	under, end = ctx, func(End) {}
	defer func() { _ = recover() }()
	observed, told := observer.BeginStep(ctx, step)
	return observed, func(e End) {
		defer func() { _ = recover() }()
		told(e)
	}
}
