package storetest

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluice-queue/sluice"
)

func keyRules() []Rule {
	return []Rule{
		{"R-10", "A key keeps others out while its job is unfinished; the second caller gets the first one's id. When the job ends, however it ends, the key is free.", "I-7, C-48, C-88", func(w *world) {
			keyed := sluice.EnqueueOptions{Key: "order-42"}
			for _, ending := range []func(id sluice.ID){
				func(sluice.ID) { w.done(by(sluice.EventComplete, w.claimOne())) },
				func(sluice.ID) { w.done(by(sluice.EventBury, w.claimOne())) },
				func(id sluice.ID) { w.ok(w.only(w.Store.Cancel(w.ctx, []sluice.ID{id}, person("test")))) },
			} {
				id := w.add(keyed)
				equal(w, "receipt", w.receipt(keyed), sluice.Receipt{ID: id, Duplicate: true})
				ending(id)
			}
			w.add(keyed)
		}},
		{"R-11", "A key with a window keeps others out until the window has passed, whether its job has ended or not.", "I-7", func(w *world) {
			keyed := sluice.EnqueueOptions{Key: "report", KeyScope: sluice.ForWindow, KeyWindow: time.Hour}
			first := w.add(keyed)
			w.done(by(sluice.EventComplete, w.claimOne()))
			w.Advance(30 * time.Minute)
			equal(w, "receipt", w.receipt(keyed), sluice.Receipt{ID: first, Duplicate: true})
			w.Advance(31 * time.Minute)
			second := w.add(keyed)
			w.Advance(61 * time.Minute)
			third := w.add(keyed)
			equal(w, "the second is another job", second != third, true)
			w.inState(second, sluice.StateQueued)
		}},
		{"R-12", "A key for ever keeps others out for ever.", "I-7", func(w *world) {
			keyed := sluice.EnqueueOptions{Key: "welcome", KeyScope: sluice.ForEver}
			first := w.add(keyed)
			w.done(by(sluice.EventComplete, w.claimOne()))
			w.Advance(5 * 365 * 24 * time.Hour)
			equal(w, "receipt", w.receipt(keyed), sluice.Receipt{ID: first, Duplicate: true})
		}},
		{"R-13", "The same key in another queue is another key.", "I-7", func(w *world) {
			w.add(sluice.EnqueueOptions{Key: "k"})
			other := insertOf(sluice.EnqueueOptions{Key: "k"})
			other.Queue = "refunds"
			equal(w, "duplicate", w.receipts(other)[0].Duplicate, false)
		}},
		{"R-14", "On duplicate, replace cancels the job that waits and takes its place; a job that runs stays.", "I-7", func(w *world) {
			old := w.add(sluice.EnqueueOptions{Key: "k"})
			replacing := sluice.EnqueueOptions{Key: "k", OnDuplicate: sluice.Replace}
			next := w.receipt(replacing)
			equal(w, "replaced", next.Replaced, old)
			w.inState(old, sluice.StateCancelled)
			w.told(old, sluice.EventCancel)
			running := w.claimOne()
			equal(w, "claimed", running.ID, next.ID)
			equal(w, "receipt", w.receipt(replacing), sluice.Receipt{ID: next.ID, Duplicate: true})
			w.done(by(sluice.EventComplete, running))
			w.add(replacing)
		}},
		{"R-15", "On duplicate, coalesce stores one later run behind a job that runs; further ones meet in it, and it starts when the first has ended.", "I-7", func(w *world) {
			coalescing := sluice.EnqueueOptions{Key: "k", OnDuplicate: sluice.Coalesce}
			first := w.add(coalescing)
			equal(w, "receipt while it waits", w.receipt(coalescing), sluice.Receipt{ID: first, Duplicate: true})
			running := w.claimOne()
			later := w.add(coalescing)
			equal(w, "blocked by", w.job(later).BlockedBy, first)
			equal(w, "receipt while it runs", w.receipt(coalescing), sluice.Receipt{ID: later, Duplicate: true})
			w.claimNone("the later run waits for the first")
			w.done(by(sluice.EventRelease, running))
			running = w.claimOne()
			equal(w, "claimed again", running.ID, first)
			w.claimNone("the first is not finished")
			w.done(by(sluice.EventComplete, running))
			equal(w, "claimed after", w.claimOne().ID, later)
			equal(w, "another later run is stored", w.receipt(coalescing).Duplicate, false)
		}},
		{"R-480", "A job that waits and was never handed out carries the newest payload and labels that were coalesced into it; one that has begun keeps its own, and the newest comes after it.", "I-7", func(w *world) {
			coalescing := func(payload string) sluice.Insert {
				in := insertOf(sluice.EnqueueOptions{Key: "k", OnDuplicate: sluice.Coalesce, Labels: map[string]string{"is": payload}})
				in.Payload = []byte(payload)
				return in
			}
			first := w.receipts(coalescing("1"))[0].ID
			equal(w, "met while it waits", w.receipts(coalescing("2"))[0], sluice.Receipt{ID: first, Duplicate: true})
			running := w.claimOne()
			equal(w, "payload of the first", string(running.Payload)+running.Labels["is"], "22")
			later := w.receipts(coalescing("3"))[0].ID
			equal(w, "met in the later run", w.receipts(coalescing("4"))[0], sluice.Receipt{ID: later, Duplicate: true})
			w.done(by(sluice.EventRelease, running))
			equal(w, "met in the later run while the first waits again", w.receipts(coalescing("5"))[0], sluice.Receipt{ID: later, Duplicate: true})
			running = w.claimOne()
			equal(w, "payload of the first, again", string(running.Payload), "2")
			w.done(by(sluice.EventComplete, running))
			running = w.claimOne()
			equal(w, "claimed after it", running.ID, later)
			equal(w, "payload of the later run", string(running.Payload)+running.Labels["is"], "55")
			w.done(by(sluice.EventRetry, running))
			equal(w, "one that has begun keeps its payload", w.receipts(coalescing("6"))[0].Duplicate, false)
			equal(w, "payload of the one that has begun", string(w.claimOne().Payload), "5")
		}},
		{"R-16", "A later run that is cancelled gives its key back to the job that runs.", "I-7", func(w *world) {
			coalescing := sluice.EnqueueOptions{Key: "k", OnDuplicate: sluice.Coalesce}
			first := w.add(coalescing)
			running := w.claimOne()
			later := w.add(coalescing)
			w.ok(w.only(w.Store.Cancel(w.ctx, []sluice.ID{later}, person("not needed"))))
			equal(w, "receipt", w.receipt(sluice.EnqueueOptions{Key: "k"}), sluice.Receipt{ID: first, Duplicate: true})
			w.done(by(sluice.EventComplete, running))
			w.add(coalescing)
		}},
		{"R-17", "When a job and the later run behind it are cancelled at once, the key is free.", "I-7", func(w *world) {
			coalescing := sluice.EnqueueOptions{Key: "k", OnDuplicate: sluice.Coalesce}
			first := w.add(coalescing)
			w.claimOne()
			later := w.add(coalescing)
			errs, err := w.Store.Cancel(w.ctx, []sluice.ID{first, later}, person("both"))
			w.ok(err)
			for _, err := range errs {
				w.ok(err)
			}
			w.add(coalescing)
		}},
		{"R-18", "A key never stands in the way of a retry, release, recovery or requeue of its own job.", "I-7", func(w *world) {
			for _, scope := range []sluice.KeyScope{sluice.WhileUnfinished, sluice.ForWindow, sluice.ForEver} {
				keyed := sluice.EnqueueOptions{Key: "k-" + string(scope), KeyScope: scope}
				if scope == sluice.ForWindow {
					keyed.KeyWindow = 24 * time.Hour
				}
				id := w.add(keyed)
				w.done(by(sluice.EventRetry, w.claimOne()))
				w.done(by(sluice.EventRelease, w.claimOne()))
				w.claimOne()
				w.Advance(2 * time.Minute)
				equal(w, "recovered", w.recover().Requeued, 1)
				w.done(by(sluice.EventBury, w.claimOne()))
				w.ok(w.only(w.Store.Requeue(w.ctx, []sluice.ID{id}, person("again"))))
				equal(w, "receipt", w.receipt(keyed), sluice.Receipt{ID: id, Duplicate: true})
				w.done(by(sluice.EventComplete, w.claimOne()))
			}
		}},
		{"R-19", "Of many callers with one key at once, through any store, exactly one stores a job, and all get its id.", "I-7", func(w *world) {
			for _, callers := range []int{2, 8} {
				keyed := sluice.EnqueueOptions{Key: holder(callers)}
				var wait sync.WaitGroup
				var stored atomic.Int32
				ids := make([]sluice.ID, callers)
				for n := range callers {
					store := w.Store
					if n%2 == 1 {
						store = w.Other
					}
					wait.Go(func() {
						receipts, err := store.Enqueue(w.ctx, []sluice.Insert{insertOf(keyed)})
						if err != nil {
							w.Errorf("enqueue: %v", err)
							return
						}
						if ids[n] = receipts[0].ID; !receipts[0].Duplicate {
							stored.Add(1)
						}
					})
				}
				wait.Wait()
				equal(w, "stored", int(stored.Load()), 1)
				for _, id := range ids {
					equal(w, "id", id, ids[0])
				}
			}
		}},
		{"R-120", "A job that is sent again, after another took its place, stays as it is, and so does the other.", "I-7, I-20", func(w *world) {
			first := insertOf(sluice.EnqueueOptions{Key: "k", OnDuplicate: sluice.Replace})
			w.receipts(first)
			second := w.receipt(sluice.EnqueueOptions{Key: "k", OnDuplicate: sluice.Replace}).ID
			equal(w, "receipt", w.receipts(first)[0], sluice.Receipt{ID: first.ID, Duplicate: true})
			w.inState(first.ID, sluice.StateCancelled)
			w.inState(second, sluice.StateQueued)
			running := w.claimOne()
			equal(w, "claimed", running.ID, second)

			ended := insertOf(sluice.EnqueueOptions{Key: "c", OnDuplicate: sluice.Coalesce})
			w.receipts(ended)
			w.done(by(sluice.EventComplete, w.claimOne()))
			holder := w.add(sluice.EnqueueOptions{Key: "c"})
			w.claimOne()
			equal(w, "receipt", w.receipts(ended)[0], sluice.Receipt{ID: ended.ID, Duplicate: true})
			equal(w, "a third", w.receipt(sluice.EnqueueOptions{Key: "c"}), sluice.Receipt{ID: holder, Duplicate: true})
		}},
		{"R-538", "A job that is sent again after its key's time is over does not keep others out anew.", "I-7", func(w *world) {
			w.save(func(*sluice.Settings) {})
			first := insertOf(sluice.EnqueueOptions{Key: "k", KeyScope: sluice.ForWindow, KeyWindow: time.Hour})
			w.receipts(first)
			w.done(by(sluice.EventComplete, w.claimOne()))
			w.Advance(2 * time.Hour)
			_, err := w.Store.Prune(w.ctx, "", 100) // the key, too
			w.ok(err)
			equal(w, "receipt", w.receipts(first)[0], sluice.Receipt{ID: first.ID, Duplicate: true})
			equal(w, "another is a duplicate", w.receipt(sluice.EnqueueOptions{Key: "k"}).Duplicate, false)
		}},
		{"R-122", "An uncertain job whose key went on to another unfinished one is not requeued.", "I-7", func(w *world) {
			w.add(sluice.EnqueueOptions{Key: "k"})
			c := w.claimOne()
			w.done(by(sluice.EventDispatch, c))
			w.add(sluice.EnqueueOptions{Key: "k", OnDuplicate: sluice.Coalesce})
			w.done(by(sluice.EventDoubt, c))
			w.is(w.only(w.Store.Requeue(w.ctx, []sluice.ID{c.ID}, person("again"))), sluice.ErrDuplicate)
			w.inState(c.ID, sluice.StateUncertain)
		}},
		{"R-121", "A job does not coalesce behind one whose key is for a window or for ever: it is a duplicate.", "I-7", func(w *world) {
			for _, scope := range []sluice.EnqueueOptions{
				{Key: "ever", KeyScope: sluice.ForEver},
				{Key: "window", KeyScope: sluice.ForWindow, KeyWindow: time.Hour},
			} {
				first := w.add(scope)
				running := w.claimOne()
				coalescing := sluice.EnqueueOptions{Key: scope.Key, OnDuplicate: sluice.Coalesce}
				equal(w, "receipt", w.receipt(coalescing), sluice.Receipt{ID: first, Duplicate: true})
				w.done(by(sluice.EventComplete, running))
				equal(w, "receipt", w.receipt(coalescing), sluice.Receipt{ID: first, Duplicate: true})
			}
		}},
		{"R-320", "Looking a job up tells how long its key still keeps others out, and a job without a scope keeps nobody out.", "C-7, I-7", func(w *world) {
			scope := func(id sluice.ID, want sluice.KeyScope, until time.Time) {
				w.Helper()
				j := w.job(id)
				equal(w, "scope", j.KeyScope, want)
				equal(w, "a window", j.KeyUntil.IsZero(), until.IsZero())
				w.near("its end", j.KeyUntil, until)
			}
			plain := w.add(sluice.EnqueueOptions{Key: "k"})
			scope(plain, sluice.WhileUnfinished, time.Time{})
			w.done(by(sluice.EventComplete, w.claimOne()))
			scope(plain, "", time.Time{})
			window := w.add(sluice.EnqueueOptions{Key: "w", KeyScope: sluice.ForWindow, KeyWindow: time.Hour})
			scope(window, sluice.ForWindow, w.Now().Add(time.Hour))
			w.Advance(61 * time.Minute)
			scope(window, "", time.Time{})
			ever := w.add(sluice.EnqueueOptions{Key: "e", KeyScope: sluice.ForEver})
			w.claim(10)
			scope(ever, sluice.ForEver, time.Time{})
			scope(w.add(sluice.EnqueueOptions{}), "", time.Time{})
		}},
	}
}
