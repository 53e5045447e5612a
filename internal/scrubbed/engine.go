package scrubbed

import (
	"context"
	"slices"
	"time"

	"github.com/sluice-queue/sluice/engine"
	"github.com/sluice-queue/sluice/internal/safe"
)

// Engines returns engines whose errors are scrubbed when they arrive, before any code cuts them: no
// rule recognises half a secret. A panic of an engine is an error, too. A [engine.Terminator] stays one.
func Engines(engines map[string]engine.Engine, clean func(string) string) map[string]engine.Engine {
	out := make(map[string]engine.Engine, len(engines))
	for name, inner := range engines {
		inner = engine.GivenEngine(inner)
		heard := &listening{inner, Text(clean)}
		out[name] = heard
		if byForce, can := inner.(engine.Terminator); can {
			out[name] = &terminator{heard, byForce}
		}
	}
	return out
}

type listening struct {
	engine.Engine
	clean func(string) string
}

// terminator is a listening for an engine that can end runs by force.
type terminator struct {
	*listening
	inner engine.Terminator
}

// Terminate scrubs the errors.
func (t *terminator) Terminate(ctx context.Context, target engine.Target, refs []string, reason string) (errs []error) {
	defer t.caughtEach(&errs, len(refs))
	return t.errors(t.inner.Terminate(ctx, target, refs, reason))
}

// Unwrap returns the inner engine.
func (e *listening) Unwrap() engine.Engine { return e.Engine }

// Start scrubs the errors.
func (e *listening) Start(ctx context.Context, target engine.Target, runs []engine.Run) (errs []error) {
	defer e.caughtEach(&errs, len(runs))
	return e.errors(e.Engine.Start(ctx, target, runs))
}

// Outcomes scrubs the errors of runs.
func (e *listening) Outcomes(ctx context.Context, target engine.Target, refs []string) (outcomes []engine.Outcome, err error) {
	defer e.caught(&err)
	outcomes, err = e.Engine.Outcomes(ctx, target, refs)
	return e.outcomes(outcomes), e.error(err)
}

// Ended scrubs the errors of runs.
func (e *listening) Ended(ctx context.Context, target engine.Target, since time.Time, next []byte) (page engine.Page, err error) {
	defer e.caught(&err)
	page, err = e.Engine.Ended(ctx, target, since, next)
	page.Runs = e.outcomes(page.Runs)
	return page, e.error(err)
}

// Cancel scrubs the errors.
func (e *listening) Cancel(ctx context.Context, target engine.Target, refs []string, reason string) (errs []error) {
	defer e.caughtEach(&errs, len(refs))
	return e.errors(e.Engine.Cancel(ctx, target, refs, reason))
}

// Check scrubs its error.
func (e *listening) Check(ctx context.Context, target engine.Target) (report engine.Report, err error) {
	defer e.caught(&err)
	report, err = e.Engine.Check(ctx, target)
	return report, e.error(err)
}

// caught turns a panic of the engine into an error.
func (e *listening) caught(err *error) {
	if panicked := recover(); panicked != nil {
		*err = e.panicked(panicked)
	}
}

// caughtEach turns a panic of the engine into an error of each run, which may have been started or ended.
func (e *listening) caughtEach(errs *[]error, runs int) {
	if panicked := recover(); panicked != nil {
		*errs = slices.Repeat([]error{e.panicked(panicked)}, runs)
	}
}

func (e *listening) panicked(value any) error {
	return e.error(safe.Panicked("the engine", value))
}

func (e *listening) outcomes(all []engine.Outcome) []engine.Outcome {
	if !slices.ContainsFunc(all, func(run engine.Outcome) bool { return run.Error != "" }) {
		return all
	}
	all = slices.Clone(all)
	for i := range all {
		all[i].Error = e.clean(all[i].Error)
	}
	return all
}

func (e *listening) errors(errs []error) []error {
	if !slices.ContainsFunc(errs, func(err error) bool { return err != nil }) {
		return errs
	}
	errs = slices.Clone(errs)
	for i := range errs {
		errs[i] = e.error(errs[i])
	}
	return errs
}

func (e *listening) error(err error) error { return Error(err, e.clean) }

// Error returns an error with a scrubbed text. errors.Is and errors.As still see the original.
func Error(err error, clean func(string) string) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	cleaned := clean(text)
	if cleaned == text {
		return err
	}
	return &told{cleaned, err}
}

// told is an error whose text was scrubbed.
type told struct {
	text string
	err  error
}

func (t *told) Error() string { return t.text }
func (t *told) Unwrap() error { return t.err }
