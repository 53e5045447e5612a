package storetest

import (
	"context"
	"fmt"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/alert"
	"github.com/sluice-queue/sluice/operation"
	"github.com/sluice-queue/sluice/schedule"
	"github.com/sluice-queue/sluice/search"
)

// againRules are about acts that are sent again because their answers were lost.
func againRules() []Rule {
	return []Rule{
		{"R-1180", "An act that has paused, resumed, slowed or stopped an operation, sent again to whichever process, changes nothing and gives the operation as it is, also after it went on or ended; another act is refused.", "[guide](guide/http.md)", func(w *world) {
			began := w.begin(operation.Operation{Kind: operation.KindCancel, Query: search.Query{Queue: queue}})
			slow := func(ctx context.Context, store sluice.Store, id sluice.ID, act sluice.Act) (operation.Operation, error) {
				return operation.SetRate(ctx, store, id, sluice.RatePerSecond(7), act)
			}
			steps := []func(context.Context, sluice.Store, sluice.ID, sluice.Act) (operation.Operation, error){operation.Pause, operation.Resume, slow, operation.Stop}
			var acts []sluice.Act
			for _, do := range steps {
				act := person("the bank is down")
				acts = append(acts, act)
				_, err := do(w.ctx, w.Store, began.ID, act)
				w.ok(err)
			}
			now, err := operation.Read(w.ctx, w.Store, began.ID)
			w.ok(err)
			for i, do := range steps {
				for _, store := range []sluice.Store{w.Store, w.Other} {
					again, err := do(w.ctx, store, began.ID, acts[i])
					w.ok(err)
					equal(w, "version", again.Version, now.Version)
					equal(w, "state", again.State, operation.StateStopped)
				}
				_, err := do(w.ctx, w.Other, began.ID, person("another act"))
				w.is(err, sluice.ErrNotAllowed)
			}
			equal(w, "audit entries", len(w.operations(began.ID)), 1+len(steps))
		}},
		{"R-1181", "An act that has ended a silence, sent again to whichever process, changes nothing; another act, or the same on another silence, does not find it.", "[guide](guide/http.md)", func(w *world) {
			port := alert.Given(w.Store)
			var ids []sluice.ID
			for range 2 {
				silence, err := port.SaveSilence(w.ctx, alert.Silence{ID: sluice.NewID(), Rule: "dead-letters", Queue: queue, During: time.Hour}, person("the bank moves"))
				w.ok(err)
				ids = append(ids, silence.ID)
			}
			act := person("it has moved")
			w.ok(port.EndSilence(w.ctx, ids[0], act))
			w.ok(port.EndSilence(w.ctx, ids[0], act))
			w.ok(alert.Given(w.Other).EndSilence(w.ctx, ids[0], act))
			w.is(alert.Given(w.Other).EndSilence(w.ctx, ids[0], person("again")), sluice.ErrNotFound)
			equal(w, "silences", len(w.book().Silences), 1)
			w.ok(alert.Given(w.Other).EndSilence(w.ctx, ids[1], person("that too")))
			w.is(port.EndSilence(w.ctx, ids[1], act), sluice.ErrNotFound)
		}},
		{"R-1182", "An act that has fired a schedule for instants, sent again to whichever process, makes no job and gives the same fires with their jobs.", "[guide](guide/http.md)", func(w *world) {
			w.schedule("daily", schedule.Definition{Cron: "@daily"})
			instants := []time.Time{time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2020, 1, 2, 0, 0, 0, 0, time.UTC)}
			_, err := schedule.FireFor(w.ctx, w.Store, "daily", instants[:1], person("the first"), nil)
			w.ok(err)
			act := person("both")
			first, err := schedule.FireFor(w.ctx, w.Store, "daily", instants, act, nil)
			w.ok(err)
			for _, store := range []sluice.Store{w.Store, w.Other} {
				again, err := schedule.FireFor(w.ctx, store, "daily", instants, act, nil)
				w.ok(err)
				equal(w, "fires", fmt.Sprint(again), fmt.Sprint(first))
			}
		}},
	}
}
