package dispatcher_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/sluice-queue/sluice/engine"
)

// scripted is an engine whose answers a test sets, for faults that a test cannot provoke in a real engine.
type scripted struct {
	mu     sync.Mutex
	began  map[string]int // how often each ref was started
	runs   map[string]engine.Outcome
	delays map[string]time.Duration
	calls  int
	listed int      // how often Ended was called
	asks   []string // the namespaces of the calls
	result string   // the result of runs that end; empty: `"done"`
	// answer decides the error of Start for a run; nil: each run starts. If keeps is true, the run starts despite the
	// error.
	answer func(run engine.Run) (err error, keeps bool)
	report engine.Report
	gone   error  // the error of every call but Start, Cancel and Terminate; nil: the calls work
	pause  func() // called before a run begins, and before Outcomes answers; may be nil

	cancels  []string        // the calls of Cancel: namespace, ref and reason
	stubborn map[string]bool // refs of runs that ignore Cancel
	cut      error           // the error of Cancel; nil: Cancel works
}

func newScripted() *scripted {
	return &scripted{began: make(map[string]int), runs: make(map[string]engine.Outcome), delays: make(map[string]time.Duration), report: engine.Report{Pollers: 1}}
}

func (e *scripted) Start(_ context.Context, target engine.Target, runs []engine.Run) []error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.calls++
	stand := func() {
		e.mu.Unlock()
		defer e.mu.Lock()
		if e.pause != nil {
			e.pause()
		}
	}
	e.asks = append(e.asks, target.Namespace)
	errs := make([]error, len(runs))
	for i, run := range runs {
		stand()
		if errs[i] = run.Begins(); errs[i] != nil {
			continue
		}
		keeps := true
		if e.answer != nil {
			errs[i], keeps = e.answer(run)
		}
		has, there := e.runs[run.Ref]
		if there && has.Job != run.Job && errs[i] == nil {
			errs[i] = fmt.Errorf("start: %w", engine.ErrRefTaken)
		}
		if keeps && !there {
			e.began[run.Ref]++
			e.delays[run.Ref] = run.Delay
			e.runs[run.Ref] = engine.Outcome{Ref: run.Ref, Job: run.Job, Work: run.Work, State: engine.Running, StartedAt: time.Now()}
		}
	}
	return errs
}

func (e *scripted) say(answer func(run engine.Run) (error, bool)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.answer = answer
}

// always gives every start the same answer.
func always(err error, keeps bool) func(engine.Run) (error, bool) {
	return func(engine.Run) (error, bool) { return fmt.Errorf("start: %w", err), keeps }
}

func (e *scripted) Outcomes(_ context.Context, _ engine.Target, refs []string) ([]engine.Outcome, error) {
	if e.pause != nil {
		e.pause()
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.gone != nil {
		return nil, e.gone
	}
	out := make([]engine.Outcome, len(refs))
	for i, ref := range refs {
		run, there := e.runs[ref]
		if !there {
			run = engine.Outcome{Ref: ref, State: engine.Absent}
		}
		out[i] = run
	}
	return out, nil
}

func (e *scripted) Ended(_ context.Context, _ engine.Target, since time.Time, _ []byte) (engine.Page, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.gone != nil {
		return engine.Page{}, e.gone
	}
	e.listed++
	var page engine.Page
	for _, run := range e.runs {
		if run.State.Over() && !run.EndedAt.Before(since) {
			page.Runs = append(page.Runs, run)
		}
	}
	return page, nil
}

// Cancel ends the running runs that are not stubborn.
func (e *scripted) Cancel(_ context.Context, target engine.Target, refs []string, reason string) []error {
	e.mu.Lock()
	defer e.mu.Unlock()
	errs := make([]error, len(refs))
	for i, ref := range refs {
		e.cancels = append(e.cancels, target.Namespace+": "+ref+": "+reason)
		run, there := e.runs[ref]
		switch {
		case e.cut != nil:
			errs[i] = e.cut
		case there && run.State == engine.Running && !e.stubborn[ref]:
			run.State, run.EndedAt = engine.Cancelled, time.Now()
			e.runs[ref] = run
		}
	}
	return errs
}

// Terminate ends running runs, also stubborn ones.
func (e *scripted) Terminate(_ context.Context, _ engine.Target, refs []string, _ string) []error {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, ref := range refs {
		if run, there := e.runs[ref]; there && run.State == engine.Running {
			run.State, run.EndedAt = engine.Terminated, time.Now()
			e.runs[ref] = run
		}
	}
	return make([]error, len(refs))
}

// lose removes runs, as an engine does that is restored from an old backup.
func (e *scripted) lose(refs ...string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, ref := range refs {
		delete(e.runs, ref)
	}
}

// state returns the state of a run; empty: the engine has no such run.
func (e *scripted) state(ref string) engine.State {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.runs[ref].State
}

// heed sets the error of Cancel, and the runs that ignore Cancel.
func (e *scripted) heed(cut error, stubborn ...string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.cut, e.stubborn = cut, make(map[string]bool)
	for _, ref := range stubborn {
		e.stubborn[ref] = true
	}
}

// asked lists the calls of Cancel.
func (e *scripted) asked() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.cancels)
}

func (e *scripted) Check(context.Context, engine.Target) (engine.Report, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.gone != nil {
		return engine.Report{}, e.gone
	}
	return e.report, nil
}

// cutOff sets the error of the engine's calls but Start, Cancel and Terminate; nil: the calls work.
func (e *scripted) cutOff(gone error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.gone = gone
}

// forget removes all runs of the engine.
func (e *scripted) forget() {
	e.mu.Lock()
	defer e.mu.Unlock()
	clear(e.runs)
}

// end moves every running run to a state.
func (e *scripted) end(state engine.State) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for ref, run := range e.runs {
		if run.State == engine.Running {
			run.State, run.EndedAt, run.Result = state, time.Now(), []byte(cmp.Or(e.result, `"done"`))
			e.runs[ref] = run
		}
	}
}

// most returns how often the most started ref was started.
func (e *scripted) most() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	most := 0
	for _, n := range e.began {
		most = max(most, n)
	}
	return most
}

func (e *scripted) refs() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	var refs []string
	for ref := range e.began {
		refs = append(refs, ref)
	}
	slices.Sort(refs)
	return refs
}
