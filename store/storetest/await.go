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
	}
}
