// Package enginetest checks that an engine obeys the rules of [engine.Engine], each a numbered sentence with
// its check.
//
// Begin with [Run]: the test of your engine calls it with a function that opens a [Bench]. The payload of each
// run is a [Script], which tells the run how to end. Each execution is recorded in a [Diary]; an engine of Go
// functions calls [Diary.Obey] to do both. [Rules] lists the sentences.
//
// Next, read docs/engine-rules.md, and the test of engine/local as an example.
package enginetest

import (
	"cmp"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/engine"
)

// Bench is an engine under test, for one rule. Rules may share one engine, target and diary, because their refs
// differ.
type Bench struct {
	// Engine is the engine under test.
	Engine engine.Engine
	// Target is the place at which runs obey their Script. A run there that panics fails and is not retried.
	Target engine.Target
	// Diary records the executions of those runs.
	Diary *Diary
	// Gone is an engine of the same kind that is unreachable.
	Gone engine.Engine
	// Nowhere is a target that the engine lacks.
	Nowhere engine.Target
	// MaxPayload is the approximate size of the largest payload that the engine takes, in bytes. The engine
	// refuses twice as many.
	MaxPayload int
	// MaxRef is the length of the longest ref, in bytes.
	MaxRef int
	// Retention is how long the engine keeps ended runs; 0: for ever.
	Retention time.Duration
	// StartsWithin is how long a run may take to begin when the engine is busy; 0: 1 s.
	StartsWithin time.Duration
}

// Rule is a behaviour that every engine must show.
type Rule struct {
	// ID is never used again for another rule.
	ID string
	// Summary is the rule as a sentence.
	Summary string
	// Because names the invariants and source requirements that demand the rule.
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

// Run checks every rule, each on a bench of its own from open.
func Run(t *testing.T, open func(t *testing.T) Bench) {
	for _, rule := range Rules() {
		t.Run(rule.ID, func(t *testing.T) {
			t.Parallel()
			t.Logf("%s: %s (%s)", rule.ID, rule.Summary, rule.Because)
			rule.check(&world{T: t, Bench: open(t), ctx: t.Context()})
		})
	}
}

const (
	// patience is how long a rule waits for asynchronous work of an engine.
	patience = 10 * time.Minute
	// lookEvery is the time between two looks at such work.
	lookEvery = 20 * time.Millisecond
)

// world is a bench and the helpers that keep the rules short.
type world struct {
	*testing.T
	Bench
	ctx context.Context
}

// run returns a new run of a new job.
func (w *world) run(script Script) engine.Run {
	w.Helper()
	id := sluice.NewID()
	return engine.Run{
		Ref: "rule-" + id.String(), Job: id, Generation: 1, Attempt: 1, Tenant: "acme", Priority: sluice.DefaultPriority,
		Labels: map[string]string{"rule": w.Name()}, Payload: script.payload(w.T),
	}
}

// startsWithin returns the time in which a run begins.
func (w *world) startsWithin() time.Duration { return cmp.Or(w.StartsWithin, time.Second) }

// start starts runs and returns one answer each.
func (w *world) start(runs ...engine.Run) []error {
	w.Helper()
	errs := w.Engine.Start(w.ctx, w.Target, runs)
	if len(errs) != len(runs) {
		w.Fatalf("start of %d runs gave %d answers", len(runs), len(errs))
	}
	return errs
}

// started starts runs. The engine must take them all.
func (w *world) started(runs ...engine.Run) {
	w.Helper()
	for i, err := range w.start(runs...) {
		if err != nil {
			w.Fatalf("start %q: %v", runs[i].Ref, err)
		}
	}
}

// outcomes asks for refs in one call.
func (w *world) outcomes(refs ...string) []engine.Outcome {
	w.Helper()
	return w.outcomesOf(w.Target, refs...)
}

func (w *world) outcomesOf(target engine.Target, refs ...string) []engine.Outcome {
	w.Helper()
	var out []engine.Outcome
	w.until("the engine answers", func() bool { // the engine may be busy
		var err error
		if out, err = w.Engine.Outcomes(w.ctx, target, refs); err != nil && !errors.Is(err, engine.ErrUnavailable) {
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

// becomes waits until a run has ended, and checks its state.
func (w *world) becomes(run engine.Run, want engine.State) engine.Outcome {
	w.Helper()
	return w.becomesAt(w.Target, run, want)
}

func (w *world) becomesAt(target engine.Target, run engine.Run, want engine.State) engine.Outcome {
	w.Helper()
	out := w.ends(target, run)
	if out.State != want || out.Job != run.Job || out.EndedAt.IsZero() {
		w.Fatalf("the run of job %s ended as %+v, want it %s, with its job and when it ended", run.Job, out, want)
	}
	return out
}

// ends waits until a run has ended.
func (w *world) ends(target engine.Target, run engine.Run) (out engine.Outcome) {
	w.Helper()
	w.until("run "+run.Ref+" ends", func() bool {
		out = w.outcomesOf(target, run.Ref)[0]
		if out.State == engine.Absent || out.State == engine.Foreign {
			w.Fatalf("%q, which was started, is %s", run.Ref, out.State)
		}
		return out.State.Over()
	})
	return out
}

// begun waits until a run has begun.
func (w *world) begun(run engine.Run) Begun {
	w.Helper()
	w.until("run "+run.Ref+" begins", func() bool { return len(w.Diary.Of(run.Ref)) > 0 })
	return w.Diary.Of(run.Ref)[0]
}

// ranOnce checks that a ref was executed exactly once. Another run ends first, so that a second execution would
// have had time to begin.
func (w *world) ranOnce(run engine.Run) {
	w.Helper()
	other := w.run(Script{Do: Complete})
	w.started(other)
	w.becomes(other, engine.Completed)
	if times := w.Diary.Of(run.Ref); len(times) != 1 {
		w.Fatalf("%q was run %d times, want once: %+v", run.Ref, len(times), times)
	}
}

// until waits for a condition.
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

// is checks that an error is of a kind.
func (w *world) is(err, want error) {
	w.Helper()
	if !errors.Is(err, want) {
		w.Fatalf("the error is %v, want %v", err, want)
	}
}

// unknown checks that an error leaves open whether the engine took the run.
func (w *world) unknown(err error) {
	w.Helper()
	if err == nil {
		w.Fatal("there is no error")
	}
	for _, certain := range []error{engine.ErrRefused, engine.ErrRefTaken, engine.ErrBusy, engine.ErrTarget} {
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
