package sluicetest

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/sluice-queue/sluice/engine"
)

// Engine is an engine that does as the test says. It runs nothing: the test ends each run. The zero value is ready.
type Engine struct {
	// Now is the engine's clock. Default: time.Now. Give it [Bench.Now].
	Now func() time.Time

	mu      sync.Mutex
	runs    map[string]*engine.Outcome
	order   []string
	refusal error
}

// Refuse makes Start answer every run by this error, such as [engine.ErrBusy], until it is called with nil.
func (e *Engine) Refuse(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.refusal = err
}

// Runs lists the refs of the open runs in the order of their start.
func (e *Engine) Runs() (refs []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, ref := range e.order {
		if e.runs[ref].State == engine.Running {
			refs = append(refs, ref)
		}
	}
	return refs
}

// Complete ends an open run well, with a result that becomes JSON. Upkeep settles its job at the next [Bench.Drain].
func (e *Engine) Complete(ref string, result any) error {
	text, err := json.Marshal(result)
	if err != nil {
		return fmt.Errorf("the result of run %q cannot be written as JSON: %w", ref, err)
	}
	return e.end(ref, func(o *engine.Outcome) { o.State, o.Result = engine.Completed, text })
}

// Fail ends an open run by an error.
func (e *Engine) Fail(ref, reason string) error {
	return e.end(ref, func(o *engine.Outcome) { o.State, o.Error = engine.Failed, reason })
}

func (e *Engine) end(ref string, how func(*engine.Outcome)) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	run := e.runs[ref]
	if run == nil || run.State != engine.Running {
		return fmt.Errorf("run %q is not open", ref)
	}
	how(run)
	run.EndedAt = e.now()
	return nil
}

func (e *Engine) now() time.Time {
	if e.Now == nil {
		return time.Now()
	}
	return e.Now()
}

// Start starts runs, or answers what Refuse says.
func (e *Engine) Start(_ context.Context, _ engine.Target, runs []engine.Run) []error {
	e.mu.Lock()
	defer e.mu.Unlock()
	errs := make([]error, len(runs))
	for i, run := range runs {
		errs[i] = e.startOne(run)
	}
	return errs
}

func (e *Engine) startOne(run engine.Run) error {
	if err := run.Begins(); err != nil {
		return err
	}
	if e.refusal != nil {
		return e.refusal
	}
	had := e.runs[run.Ref]
	switch {
	case had != nil && had.Job == run.Job:
		return nil
	case had != nil:
		return fmt.Errorf("%w: %q", engine.ErrRefTaken, run.Ref)
	}
	if e.runs == nil {
		e.runs = make(map[string]*engine.Outcome)
	}
	e.runs[run.Ref] = &engine.Outcome{Ref: run.Ref, Job: run.Job, State: engine.Running, Work: run.Work, StartedAt: e.now()}
	e.order = append(e.order, run.Ref)
	return nil
}

// Outcomes looks runs up.
func (e *Engine) Outcomes(_ context.Context, _ engine.Target, refs []string) ([]engine.Outcome, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	out := make([]engine.Outcome, len(refs))
	for i, ref := range refs {
		out[i] = engine.Outcome{Ref: ref, State: engine.Absent}
		if run := e.runs[ref]; run != nil {
			out[i] = *run
		}
	}
	return out, nil
}

// Ended lists the runs that ended since an instant, all in one page.
func (e *Engine) Ended(_ context.Context, _ engine.Target, since time.Time, _ []byte) (engine.Page, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	var page engine.Page
	for _, ref := range e.order {
		if run := e.runs[ref]; !run.EndedAt.IsZero() && !run.EndedAt.Before(since) {
			page.Runs = append(page.Runs, *run)
		}
	}
	return page, nil
}

// Cancel ends the open runs among these as cancelled.
func (e *Engine) Cancel(_ context.Context, _ engine.Target, refs []string, _ string) []error {
	for _, ref := range refs {
		_ = e.end(ref, func(o *engine.Outcome) { o.State = engine.Cancelled }) // one that has ended is no error
	}
	return make([]error, len(refs))
}

// Check reports an engine that keeps all runs for ever and has one worker.
func (e *Engine) Check(context.Context, engine.Target) (engine.Report, error) {
	return engine.Report{Pollers: 1, Version: "sluicetest"}, nil
}
