package enginetest

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/sluice-queue/sluice"
)

func outcomeRules() []Rule {
	return []Rule{
		{"E-30", "Outcomes of many refs come from one call, in order: what runs, what ended and how, and what is absent.", "I-17, D-21, D-51", func(w *world) {
			well, badly, waits := w.run(Script{Do: Complete}), w.run(Script{Do: Fail, Error: "no route to bank"}), w.run(Script{Do: Wait})
			w.started(well, badly, waits)
			w.becomes(well, sluice.RunCompleted)
			w.becomes(badly, sluice.RunFailed)
			w.begun(waits)
			never := w.run(Script{Do: Complete})
			for i, want := range []sluice.RunOutcome{
				{State: sluice.RunAbsent},
				{State: sluice.RunRunning, Job: waits.Job},
				{State: sluice.RunCompleted, Job: well.Job},
				{State: sluice.RunFailed, Job: badly.Job},
				{State: sluice.RunRunning, Job: waits.Job},
			} {
				got := w.outcomes(never.Ref, waits.Ref, well.Ref, badly.Ref, waits.Ref)[i]
				if got.State != want.State || got.Job != want.Job || got.State.Over() == got.EndedAt.IsZero() {
					w.Errorf("outcome %d is %+v, want %s of job %s", i, got, want.State, want.Job)
				}
			}
		}},
		{"E-31", "A run that Start took is never absent, from that moment on.", "I-16, D-55", func(w *world) {
			for range 20 {
				run := w.run(Script{Do: Complete})
				w.started(run)
				if out := w.outcomes(run.Ref)[0]; out.State == sluice.RunAbsent {
					w.Fatalf("%q is absent right after its start", run.Ref)
				}
			}
		}},
		{"E-32", "Outcomes of some hundred refs are told, and of none.", "I-17", func(w *world) {
			run := w.run(Script{Do: Complete})
			w.started(run)
			w.becomes(run, sluice.RunCompleted)
			refs := make([]string, 300)
			for i := range refs {
				refs[i] = w.run(Script{}).Ref
			}
			refs[299] = run.Ref
			out := w.outcomes(refs...)
			for i, o := range out[:299] {
				if o.State != sluice.RunAbsent {
					w.Fatalf("outcome %d is %s, want %s", i, o.State, sluice.RunAbsent)
				}
			}
			if out[299].State != sluice.RunCompleted {
				w.Errorf("the last outcome is %s, want %s", out[299].State, sluice.RunCompleted)
			}
			w.outcomes()
		}},
	}
}

func endRules() []Rule {
	return []Rule{
		{"E-33", "A run that failed tells its error.", "I-17, D-53", func(w *world) {
			run := w.run(Script{Do: Fail, Error: "bank says: Überziehung"})
			w.started(run)
			if out := w.becomes(run, sluice.RunFailed); !strings.Contains(out.Error, "bank says: Überziehung") {
				w.Errorf("the error is %q", out.Error)
			}
		}},
		{"E-34", "A run that panics has failed, and other runs go on.", "I-17", func(w *world) {
			run, other := w.run(Script{Do: Panic, Error: "nil map"}), w.run(Script{Do: Complete})
			w.started(run, other)
			w.becomes(other, sluice.RunCompleted)
			if out := w.becomes(run, sluice.RunFailed); !strings.Contains(out.Error, "nil map") {
				w.Errorf("the error is %q", out.Error)
			}
			w.ranOnce(run)
		}},
		{"E-35", "What a run returned is told where it is wanted.", "I-17", func(w *world) {
			target := w.Target
			target.Results = true
			for _, result := range []string{`{"status":250,"id":12345678901234567890,"text":"ß <&>"}`, `"yes"`, `[1,2]`} {
				run := w.run(Script{Do: Complete, Result: json.RawMessage(result)})
				w.started(run)
				w.sameJSON([]byte(result), w.becomesAt(target, run, sluice.RunCompleted).Result)
			}
		}},
		{"E-36", "A run that takes longer than the target's timeout has timed out, and is not run again.", "I-17", func(w *world) {
			run := w.run(Script{Do: Wait})
			target := w.Target
			target.Timeout = w.startsWithin()
			w.ok(w.Engine.Start(w.ctx, target, []sluice.Run{run})[0])
			w.becomes(run, sluice.RunTimedOut)
			w.ranOnce(run)
		}},
		{"E-37", "The time before a run begins does not count against its timeout.", "I-3, D-46", func(w *world) {
			run := w.run(Script{Do: Complete})
			target := w.Target
			target.Timeout = w.startsWithin()
			run.Delay = target.Timeout + time.Second
			w.ok(w.Engine.Start(w.ctx, target, []sluice.Run{run})[0])
			w.becomes(run, sluice.RunCompleted)
		}},
	}
}

func endedRules() []Rule {
	return []Rule{
		{"E-40", "Ended comes to list every run that ended at or after an instant, with its job, how it ended and when, and none that is under way.", "I-17, D-53", listsAllThatEnded},
		{"E-41", "Ended lists no run that ended before the instant.", "I-17", func(w *world) {
			first := w.run(Script{Do: Complete})
			w.started(first)
			since := w.becomes(first, sluice.RunCompleted).EndedAt.Add(time.Millisecond)
			later := w.run(Script{Do: Complete})
			w.started(later)
			for w.becomes(later, sluice.RunCompleted).EndedAt.Before(since) {
				later = w.run(Script{Do: Complete})
				w.started(later)
			}
			w.lists(since, []sluice.Run{later}, map[string]sluice.RunState{later.Ref: sluice.RunCompleted})
			for _, o := range w.ended(since) {
				if o.Ref == first.Ref {
					w.Errorf("a run that ended before %s is listed: %+v", since, o)
				}
			}
		}},
	}
}

func listsAllThatEnded(w *world) {
	first := w.run(Script{Do: Complete})
	w.started(first)
	since := w.becomes(first, sluice.RunCompleted).EndedAt.Truncate(time.Millisecond)
	want := map[string]sluice.RunState{first.Ref: sluice.RunCompleted}
	runs := []sluice.Run{w.run(Script{Do: Wait})}
	for _, as := range []struct {
		do    Deed
		state sluice.RunState
	}{{Complete, sluice.RunCompleted}, {Fail, sluice.RunFailed}, {Wait, sluice.RunCancelled}} {
		for range 10 {
			run := w.run(Script{Do: as.do, Error: "no route to bank"})
			runs, want[run.Ref] = append(runs, run), as.state
		}
	}
	w.started(runs...)
	for _, run := range runs[1:] {
		if want[run.Ref] == sluice.RunCancelled {
			w.begun(run)
			w.cancelled(run.Ref)
		}
	}
	w.lists(since, append(runs[1:], first), want)
	for _, o := range w.ended(since) {
		if o.Ref == runs[0].Ref {
			w.Errorf("a run that is under way is listed: %+v", o)
		}
	}
}

// ended lists the runs that ended since an instant, from every page.
func (w *world) ended(since time.Time) []sluice.RunOutcome {
	w.Helper()
	var all []sluice.RunOutcome
	var next []byte
	for range 10_000 {
		page, err := w.Engine.Ended(w.ctx, w.Target, since, next)
		w.ok(err)
		all = append(all, page.Runs...)
		if next = page.Next; next == nil {
			return all
		}
	}
	w.Fatal("the pages have no end")
	return nil
}

// lists waits until Ended lists runs, and checks their states.
func (w *world) lists(since time.Time, runs []sluice.Run, want map[string]sluice.RunState) {
	w.Helper()
	listed := make(map[string]sluice.RunOutcome)
	w.until("Ended lists the runs", func() bool {
		for _, o := range w.ended(since) {
			listed[o.Ref] = o
		}
		for _, run := range runs {
			if listed[run.Ref].Ref == "" {
				return false
			}
		}
		return true
	})
	for _, run := range runs {
		if got := listed[run.Ref]; got.State != want[run.Ref] || got.Job != run.Job || got.EndedAt.Before(since) {
			w.Errorf("listed is %+v, want %s of job %s, ended since %s", got, want[run.Ref], run.Job, since)
		}
	}
}
