package observe

import (
	"context"
	"sync"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/step"
)

// openStep is a step under way. Workers begin one for each job, so steps are pooled: allocating and ending one
// would cost more than counting it.
type openStep struct {
	call      Call
	claim     [1]*sluice.Claim
	ctx       context.Context
	observers []Observer
	end       func(step.End)
}

var steps sync.Pool

func newStep() *openStep {
	if used, is := steps.Get().(*openStep); is {
		return used
	}
	s := new(openStep)
	s.end = s.ended
	return s
}

// BeginStep implements step.Observer.
func (s *store) BeginStep(ctx context.Context, of step.Step) (context.Context, func(step.End)) {
	under := newStep()
	under.call = Call{Kind: KindStep, Name: of.Name, Queue: of.Queue, Began: time.Now()}
	if of.Claim != nil {
		under.claim[0] = of.Claim
		under.call.Claims = under.claim[:]
	}
	under.observers = s.observers
	ctx = begin(ctx, s.observers, &under.call)
	under.ctx = ctx
	return ctx, under.end
}

// ended is called once.
func (s *openStep) ended(done step.End) {
	s.call.Jobs, s.call.Err = done.Jobs, done.Err
	end(s.ctx, s.observers, &s.call)
	s.call, s.claim, s.ctx, s.observers = Call{}, [1]*sluice.Claim{}, nil, nil
	steps.Put(s)
}
