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

// scripted is an engine that answers as it is told, for faults that a real one cannot be made to show.
type scripted struct {
	mu     sync.Mutex
	began  map[string]int // how often each ref was started
	runs   map[string]engine.Outcome
	delays map[string]time.Duration
	calls  int
	listed int      // how often it was asked for runs that ended
	asks   []string // the namespaces of the calls
	result string   // of runs that end; empty: "done"
	// answer is what Start says of a run; nil: it is started. Keeps says that the run is started all the same.
	answer func(run engine.Run) (err error, keeps bool)
	report engine.Report
	gone   error  // what everything but Start answers; nil: it works
	pause  func() // is called before a run is begun, and before Outcomes answers; nil: nothing is

	cancels  []string        // whom Cancel asked to end
	stubborn map[string]bool // refs that do not
	cut      error           // what Cancel answers; nil: nothing failed
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

// always answers every start alike.
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

// Cancel ends the runs that heed it.
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

// Terminate ends runs whether they heed it or not.
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

// lose forgets runs, as an engine does that is restored to the past.
func (e *scripted) lose(refs ...string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, ref := range refs {
		delete(e.runs, ref)
	}
}

// state is how a run is; empty: there is none.
func (e *scripted) state(ref string) engine.State {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.runs[ref].State
}

// heed says which runs do not end when they are asked to, and what else comes of asking.
func (e *scripted) heed(cut error, stubborn ...string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.cut, e.stubborn = cut, make(map[string]bool)
	for _, ref := range stubborn {
		e.stubborn[ref] = true
	}
}

// asked lists who was asked to end.
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

// cutOff says what everything but Start answers; nil: it works.
func (e *scripted) cutOff(gone error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.gone = gone
}

// forget lets the engine forget all its runs.
func (e *scripted) forget() {
	e.mu.Lock()
	defer e.mu.Unlock()
	clear(e.runs)
}

// end lets every run end in a state.
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

// most is how often the run that was started most often was.
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
