package storetest

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/await"
)

func awaitRules() []Rule {
	return []Rule{
		{"R-690", "A store tells which jobs have ended and how, and which are not stored; it leaves out unfinished ones.", "I-1", func(w *world) {
			done, dead, left := w.add(sluice.EnqueueOptions{}), w.add(sluice.EnqueueOptions{}), w.add(sluice.EnqueueOptions{Priority: 10})
			for _, c := range w.claim(2) {
				end := sluice.Settlement{ID: c.ID, Token: c.Token, Event: sluice.EventComplete, Result: []byte(`{"cents":7}`)}
				if c.ID == dead {
					end.Event, end.Result, end.Error = sluice.EventBury, nil, "no answer"
				}
				w.ok(w.settle(end))
			}
			unknown := sluice.NewID()
			ends, err := await.Given(w.Other).Ended(w.ctx, []sluice.ID{done, dead, left, unknown})
			w.ok(err)
			equal(w, "ends", len(ends), 3)
			for _, end := range ends {
				switch end.ID {
				case done:
					equal(w, "state", end.State, sluice.StateCompleted)
					equal(w, "result", squeezed(end.Result), `{"cents":7}`)
					w.near("finished at", end.FinishedAt, w.Now())
				case dead:
					equal(w, "state", end.State, sluice.StateDead)
					equal(w, "error", end.Error, "no answer")
				default:
					equal(w, "id", end.ID, unknown)
					equal(w, "state", end.State, sluice.State(""))
				}
			}
		}},
		{"R-890", "After keep_results the result of an ended job is removed and the job stays; whoever asks learns that there was one. A requeued job has a new result.", "", func(w *world) {
			w.save(func(s *sluice.Settings) { s.KeepResults = time.Hour })
			gone, without := w.add(sluice.EnqueueOptions{}), w.add(sluice.EnqueueOptions{Priority: 6})
			claims := w.claims(gone, without)
			w.completes(claims[0], `{"cents":7}`)
			w.completes(claims[1], "")
			w.Advance(30 * time.Minute)
			young := w.add(sluice.EnqueueOptions{})
			w.completes(w.claimOne(), `{"cents":8}`)
			w.pruneAll(100)
			equal(w, "before the hour is over", squeezed(w.job(gone).Result), `{"cents":7}`)
			w.Advance(31 * time.Minute)
			for range 2 {
				w.pruneAll(100)
				w.inState(gone, sluice.StateCompleted)
				equal(w, "result of the job", len(w.job(gone).Result), 0)
				equal(w, "a younger one", squeezed(w.job(young).Result), `{"cents":8}`)
			}
			waiter := await.New(w.Other)
			_, err := await.Result[struct{}](w.ctx, waiter, gone)
			var removed *await.RemovedError
			equal(w, "typed", errors.As(err, &removed) && removed.End.ID == gone && errors.Is(err, sluice.ErrNotFound), true)
			end, err := waiter.Wait(w.ctx, gone)
			w.ok(err)
			equal(w, "removed", end.ResultRemoved, true)
			end, err = waiter.Wait(w.ctx, without)
			w.ok(err)
			equal(w, "there was none", end.ResultRemoved, false)
			w.save(func(s *sluice.Settings) { s.KeepResults = 0 })
			w.Advance(24 * time.Hour)
			w.pruneAll(100)
			equal(w, "without keep_results", squeezed(w.job(young).Result), `{"cents":8}`)
			w.save(func(s *sluice.Settings) { s.KeepResults = time.Hour })
			w.pruneAll(100)
			equal(w, "with it again", len(w.job(young).Result), 0)
		}},
		{"R-891", "Upkeep removes many results in bounded steps, also those of jobs that ended at one instant, and from where it stopped.", "", func(w *world) {
			w.save(func(s *sluice.Settings) { s.KeepResults = time.Hour })
			ids := w.addMany(50)
			var ends []sluice.Settlement
			for _, c := range w.claim(50) {
				ends = append(ends, sluice.Settlement{ID: c.ID, Token: c.Token, Event: sluice.EventComplete, Result: []byte(`1`)})
			}
			errs, err := w.Store.Settle(w.ctx, ends)
			w.ok(errors.Join(append(errs, err)...))
			w.Advance(2 * time.Hour)
			if calls := w.pruneAll(7); calls < 8 {
				w.Errorf("%d calls with a limit of 7 for 50 results", calls)
			}
			kept := 0
			for _, id := range ids {
				kept += len(w.job(id).Result)
			}
			equal(w, "results that are left", kept, 0)
			last := w.add(sluice.EnqueueOptions{})
			w.completes(w.claimOne(), `2`)
			w.Advance(2 * time.Hour)
			if calls := w.pruneAll(7); calls > 2 {
				w.Errorf("%d calls for one more result: it begins at the front", calls)
			}
			equal(w, "the last", len(w.job(last).Result), 0)
		}},
		{"R-1112", "Results are removed, and jobs deleted, after their retention also if the clock was set back since others were.", "I-26", func(w *world) {
			w.save(func(s *sluice.Settings) { s.KeepResults, s.KeepCompleted = time.Hour, 10*time.Hour })
			early := w.add(sluice.EnqueueOptions{})
			w.completes(w.claimOne(), `1`)
			w.Advance(2 * time.Hour)
			w.pruneAll(100)
			equal(w, "before the clock was set back", len(w.job(early).Result), 0)
			w.Advance(-48 * time.Hour)
			late, young := w.add(sluice.EnqueueOptions{}), sluice.ID{}
			w.completes(w.claimOne(), `2`)
			for _, hours := range []time.Duration{2, 3} {
				w.Advance(hours * time.Hour)
				if young.IsZero() {
					young = w.add(sluice.EnqueueOptions{})
					w.completes(w.claimOne(), `3`)
				}
				w.pruneAll(100)
				equal(w, "afterwards", len(w.job(late).Result), 0)
			}
			equal(w, "of a job that ended later", len(w.job(young).Result), 0)
			w.Advance(6 * time.Hour)
			w.pruneAll(100)
			_, err := w.Store.Job(w.ctx, late)
			w.is(err, sluice.ErrNotFound)
			w.inState(young, sluice.StateCompleted)
			w.inState(early, sluice.StateCompleted)
		}},
		{"R-691", "Whoever waits for a job in another process gets its end, whether a holder ends it or a person.", "I-1", func(w *world) {
			waiter := await.New(w.Other)
			ids := make([]sluice.ID, 20)
			var all sync.WaitGroup
			for i := range ids {
				ids[i] = w.add(sluice.EnqueueOptions{})
				all.Go(func() {
					ctx, cancel := context.WithTimeout(w.ctx, 10*time.Minute)
					defer cancel()
					end, err := waiter.Wait(ctx, ids[i])
					var failed *await.FailedError
					if err != nil && !errors.As(err, &failed) || end.ID != ids[i] {
						w.Errorf("waited for %s: %+v, %v", ids[i], end, err)
					}
				})
			}
			for _, c := range w.claim(10) {
				w.ok(w.settle(sluice.Settlement{ID: c.ID, Token: c.Token, Event: sluice.EventComplete}))
			}
			errs, err := w.Store.Cancel(w.ctx, ids, person("enough"))
			w.ok(err)
			for _, err := range errs {
				if err != nil {
					w.is(err, sluice.ErrNotAllowed)
				}
			}
			all.Wait()
		}},
		{"R-980", "A store signals the end of an awaited job to other processes that watch, whether a holder ends it, a person, or a job that replaces it. A signal may be lost.", "[guide](guide/results.md)", func(w *world) {
			if w.Silent {
				return // whoever waits looks each second
			}
			w.watch(w.Store) // it hears who waits
			waits := w.watch(w.Other)
			replacing := sluice.EnqueueOptions{Key: "k", OnDuplicate: sluice.Replace}
			told := func(whose string, end func(sluice.ID)) {
				for range 600 {
					id := w.receipt(replacing).ID
					w.ok(await.Given(w.Other).Await(w.ctx, []sluice.ID{id}))
					end(id)
					if waits.within(time.Second, func(s sluice.Signal) bool { return s.Ended == id }) {
						return
					}
				}
				w.Fatalf("nobody was told of a job that %s had ended", whose)
			}
			told("another job", func(sluice.ID) { w.receipt(replacing) })
			told("a holder", func(sluice.ID) { w.completes(w.claimOne(), "") })
			told("a person", func(id sluice.ID) { w.cancel(person("enough"), id) })
		}},
	}
}

// pruneAll goes through the history once, and returns how many calls that took.
func (w *world) pruneAll(limit int) (calls int) {
	w.Helper()
	after := ""
	for calls == 0 || after != "" {
		out, err := w.Store.Prune(w.ctx, after, limit)
		w.ok(err)
		calls++
		after = out.Next
	}
	return calls
}
