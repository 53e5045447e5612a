package enginetest

import (
	"time"

	"github.com/sluice-queue/sluice/engine"
)

// cancelled asks runs to end, which must not fail.
func (w *world) cancelled(refs ...string) {
	w.Helper()
	errs := w.Engine.Cancel(w.ctx, w.Target, refs, "the rules say so")
	if len(errs) != len(refs) {
		w.Fatalf("cancel of %d refs gave %d answers", len(refs), len(errs))
	}
	for i, err := range errs {
		if err != nil {
			w.Fatalf("cancel %q: %v", refs[i], err)
		}
	}
}

func cancelRules() []Rule {
	return []Rule{
		{"E-50", "A run that is cancelled while it is under way ends as cancelled; the others go on.", "I-17, A-57", func(w *world) {
			run, other := w.run(Script{Do: Wait}), w.run(Script{Do: Wait})
			w.started(run, other)
			w.begun(run)
			w.begun(other)
			w.cancelled(run.Ref)
			w.becomes(run, engine.Cancelled)
			if out := w.outcomes(other.Ref)[0]; out.State != engine.Running {
				w.Errorf("the other run is %s, want %s", out.State, engine.Running)
			}
		}},
		{"E-51", "Cancelling runs that have ended, that were cancelled before or that never were is no error, and changes nothing.", "I-20", func(w *world) {
			ended, waits, never := w.run(Script{Do: Complete}), w.run(Script{Do: Wait}), w.run(Script{Do: Complete})
			w.started(ended, waits)
			w.becomes(ended, engine.Completed)
			w.begun(waits)
			for range 2 {
				w.cancelled(ended.Ref, waits.Ref, never.Ref)
			}
			w.becomes(waits, engine.Cancelled)
			w.cancelled(waits.Ref)
			w.becomes(ended, engine.Completed)
			if out := w.outcomes(never.Ref)[0]; out.State != engine.Absent {
				w.Errorf("a run that never was is %s, want %s", out.State, engine.Absent)
			}
			w.cancelled()
		}},
		{"E-52", "A run that is cancelled while it waits for its delay ends as cancelled, without waiting on.", "I-17", func(w *world) {
			run := w.run(Script{Do: Wait})
			run.Delay = time.Hour
			w.started(run)
			w.cancelled(run.Ref)
			w.becomes(run, engine.Cancelled)
		}},
		{"E-53", "A run that is terminated ends at once, also while it waits for its delay, and is asked for again in vain; the others go on. Terminating runs that have ended or never were is no error.", "I-16, I-17", func(w *world) {
			byForce, can := w.Engine.(engine.Terminator)
			if !can {
				w.Skip("the engine cannot end runs by force")
			}
			run, late, other, never := w.run(Script{Do: Wait}), w.run(Script{Do: Wait}), w.run(Script{Do: Wait}), w.run(Script{Do: Wait})
			late.Delay = time.Hour
			w.started(run, late, other)
			w.begun(run)
			for range 2 {
				for _, err := range byForce.Terminate(w.ctx, w.Target, []string{run.Ref, late.Ref, never.Ref}, "the rules say so") {
					w.ok(err)
				}
			}
			for _, ended := range []engine.Run{run, late} {
				var out engine.Outcome
				w.until("it has ended", func() bool {
					out = w.outcomes(ended.Ref)[0]
					return out.State.Over()
				})
				if out.State != engine.Terminated && out.State != engine.Cancelled {
					w.Errorf("the run is %s", out.State)
				}
			}
			w.started(run)
			w.ranOnce(run)
			if out := w.outcomes(other.Ref)[0]; out.State != engine.Running {
				w.Errorf("the other run is %s, want %s", out.State, engine.Running)
			}
			w.cancelled(other.Ref)
		}},
	}
}
