package enginetest

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/sluice-queue/sluice/engine"
)

func outcomeRules() []Rule {
	return []Rule{
		{"E-30", "Outcomes of many refs come from one call, in order: what runs, what ended and how, and what is absent.", "I-17, D-21, D-51", func(w *world) {
			well, badly, waits := w.run(Script{Do: Complete}), w.run(Script{Do: Fail, Error: "no route to bank"}), w.run(Script{Do: Wait})
			w.started(well, badly, waits)
			w.becomes(well, engine.Completed)
			w.becomes(badly, engine.Failed)
			w.begun(waits)
			never := w.run(Script{Do: Complete})
			for i, want := range []engine.Outcome{
				{State: engine.Absent},
				{State: engine.Running, Job: waits.Job},
				{State: engine.Completed, Job: well.Job},
				{State: engine.Failed, Job: badly.Job},
				{State: engine.Running, Job: waits.Job},
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
				if out := w.outcomes(run.Ref)[0]; out.State == engine.Absent {
					w.Fatalf("%q is absent right after its start", run.Ref)
				}
			}
		}},
		{"E-32", "Outcomes of some hundred refs are told, and of none.", "I-17", func(w *world) {
			run := w.run(Script{Do: Complete})
			w.started(run)
			w.becomes(run, engine.Completed)
			refs := make([]string, 300)
			for i := range refs {
				refs[i] = w.run(Script{}).Ref
			}
			refs[299] = run.Ref
			out := w.outcomes(refs...)
			for i, o := range out[:299] {
				if o.State != engine.Absent {
					w.Fatalf("outcome %d is %s, want %s", i, o.State, engine.Absent)
				}
			}
			if out[299].State != engine.Completed {
				w.Errorf("the last outcome is %s, want %s", out[299].State, engine.Completed)
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
			if out := w.becomes(run, engine.Failed); !strings.Contains(out.Error, "bank says: Überziehung") {
				w.Errorf("the error is %q", out.Error)
			}
		}},
		{"E-34", "A run that panics has failed, and other runs go on.", "I-17", func(w *world) {
			run, other := w.run(Script{Do: Panic, Error: "nil map"}), w.run(Script{Do: Complete})
			w.started(run, other)
			w.becomes(other, engine.Completed)
			if out := w.becomes(run, engine.Failed); !strings.Contains(out.Error, "nil map") {
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
				w.sameJSON([]byte(result), w.becomesAt(target, run, engine.Completed).Result)
			}
		}},
		{"E-36", "A run that takes longer than the target's timeout has timed out, and is not run again.", "I-17", func(w *world) {
			target := w.Target
			for target.Timeout = w.startsWithin(); ; target.Timeout *= 2 { // a slow machine may not begin a run in that time
				run := w.run(Script{Do: Wait})
				w.ok(w.Engine.Start(w.ctx, target, []engine.Run{run})[0])
				w.becomes(run, engine.TimedOut)
				if len(w.Diary.Of(run.Ref)) > 0 {
					w.ranOnce(run)
					return
				}
			}
		}},
		{"E-37", "The time before a run begins does not count against its timeout.", "I-3, D-46", func(w *world) {
			target := w.Target
			for target.Timeout = w.startsWithin(); ; target.Timeout *= 2 {
				run := w.run(Script{Do: Complete})
				run.Delay = target.Timeout + time.Second
				started := time.Now()
				w.ok(w.Engine.Start(w.ctx, target, []engine.Run{run})[0])
				out := w.ends(target, run)
				if out.State == engine.TimedOut && out.EndedAt.Sub(started) > run.Delay {
					continue // a slow machine: the timeout began after the delay, and was too short
				}
				w.becomes(run, engine.Completed)
				return
			}
		}},
		{"E-38", "The timeout of a run counts instead of the target's.", "I-17", func(w *world) {
			short, long := w.run(Script{Do: Wait}), w.run(Script{Do: Complete})
			short.Timeout, long.Timeout = w.startsWithin(), time.Hour
			target := w.Target
			target.Timeout = time.Hour
			w.ok(w.Engine.Start(w.ctx, target, []engine.Run{short})[0])
			target.Timeout = time.Millisecond
			w.ok(w.Engine.Start(w.ctx, target, []engine.Run{long})[0])
			w.becomes(short, engine.TimedOut)
			w.becomes(long, engine.Completed)
		}},
	}
}

func endedRules() []Rule {
	return []Rule{
		{"E-40", "Ended comes to list every run that ended at or after an instant, with its job, how it ended and when, and none that is under way.", "I-17, D-53", listsAllThatEnded},
		{"E-41", "Ended lists no run that ended before the instant.", "I-17", func(w *world) {
			first := w.run(Script{Do: Complete})
			w.started(first)
			since := w.becomes(first, engine.Completed).EndedAt.Add(time.Millisecond)
			later := w.run(Script{Do: Complete})
			w.started(later)
			for w.becomes(later, engine.Completed).EndedAt.Before(since) {
				later = w.run(Script{Do: Complete})
				w.started(later)
			}
			w.lists(since, []engine.Run{later}, map[string]engine.State{later.Ref: engine.Completed})
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
	since := w.becomes(first, engine.Completed).EndedAt.Truncate(time.Millisecond)
	want := map[string]engine.State{first.Ref: engine.Completed}
	runs := []engine.Run{w.run(Script{Do: Wait})}
	for _, as := range []struct {
		do    Deed
		state engine.State
	}{{Complete, engine.Completed}, {Fail, engine.Failed}, {Wait, engine.Cancelled}} {
		for range 10 {
			run := w.run(Script{Do: as.do, Error: "no route to bank"})
			runs, want[run.Ref] = append(runs, run), as.state
		}
	}
	w.started(runs...)
	for _, run := range runs[1:] {
		if want[run.Ref] == engine.Cancelled {
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
func (w *world) ended(since time.Time) []engine.Outcome {
	w.Helper()
	var all []engine.Outcome
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
func (w *world) lists(since time.Time, runs []engine.Run, want map[string]engine.State) {
	w.Helper()
	listed := make(map[string]engine.Outcome)
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
