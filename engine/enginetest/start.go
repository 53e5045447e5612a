package enginetest

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/sluice-queue/sluice/engine"
)

func startRules() []Rule {
	return []Rule{
		{"E-1", "A run that was started is executed, once.", "I-16, A-31, A-91, B-51", func(w *world) {
			run := w.run(Script{Do: Complete})
			w.started(run)
			w.becomes(run, engine.Completed)
			w.ranOnce(run)
		}},
		{"E-2", "Starting a ref again while its run is under way is no error, and runs nothing.", "I-16, A-67, A-72, D-25", func(w *world) {
			run := w.run(Script{Do: Wait})
			w.started(run)
			w.started(run)
			w.begun(run)
			w.started(run)
			w.ranOnce(run)
		}},
		{"E-3", "Starting a ref again after its run has ended, however it ended, is no error, and runs nothing.", "I-16, D-25", func(w *world) {
			well, badly, cancelled := w.run(Script{Do: Complete}), w.run(Script{Do: Fail, Error: "no route to bank"}), w.run(Script{Do: Wait})
			w.started(well, badly, cancelled)
			w.begun(cancelled)
			w.cancelled(cancelled.Ref)
			w.becomes(well, engine.Completed)
			w.becomes(badly, engine.Failed)
			w.becomes(cancelled, engine.Cancelled)
			w.started(well, badly, cancelled)
			w.ranOnce(well)
			w.ranOnce(badly)
			w.ranOnce(cancelled)
			w.becomes(badly, engine.Failed)
		}},
		{"E-4", "However many start one ref at once, it runs once, and each is told that the engine has it.", "I-16, B-35, D-35", func(w *world) {
			run := w.run(Script{Do: Complete})
			var all sync.WaitGroup
			for range 16 {
				all.Go(func() {
					for _, err := range w.Engine.Start(w.ctx, w.Target, []engine.Run{run}) {
						if err != nil {
							w.Errorf("start: %v", err)
						}
					}
				})
			}
			all.Wait()
			w.becomes(run, engine.Completed)
			w.ranOnce(run)
		}},
		{"E-5", "A ref that is twice in a batch runs once.", "I-16", func(w *world) {
			run, other := w.run(Script{Do: Complete}), w.run(Script{Do: Complete})
			w.started(run, other, run)
			w.becomes(run, engine.Completed)
			w.becomes(other, engine.Completed)
			w.ranOnce(run)
		}},
	}
}

func batchRules() []Rule {
	return []Rule{
		{"E-6", "A batch of no runs has no answers.", "I-20", func(w *world) { w.started() }},
		{"E-7", "All runs of a large batch are executed.", "D-45, D-65", func(w *world) {
			runs := make([]engine.Run, 120)
			for i := range runs {
				runs[i] = w.run(Script{Do: Complete})
			}
			w.started(runs...)
			for _, run := range runs {
				w.becomes(run, engine.Completed)
			}
		}},
		{"E-8", "A run does not begin before its delay has passed; until then it counts as running.", "I-3, D-24, D-46", func(w *world) {
			run := w.run(Script{Do: Complete})
			run.Delay = 2 * time.Second
			asked := time.Now()
			w.started(run)
			if out := w.outcomes(run.Ref)[0]; out.State != engine.Running {
				w.Errorf("a run that waits for its delay is %s, want %s", out.State, engine.Running)
			}
			if early := run.Delay - w.begun(run).At.Sub(asked); early > 0 {
				w.Errorf("the run began %s too early", early)
			}
			w.becomes(run, engine.Completed)
		}},
		{"E-10", "A run whose Begin says no is not asked for, and is told as that; the others of its batch are.", "I-13, I-16", func(w *world) {
			no := errors.New("its queue is paused")
			kept, other := w.run(Script{Do: Complete}), w.run(Script{Do: Complete})
			kept.Begin = func() error { return no }
			begun := 0
			other.Begin = func() error {
				begun++
				return nil
			}
			errs := w.start(kept, other)
			w.is(errs[0], engine.ErrNotAsked)
			w.is(errs[0], no)
			w.ok(errs[1])
			if begun != 1 {
				w.Errorf("Begin was called %d times for one start", begun)
			}
			w.becomes(other, engine.Completed)
			if out := w.outcomes(kept.Ref)[0]; out.State != engine.Absent {
				w.Errorf("the run that must not begin is %s", out.State)
			}
			kept.Begin = nil
			w.started(kept)
			w.becomes(kept, engine.Completed)
		}},
		{"E-9", "The payload that a run gets equals the payload given: big integers, text beyond ASCII, deep nesting.", "I-9, D-11, D-24", func(w *world) {
			deep := `[` + strings.Repeat(`{"a":[`, 249) + `12345678901234567890` + strings.Repeat(`]}`, 249) + `]` // the script has a level too
			for _, data := range []string{
				`9007199254740993`, `-0.1e-7`, `1.10`, `"Grüße, 世界 🚀 \u0000 <&> \u2028"`, `{"ключ":["ß",null,true,""]}`, `[]`, deep,
			} {
				run := w.run(Script{Do: Complete, Data: json.RawMessage(data)})
				w.started(run)
				w.sameJSON(run.Payload, w.begun(run).Payload)
			}
		}},
	}
}

// sameJSON checks that two texts mean the same JSON, with every digit of their numbers.
func (w *world) sameJSON(want, got []byte) {
	w.Helper()
	if a, b := w.decoded(want), w.decoded(got); !reflect.DeepEqual(a, b) {
		w.Errorf("got %s, want %s", got, want)
	}
}

func (w *world) decoded(text []byte) (value any) {
	w.Helper()
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&value); err != nil {
		w.Fatalf("%q: %v", text, err)
	}
	return value
}

func refusalRules() []Rule {
	return []Rule{
		{"E-20", "A ref that the run of another job has is taken, whether that run is under way or has ended, and that run is left alone.", "I-16, A-69", func(w *world) {
			running, ended := w.run(Script{Do: Wait}), w.run(Script{Do: Complete})
			w.started(running, ended)
			w.begun(running)
			w.becomes(ended, engine.Completed)
			thief, late, other := w.run(Script{Do: Complete}), w.run(Script{Do: Complete}), w.run(Script{Do: Complete})
			thief.Ref, late.Ref = running.Ref, ended.Ref
			errs := w.start(thief, other, late)
			w.is(errs[0], engine.ErrRefTaken)
			w.ok(errs[1])
			w.is(errs[2], engine.ErrRefTaken)
			w.becomes(other, engine.Completed)
			w.ranOnce(running)
			w.ranOnce(ended)
			if out := w.outcomes(running.Ref)[0]; out.State != engine.Running || out.Job != running.Job {
				w.Errorf("the first run is %+v, want it running for job %s", out, running.Job)
			}
		}},
		{"E-25", "A run keeps the name of the work that it was asked for with, and when; a start for another job finds its ref taken, whatever its work.", "I-16, D-24", func(w *world) {
			asked := time.Now()
			named, plain := w.run(Script{Do: Complete}), w.run(Script{Do: Complete})
			named.Work = "0123456789abcdef0123456789abcdef"
			w.started(named, plain)
			twin := w.run(Script{Do: Complete})
			twin.Ref, twin.Work = named.Ref, named.Work
			w.is(w.start(twin)[0], engine.ErrRefTaken)
			for range 2 { // perhaps under way first, then ended
				out := w.outcomes(named.Ref, plain.Ref)
				if out[0].Work != named.Work || out[1].Work != "" {
					w.Errorf("the work is %q and %q, want %q and none", out[0].Work, out[1].Work, named.Work)
				}
				if age := asked.Sub(out[0].StartedAt).Abs(); age > patience {
					w.Errorf("it was started at %s, and asked for at %s", out[0].StartedAt, asked)
				}
				w.becomes(named, engine.Completed)
			}
		}},
		{"E-21", "A payload that is too large is refused for good, and the others of its batch are started.", "I-8, A-44", func(w *world) {
			large := w.run(Script{Do: Complete, Error: strings.Repeat("x", 2*w.MaxPayload)})
			w.refuses(large, 0)
			w.refuses(large, 1)
			w.refuses(large, 2)
		}},
		{"E-22", "A payload of nearly the largest size arrives whole.", "I-9", func(w *world) {
			run := w.run(Script{Do: Complete, Error: strings.Repeat("x", w.MaxPayload*9/10)})
			w.started(run)
			w.sameJSON(run.Payload, w.begun(run).Payload)
		}},
		{"E-23", "A ref that is too long, empty or not valid UTF-8 is refused for good, and the others of its batch are started.", "I-8, A-44", func(w *world) {
			for _, ref := range []string{strings.Repeat("r", w.MaxRef+1), "", "caf\xe9"} {
				bad := w.run(Script{Do: Complete})
				bad.Ref = ref
				w.refuses(bad, 1)
			}
		}},
		{"E-24", "A ref of the greatest length is one like any other.", "D-24, D-72", func(w *world) {
			run := w.run(Script{Do: Complete})
			run.Ref += strings.Repeat("r", w.MaxRef-len(run.Ref))
			other := run
			other.Ref = run.Ref[:w.MaxRef-1] + "s"
			w.started(run, run, other)
			w.becomes(run, engine.Completed)
			w.becomes(other, engine.Completed)
			w.ranOnce(run)
		}},
	}
}

// refuses checks that the engine refuses only the bad run at a place among two good ones, and refuses it again.
func (w *world) refuses(bad engine.Run, at int) {
	w.Helper()
	good := []engine.Run{w.run(Script{Do: Complete}), w.run(Script{Do: Complete})}
	batch := append(append(append([]engine.Run{}, good[:at]...), bad), good[at:]...)
	for range 2 {
		for i, err := range w.start(batch...) {
			if i == at {
				w.is(err, engine.ErrRefused)
			} else {
				w.ok(err)
			}
		}
	}
	for _, run := range good {
		w.becomes(run, engine.Completed)
	}
	if times := w.Diary.Of(bad.Ref); len(times) > 0 {
		w.Errorf("%.80q was refused and run", bad.Ref)
	}
}
