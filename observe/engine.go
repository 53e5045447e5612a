package observe

import (
	"context"
	"time"

	"github.com/sluice-queue/sluice"
)

// engine is an engine whose calls are observed.
type engine struct {
	sluice.Engine
	name      string
	observers []Observer
}

// terminator is an observed engine that can also end runs by force.
type terminator struct {
	*engine
	inner sluice.Terminator
}

// Engine decorates an engine; name is the engine's name in the settings of queues. The result is a
// [sluice.Terminator] if the engine is one. Its method Unwrap returns the engine.
func Engine(inner sluice.Engine, name string, observers ...Observer) sluice.Engine {
	inner = sluice.GivenEngine(inner)
	e := &engine{inner, name, given(observers)}
	if byForce, can := inner.(sluice.Terminator); can {
		return &terminator{e, byForce}
	}
	return e
}

// Unwrap returns the decorated engine.
func (e *engine) Unwrap() sluice.Engine { return e.Engine }

func (e *engine) call(name string, target sluice.RunTarget) *Call {
	return &Call{Kind: KindEngine, Name: name, Engine: e.name, Queue: target.Queue, Began: time.Now()}
}

func (e *engine) Start(ctx context.Context, target sluice.RunTarget, runs []sluice.Run) []error {
	c := e.call("start", target)
	c.Runs, c.Jobs = runs, len(runs)
	ctx = begin(ctx, e.observers, c)
	c.Errs = e.Engine.Start(ctx, target, c.Runs)
	end(ctx, e.observers, c)
	return c.Errs
}

func (e *engine) Outcomes(ctx context.Context, target sluice.RunTarget, refs []string) ([]sluice.RunOutcome, error) {
	c := e.call("outcomes", target)
	c.Refs, c.Jobs = refs, len(refs)
	ctx = begin(ctx, e.observers, c)
	c.Outcomes, c.Err = e.Engine.Outcomes(ctx, target, refs)
	end(ctx, e.observers, c)
	return c.Outcomes, c.Err
}

func (e *engine) Ended(ctx context.Context, target sluice.RunTarget, since time.Time, next []byte) (page sluice.RunPage, err error) {
	c := e.call("ended", target)
	ctx = begin(ctx, e.observers, c)
	page, c.Err = e.Engine.Ended(ctx, target, since, next)
	c.Outcomes, c.Jobs = page.Runs, len(page.Runs)
	end(ctx, e.observers, c)
	return page, c.Err
}

func (e *engine) Cancel(ctx context.Context, target sluice.RunTarget, refs []string, reason string) []error {
	return e.endRuns(ctx, "cancel", target, refs, func(ctx context.Context) []error { return e.Engine.Cancel(ctx, target, refs, reason) })
}

func (t *terminator) Terminate(ctx context.Context, target sluice.RunTarget, refs []string, reason string) []error {
	return t.endRuns(ctx, "terminate", target, refs, func(ctx context.Context) []error { return t.inner.Terminate(ctx, target, refs, reason) })
}

func (e *engine) endRuns(ctx context.Context, name string, target sluice.RunTarget, refs []string, do func(context.Context) []error) []error {
	c := e.call(name, target)
	c.Refs, c.Jobs = refs, len(refs)
	ctx = begin(ctx, e.observers, c)
	c.Errs = do(ctx)
	end(ctx, e.observers, c)
	return c.Errs
}

func (e *engine) Check(ctx context.Context, target sluice.RunTarget) (report sluice.EngineReport, err error) {
	c := e.call("check", target)
	ctx = begin(ctx, e.observers, c)
	report, c.Err = e.Engine.Check(ctx, target)
	end(ctx, e.observers, c)
	return report, c.Err
}

func begin(ctx context.Context, observers []Observer, c *Call) context.Context {
	for _, o := range observers {
		ctx = o.Begin(ctx, c)
	}
	return ctx
}

// end calls the observers in reverse order, so that spans of observers nest.
func end(ctx context.Context, observers []Observer, c *Call) {
	c.Took = time.Since(c.Began)
	for i := len(observers) - 1; i >= 0; i-- {
		observers[i].End(ctx, c)
	}
}
