// Package enginetest holds the rules that every sluice.Engine obeys, as numbered plain sentences, each with its check.
// An engine's own test calls Run. What a run does is said by its payload, a Script; what ran is written into a Diary.
package enginetest

import (
	"cmp"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
)

// Bench is an engine for one rule, with something that runs what payloads say. Rules may share one engine, target and
// diary: their refs differ.
type Bench struct {
	// Engine is the one to try.
	Engine sluice.Engine
	// Target is where payloads are obeyed as Script says. A run there that panics fails; it is not tried again.
	Target sluice.RunTarget
	// Diary is what those runs write into.
	Diary *Diary
	// Gone is an engine of the same kind that cannot be reached.
	Gone sluice.Engine
	// Nowhere is a target that the engine lacks.
	Nowhere sluice.RunTarget
	// MaxPayload is how many bytes the largest payload has that the engine takes, about; of twice as many it takes none.
	MaxPayload int
	// MaxRef is how many bytes the longest ref has.
	MaxRef int
	// Retention is how long the engine keeps runs that ended; 0: for ever.
	Retention time.Duration
	// StartsWithin is how long a run may take to begin when the engine is busy; 0: a second.
	StartsWithin time.Duration
}

// Rule is something that every engine does.
type Rule struct {
	// ID is never used again for another rule.
	ID string
	// Says is the rule as a sentence.
	Says string
	// Because names the invariants and source requirements that ask for it.
	Because string

	check func(w *world)
}

// Rules lists every rule, in order.
func Rules() []Rule {
	var all []Rule
	for _, part := range [][]Rule{startRules(), batchRules(), refusalRules(), outcomeRules(), endRules(), endedRules(), cancelRules(), faultRules()} {
		all = append(all, part...)
	}
	return all
}

// Run checks every rule, each on the bench that open gives for it.
func Run(t *testing.T, open func(t *testing.T) Bench) {
	for _, rule := range Rules() {
		t.Run(rule.ID, func(t *testing.T) {
			t.Parallel()
			t.Logf("%s: %s (%s)", rule.ID, rule.Says, rule.Because)
			rule.check(&world{T: t, Bench: open(t), ctx: t.Context()})
		})
	}
}

const (
	// patience is how long a rule waits for what an engine does in its own time.
	patience = 10 * time.Minute
	// lookEvery is how often it looks.
	lookEvery = 20 * time.Millisecond
)

// world is a bench and what the rules need to speak shortly.
type world struct {
	*testing.T
	Bench
	ctx context.Context
}

// run is a new run of a new job.
func (w *world) run(script Script) sluice.Run {
	w.Helper()
	id := sluice.NewID()
	return sluice.Run{
		Ref: "rule-" + id.String(), Job: id, Generation: 1, Attempt: 1, Tenant: "acme", Priority: sluice.DefaultPriority,
		Labels: map[string]string{"rule": w.Name()}, Payload: script.payload(w.T),
	}
}

// startsWithin is within what a run begins.
func (w *world) startsWithin() time.Duration { return cmp.Or(w.StartsWithin, time.Second) }

// start starts runs and gives the answers, one each.
func (w *world) start(runs ...sluice.Run) []error {
	w.Helper()
	errs := w.Engine.Start(w.ctx, w.Target, runs)
	if len(errs) != len(runs) {
		w.Fatalf("start of %d runs gave %d answers", len(runs), len(errs))
	}
	return errs
}

// started starts runs, all of which the engine must take.
func (w *world) started(runs ...sluice.Run) {
	w.Helper()
	for i, err := range w.start(runs...) {
		if err != nil {
			w.Fatalf("start %q: %v", runs[i].Ref, err)
		}
	}
}

// outcomes asks for refs in one call.
func (w *world) outcomes(refs ...string) []sluice.RunOutcome {
	w.Helper()
	return w.outcomesOf(w.Target, refs...)
}

func (w *world) outcomesOf(target sluice.RunTarget, refs ...string) []sluice.RunOutcome {
	w.Helper()
	var out []sluice.RunOutcome
	w.until("the engine answers", func() bool { // it may be busy
		var err error
		if out, err = w.Engine.Outcomes(w.ctx, target, refs); err != nil && !errors.Is(err, sluice.ErrEngineUnavailable) {
			w.Fatalf("outcomes: %v", err)
		}
		return err == nil
	})
	if len(out) != len(refs) {
		w.Fatalf("%d refs gave %d outcomes", len(refs), len(out))
	}
	for i, o := range out {
		if o.Ref != refs[i] {
			w.Fatalf("outcome %d is of %q, want %q", i, o.Ref, refs[i])
		}
	}
	return out
}

// becomes waits until a run has ended, which must be in this state.
func (w *world) becomes(run sluice.Run, want sluice.RunState) sluice.RunOutcome {
	w.Helper()
	return w.becomesAt(w.Target, run, want)
}

func (w *world) becomesAt(target sluice.RunTarget, run sluice.Run, want sluice.RunState) (out sluice.RunOutcome) {
	w.Helper()
	w.until("run "+run.Ref+" ends", func() bool {
		out = w.outcomesOf(target, run.Ref)[0]
		if out.State == sluice.RunAbsent || out.State == sluice.RunForeign {
			w.Fatalf("%q, which was started, is %s", run.Ref, out.State)
		}
		return out.State.Over()
	})
	if out.State != want || out.Job != run.Job || out.EndedAt.IsZero() {
		w.Fatalf("the run of job %s ended as %+v, want it %s, with its job and when it ended", run.Job, out, want)
	}
	return out
}

// begun waits until a run has begun.
func (w *world) begun(run sluice.Run) Begun {
	w.Helper()
	w.until("run "+run.Ref+" begins", func() bool { return len(w.Diary.Of(run.Ref)) > 0 })
	return w.Diary.Of(run.Ref)[0]
}

// ranOnce makes sure that a ref was run exactly once. What was started before it is asked has the time to begin that
// another run takes.
func (w *world) ranOnce(run sluice.Run) {
	w.Helper()
	other := w.run(Script{Do: Complete})
	w.started(other)
	w.becomes(other, sluice.RunCompleted)
	if times := w.Diary.Of(run.Ref); len(times) != 1 {
		w.Fatalf("%q was run %d times, want once: %+v", run.Ref, len(times), times)
	}
}

// until looks until something is so.
func (w *world) until(what string, so func() bool) {
	w.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for !so() {
		select {
		case <-look.C:
		case <-deadline.C:
			w.Fatalf("waited %s in vain until %s", patience, what)
		}
	}
}

// is makes sure that an error is of a kind.
func (w *world) is(err, want error) {
	w.Helper()
	if !errors.Is(err, want) {
		w.Fatalf("the error is %v, want %v", err, want)
	}
}

// unknown makes sure that an error says neither that the run was taken nor that it never will be.
func (w *world) unknown(err error) {
	w.Helper()
	if err == nil {
		w.Fatal("there is no error")
	}
	for _, certain := range []error{sluice.ErrEngineRefused, sluice.ErrRefTaken, sluice.ErrEngineBusy, sluice.ErrEngineTarget} {
		if errors.Is(err, certain) {
			w.Fatalf("the error is %v, which says more than can be known", err)
		}
	}
}

// ok ends a rule on an error.
func (w *world) ok(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}
