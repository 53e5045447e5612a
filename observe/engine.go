package observe

import (
	"context"
	"time"

	"github.com/sluice-queue/sluice/engine"
)

// observedEngine is an engine whose calls are observed.
type observedEngine struct {
	engine.Engine
	name      string
	observers []Observer
}

// terminator is an observed engine that can also end runs by force.
type terminator struct {
	*observedEngine
	inner engine.Terminator
}

// Engine decorates an engine; name is the engine's name in the settings of queues. The result is a
// [engine.Terminator] if the engine is one. Its method Unwrap returns the engine.
func Engine(inner engine.Engine, name string, observers ...Observer) engine.Engine {
	inner = engine.GivenEngine(inner)
	e := &observedEngine{inner, name, given(observers)}
	if byForce, can := inner.(engine.Terminator); can {
		return &terminator{e, byForce}
	}
	return e
}

// Unwrap returns the decorated engine.
func (e *observedEngine) Unwrap() engine.Engine { return e.Engine }

func (e *observedEngine) call(name string, target engine.Target) *Call {
	return &Call{Kind: KindEngine, Name: name, Engine: e.name, Queue: target.Queue, Began: time.Now()}
}

func (e *observedEngine) Start(ctx context.Context, target engine.Target, runs []engine.Run) []error {
	c := e.call("start", target)
	c.Runs, c.Jobs = runs, len(runs)
	ctx = begin(ctx, e.observers, c)
	c.Errs = e.Engine.Start(ctx, target, c.Runs)
	end(ctx, e.observers, c)
	return c.Errs
}

func (e *observedEngine) Outcomes(ctx context.Context, target engine.Target, refs []string) ([]engine.Outcome, error) {
	c := e.call("outcomes", target)
	c.Refs, c.Jobs = refs, len(refs)
	ctx = begin(ctx, e.observers, c)
	c.Outcomes, c.Err = e.Engine.Outcomes(ctx, target, refs)
	end(ctx, e.observers, c)
	return c.Outcomes, c.Err
}

func (e *observedEngine) Ended(ctx context.Context, target engine.Target, since time.Time, next []byte) (page engine.Page, err error) {
	c := e.call("ended", target)
	ctx = begin(ctx, e.observers, c)
	page, c.Err = e.Engine.Ended(ctx, target, since, next)
	c.Outcomes, c.Jobs = page.Runs, len(page.Runs)
	end(ctx, e.observers, c)
	return page, c.Err
}

func (e *observedEngine) Cancel(ctx context.Context, target engine.Target, refs []string, reason string) []error {
	return e.endRuns(ctx, "cancel", target, refs, func(ctx context.Context) []error { return e.Engine.Cancel(ctx, target, refs, reason) })
}

func (t *terminator) Terminate(ctx context.Context, target engine.Target, refs []string, reason string) []error {
	return t.endRuns(ctx, "terminate", target, refs, func(ctx context.Context) []error { return t.inner.Terminate(ctx, target, refs, reason) })
}

func (e *observedEngine) endRuns(ctx context.Context, name string, target engine.Target, refs []string, do func(context.Context) []error) []error {
	c := e.call(name, target)
	c.Refs, c.Jobs = refs, len(refs)
	ctx = begin(ctx, e.observers, c)
	c.Errs = do(ctx)
	end(ctx, e.observers, c)
	return c.Errs
}

func (e *observedEngine) Check(ctx context.Context, target engine.Target) (report engine.Report, err error) {
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
