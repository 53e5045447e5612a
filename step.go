package sluice

import "context"

// Step is a part of the work that no call of a store or an engine shows.
type Step struct {
	// Name is one of the names below.
	Name string
	// Queue is the queue that it is for; empty: for none alone.
	Queue string
	// Claim is the job that is handled; nil for the other steps.
	Claim *Claim
}

// The steps.
const (
	// StepHandle: a worker's handler runs.
	StepHandle = "handle"
	// StepCycle: a dispatcher claims jobs of a queue, has their runs started, and settles them.
	StepCycle = "cycle"
	// StepForward: a forwarder claims jobs of a queue, and hands them to the centre.
	StepForward = "forward"
	// StepFollow: upkeep follows the runs of a queue.
	StepFollow = "follow"
	// StepUpkeep: upkeep does what is due.
	StepUpkeep = "upkeep"
)

// StepEnd tells how a step ended.
type StepEnd struct {
	// Jobs is how many it was about; 0: it found nothing to do.
	Jobs int
	Err  error
}

// StepObserver is a Store that is told of steps too; that of package observe is one.
type StepObserver interface {
	// BeginStep is called when a step begins. The step goes on with the context, and calls end once.
	BeginStep(ctx context.Context, step Step) (_ context.Context, end func(StepEnd))
}

// BeginStep tells a store that a step begins, if it is a StepObserver or decorates one. Workers, dispatchers, forwarders and upkeep
// call it; who writes one of their own may too.
func BeginStep(ctx context.Context, store Store, step Step) (_ context.Context, end func(StepEnd)) {
	if observer, observes := StoreAs[StepObserver](store); observes {
		return observer.BeginStep(ctx, step)
	}
	return ctx, func(StepEnd) {}
}
