package observe

import (
	"context"
	"sync"
	"time"

	"github.com/sluice-queue/sluice"
)

// step is a step under way. Workers begin one for each job, so steps are pooled: allocating and ending one
// would cost more than counting it.
type step struct {
	call      Call
	claim     [1]*sluice.Claim
	ctx       context.Context
	observers []Observer
	end       func(sluice.StepEnd)
}

var steps sync.Pool

func newStep() *step {
	if used, is := steps.Get().(*step); is {
		return used
	}
	s := new(step)
	s.end = s.ended
	return s
}

// BeginStep implements sluice.StepObserver.
func (s *store) BeginStep(ctx context.Context, of sluice.Step) (context.Context, func(sluice.StepEnd)) {
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
func (s *step) ended(done sluice.StepEnd) {
	s.call.Jobs, s.call.Err = done.Jobs, done.Err
	end(s.ctx, s.observers, &s.call)
	s.call, s.claim, s.ctx, s.observers = Call{}, [1]*sluice.Claim{}, nil, nil
	steps.Put(s)
}
