package storetest

import (
	"bytes"
	"slices"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/hold"
	"github.com/sluice-queue/sluice/operation"
	"github.com/sluice-queue/sluice/search"
)

func holdRules() []Rule {
	return slices.Concat([]Rule{
		{"R-640", "A held job stays queued, and no claim takes it until somebody releases it; the hold says why, who and since when, and the audit has both acts.", "C-9", func(w *world) {
			id, other := w.add(sluice.EnqueueOptions{}), w.add(sluice.EnqueueOptions{Delay: time.Hour})
			act := person("on probation")
			w.hold(act, id)
			held := w.holds(hold.Filter{})
			equal(w, "holds", len(held), 1)
			w.near("held at", held[0].At, w.Now())
			equal(w, "hold", held[0], hold.Held{JobID: id, Queue: queue, Reason: "on probation", By: "ada", At: held[0].At})
			j := w.inState(id, sluice.StateQueued)
			equal(w, "blocked by", j.BlockedBy, id)
			w.claimNone("it is held")
			equal(w, "depth", w.depth().Blocked, 1)
			e := w.told(id, audit.EventHold)
			equal(w, "reason", e.Reason, "on probation")
			equal(w, "act", e.ActID, act.ID)
			w.ok(w.only(w.Store.Reschedule(w.ctx, []sluice.ID{id}, time.Time{}, person("now"))))
			w.claimNone("it is held, though due")
			w.release(person("all is well"), id)
			e = w.told(id, audit.EventReleaseHold)
			equal(w, "reason", e.Reason, "all is well")
			equal(w, "from", e.From, sluice.StateQueued)
			equal(w, "claimed", w.claimOne().ID, id)
			equal(w, "holds", len(w.holds(hold.Filter{})), 0)
			w.inState(other, sluice.StateQueued)
		}},
		{"R-641", "Only a waiting job can be held, and only a held one released; one that is held already keeps its first hold. Unknown jobs are not found.", "C-9", func(w *world) {
			waiting, claimed, ended := w.add(sluice.EnqueueOptions{Delay: time.Hour}), w.add(sluice.EnqueueOptions{}), w.add(sluice.EnqueueOptions{Delay: time.Hour})
			w.claimOne()
			w.cancel(person("enough"), ended)
			ids := []sluice.ID{claimed, sluice.NewID(), waiting, ended}
			errs := w.each(w.port().Hold(w.ctx, ids, person("wait")))
			w.is(errs[0], sluice.ErrNotAllowed)
			w.is(errs[1], sluice.ErrNotFound)
			w.ok(errs[2])
			w.is(errs[3], sluice.ErrNotAllowed)
			w.is(w.only(w.port().Hold(w.ctx, []sluice.ID{waiting}, person("again"))), sluice.ErrNotAllowed)
			equal(w, "reason", w.holds(hold.Filter{})[0].Reason, "wait")
			errs = w.each(w.port().Release(w.ctx, ids, person("go")))
			w.is(errs[0], sluice.ErrNotAllowed)
			w.is(errs[1], sluice.ErrNotFound)
			w.ok(errs[2])
			w.is(errs[3], sluice.ErrNotAllowed)
		}},
		{"R-642", "A hold or a release that is sent again gets its first answer, and does nothing, whatever became of the job.", "C-9", func(w *world) {
			id := w.add(sluice.EnqueueOptions{})
			first, second := person("wait"), person("go")
			for range 2 {
				w.hold(first, id)
			}
			for range 2 {
				w.release(second, id)
			}
			w.hold(first, id)
			equal(w, "holds", len(w.holds(hold.Filter{})), 0)
			w.hold(person("wait again"), id)
			w.release(second, id)
			equal(w, "holds", len(w.holds(hold.Filter{})), 1)
		}},
		{"R-643", "A job that is enqueued with a hold is held from the first moment on; a duplicate holds nothing, and a job that is sent again is not held again.", "C-9", func(w *world) {
			insert := insertOf(sluice.EnqueueOptions{Hold: "check it", Tenant: "acme"})
			keyed := insertOf(sluice.EnqueueOptions{Key: "k"})
			twin := insertOf(sluice.EnqueueOptions{Key: "k", Hold: "twin"})
			ordered := insertOf(sluice.EnqueueOptions{OrderKey: "o", Hold: "first"})
			behind := insertOf(sluice.EnqueueOptions{OrderKey: "o"})
			receipts := w.receipts(insert, keyed, twin, ordered, behind)
			equal(w, "duplicate", receipts[2].Duplicate, true)
			held := w.holds(hold.Filter{})
			equal(w, "holds", len(held), 2)
			for _, h := range held {
				equal(w, "by", h.By, hold.ByEnqueue)
			}
			equal(w, "told by", w.told(insert.ID, audit.EventHold).Actor, hold.ByEnqueue)
			w.claims(keyed.ID)
			w.release(person("go"), insert.ID, ordered.ID)
			equal(w, "sent again", w.receipts(insert)[0], sluice.Receipt{ID: insert.ID, Duplicate: true})
			equal(w, "holds", len(w.holds(hold.Filter{})), 0)
			w.claims(insert.ID, ordered.ID)
			equal(w, "behind", w.job(behind.ID).BlockedBy, ordered.ID)
		}},
		{"R-644", "Holds are listed page by page, the newest job first, of all queues or of one, and of named jobs.", "C-9", func(w *world) {
			var ids []sluice.ID
			for range 5 {
				ids = append(ids, w.add(sluice.EnqueueOptions{Hold: "wait"}))
			}
			other := insertOf(sluice.EnqueueOptions{Hold: "wait"})
			other.Queue = "invoices"
			w.receipts(other)
			slices.SortFunc(ids, func(a, b sluice.ID) int { return bytes.Compare(b[:], a[:]) })
			equal(w, "of all queues", len(w.holds(hold.Filter{})), 6)
			for _, size := range []int{1, 2, 5} {
				var got []sluice.ID
				for before := (sluice.ID{}); ; {
					page := w.holds(hold.Filter{Queue: queue, Before: before, Limit: size})
					if len(page) == 0 {
						break
					}
					for _, h := range page {
						got, before = append(got, h.JobID), h.JobID
					}
				}
				if !slices.Equal(got, ids) {
					w.Fatalf("pages of %d list %v, want %v", size, got, ids)
				}
			}
			equal(w, "of named jobs", len(w.holds(hold.Filter{Jobs: []sluice.ID{ids[1], other.ID, sluice.NewID()}})), 2)
			equal(w, "of no job", len(w.holds(hold.Filter{Jobs: []sluice.ID{}})), 0)
			found, err := search.Jobs(w.ctx, w.Store, search.Query{Queue: queue, Held: true}, 2)
			w.ok(err)
			equal(w, "found", len(found.Jobs), 2)
		}},
	}, holdWaitRules())
}

// holdWaitRules are about held jobs that wait for others, or others for them.
func holdWaitRules() []Rule {
	return []Rule{
		{"R-645", "A released job waits for that which it would wait for if nobody had held it: its order, the jobs that it runs after, and the job with its key.", "C-9, I-7", func(w *world) {
			first := w.add(sluice.EnqueueOptions{OrderKey: "o"})
			second := w.add(sluice.EnqueueOptions{OrderKey: "o"})
			third := w.add(sluice.EnqueueOptions{OrderKey: "o"})
			w.hold(person("wait"), second)
			w.release(person("go"), second)
			equal(w, "still behind", w.job(second).BlockedBy, first)
			w.hold(person("wait"), second)
			w.finishes(first)
			w.claimNone("the next in order is held")
			equal(w, "behind the held", w.job(third).BlockedBy, second)
			w.release(person("go"), second)
			w.finishes(second)
			w.finishes(third)

			before := w.add(sluice.EnqueueOptions{})
			after := w.add(sluice.EnqueueOptions{After: []sluice.ID{before}, Hold: "wait"})
			w.release(person("go"), after)
			equal(w, "after", w.job(after).BlockedBy, before)
			w.hold(person("wait"), after)
			w.finishes(before)
			w.claimNone("it is held")
			w.release(person("go"), after)
			w.finishes(after)

			w.add(sluice.EnqueueOptions{Key: "k"})
			running := w.claimOne()
			coalesced := w.add(sluice.EnqueueOptions{Key: "k", OnDuplicate: sluice.Coalesce, Hold: "wait"})
			w.release(person("go"), coalesced)
			equal(w, "behind the key", w.job(coalesced).BlockedBy, running.ID)
			w.hold(person("wait"), coalesced)
			w.done(by(sluice.EventComplete, running))
			w.claimNone("it is held")
			w.release(person("go"), coalesced)
			w.finishes(coalesced)
		}},
		{"R-646", "A hold ends with the job's life: cancelled, expired, replaced, undone, or cancelled because a job before it failed. A requeued job is not held.", "C-9", func(w *world) {
			cancelled := w.add(sluice.EnqueueOptions{Hold: "wait"})
			w.cancel(person("enough"), cancelled)
			w.ok(w.only(w.Store.Requeue(w.ctx, []sluice.ID{cancelled}, person("again"))))
			w.finishes(cancelled)

			expiring := w.add(sluice.EnqueueOptions{Hold: "wait", ExpiresAt: w.Now().Add(time.Minute)})
			w.Advance(time.Hour)
			_, err := w.Store.Expire(w.ctx, 100, "upkeep")
			w.ok(err)
			w.inState(expiring, sluice.StateCancelled)

			replaced := w.add(sluice.EnqueueOptions{Key: "k", Hold: "wait"})
			w.finishes(w.add(sluice.EnqueueOptions{Key: "k", OnDuplicate: sluice.Replace}))
			w.inState(replaced, sluice.StateCancelled)

			undone := w.add(sluice.EnqueueOptions{})
			w.cancel(person("enough"), undone)
			w.ok(w.only(w.Store.Requeue(w.ctx, []sluice.ID{undone}, person("again"))))
			w.hold(person("wait"), undone)
			w.ok(w.only(w.Store.Requeue(w.ctx, []sluice.ID{undone}, undo())))
			w.inState(undone, sluice.StateCancelled)

			before := w.add(sluice.EnqueueOptions{})
			after := w.add(sluice.EnqueueOptions{After: []sluice.ID{before}, Hold: "wait"})
			w.cancel(person("enough"), before)
			w.inState(after, sluice.StateCancelled)
			equal(w, "holds", len(w.holds(hold.Filter{})), 0)
		}},
		{"R-647", "If a held job with a key ends, a running job that it would follow has the key again; a job that replaces it waits for the running one.", "C-9", func(w *world) {
			w.add(sluice.EnqueueOptions{Key: "k"})
			running := w.claimOne()
			coalesced := w.add(sluice.EnqueueOptions{Key: "k", OnDuplicate: sluice.Coalesce})
			w.hold(person("wait"), coalesced)
			replacing := w.add(sluice.EnqueueOptions{Key: "k", OnDuplicate: sluice.Replace, Hold: "wait too"})
			w.inState(coalesced, sluice.StateCancelled)
			w.cancel(person("enough"), replacing)
			equal(w, "holder of the key", w.receipt(sluice.EnqueueOptions{Key: "k"}), sluice.Receipt{ID: running.ID, Duplicate: true})
			again := w.add(sluice.EnqueueOptions{Key: "k", OnDuplicate: sluice.Coalesce, Hold: "wait"})
			free := w.add(sluice.EnqueueOptions{Key: "k", OnDuplicate: sluice.Replace})
			w.inState(again, sluice.StateCancelled)
			equal(w, "behind the running one", w.job(free).BlockedBy, running.ID)
			w.done(by(sluice.EventComplete, running))
			w.finishes(free)
		}},
		{"R-648", "A held job with an orphan run waits for both: for the release and for the end of the run.", "C-9, D-34", func(w *world) {
			for _, releaseFirst := range []bool{true, false} {
				c := w.intended()
				w.cancel(person("enough"), c.ID)
				run := w.strays()[0]
				w.requeued(c.ID, false)
				w.hold(person("wait"), c.ID)
				if releaseFirst {
					w.release(person("go"), c.ID)
					w.claimNone("its run may be open")
					w.forget(w.Store, run)
				} else {
					w.forget(w.Store, run)
					w.claimNone("it is held")
					_, err := w.Store.Repair(w.ctx, "upkeep")
					w.ok(err)
					w.claimNone("it is held")
					w.release(person("go"), c.ID)
				}
				w.finishes(c.ID)
			}
		}},
		{"R-649", "A held job leaves the queue of its tenant, which goes on with its other jobs, and comes back when it is released.", "C-9", func(w *world) {
			w.save(func(s *sluice.Settings) { s.Fair = true })
			held, next := w.addTo("acme", 5), w.addTo("acme", 5)
			w.addTo("bolt", 5)
			w.hold(person("wait"), held)
			for range 2 {
				w.finishAny()
			}
			w.inState(next, sluice.StateCompleted)
			w.claimNone("the last is held")
			equal(w, "blocked", w.depth().Blocked, 1)
			w.release(person("go"), held)
			equal(w, "ready", w.depth().Ready, 1)
			w.finishes(held)
		}},
		{"R-650", "An operation holds all waiting jobs that match, and another releases all that are held.", "C-9, E-10", func(w *world) {
			w.addMany(5)
			kept := w.add(sluice.EnqueueOptions{Hold: "by hand"})
			held := w.carriedOut(operation.Operation{Kind: operation.KindHold, Query: search.Query{Queue: queue}})
			equal(w, "held", held.Done, 5)
			equal(w, "skipped", held.Skipped, 0)
			equal(w, "holds", len(w.holds(hold.Filter{})), 6)
			w.claimNone("all are held")
			w.cancel(person("enough"), kept)
			released := w.carriedOut(operation.Operation{Kind: operation.KindRelease, Query: search.Query{Queue: queue}})
			equal(w, "released", released.Done, 5)
			equal(w, "claimed", len(w.claim(10)), 5)
		}},
		{"R-1210", "The limit of an operation that holds jobs counts only jobs that nobody held before.", "[guide](guide/operations.md)", func(w *world) {
			ids := w.addMany(6)
			w.hold(person("by hand"), ids[2:]...)
			held := w.carriedOut(operation.Operation{Kind: operation.KindHold, Query: search.Query{Queue: queue}, Limit: 2})
			equal(w, "held", held.Done, 2)
			equal(w, "skipped", held.Skipped, 0)
			equal(w, "holds", len(w.holds(hold.Filter{})), 6)
		}},
		{"R-972", "A held job keeps back those behind it in its order, and none before it that came back: those run, and the held one after them.", "C-5, C-9", func(w *world) {
			first, second, third, last := w.add(ordered("o")), w.add(ordered("o")), w.add(ordered("o")), w.add(ordered("o"))
			for _, id := range []sluice.ID{first, second} {
				w.done(by(sluice.EventBury, w.claims(id)[0]))
			}
			for _, id := range []sluice.ID{first, second} {
				w.ok(w.only(w.Store.Requeue(w.ctx, []sluice.ID{id}, person("mended"))))
			}
			equal(w, "behind the one that was let go", w.job(first).BlockedBy, third)
			w.hold(person("wait"), third)
			running := w.claims(first)[0]
			w.release(person("go"), third)
			w.claimNone("the first runs")
			w.done(by(sluice.EventComplete, running))
			w.finishes(second, third, last)
		}},
		{"R-973", "Jobs of one order that are all held run when they are released, in whatever order that happens.", "C-5, C-9", func(w *world) {
			for n, turns := range [][]int{{0, 1}, {1, 0}} {
				ids := []sluice.ID{w.add(ordered(holder(n))), w.add(ordered(holder(n)))}
				w.done(by(sluice.EventBury, w.claims(ids[0])[0]))
				w.ok(w.only(w.Store.Requeue(w.ctx, ids[:1], person("mended"))))
				equal(w, "behind the one that was let go", w.job(ids[0]).BlockedBy, ids[1])
				w.hold(person("wait"), ids[0])
				w.hold(person("wait"), ids[1])
				for _, i := range turns {
					w.release(person("go"), ids[i])
				}
				w.finishes(ids...)
			}
		}},
	}
}

func (w *world) port() hold.Store { return hold.Given(w.Store) }

// hold holds jobs, all of them.
func (w *world) hold(act sluice.Act, ids ...sluice.ID) {
	w.Helper()
	w.ok(hold.Hold(w.ctx, w.Store, ids, act))
}

// release releases jobs, all of them, through the other store.
func (w *world) release(act sluice.Act, ids ...sluice.ID) {
	w.Helper()
	w.ok(hold.Release(w.ctx, w.Other, ids, act))
}

func (w *world) holds(filter hold.Filter) []hold.Held {
	w.Helper()
	found, err := hold.List(w.ctx, w.Other, filter)
	w.ok(err)
	return found
}

func (w *world) depth() sluice.Depth {
	w.Helper()
	d, err := w.Store.Depth(w.ctx, queue, 100)
	w.ok(err)
	return d
}

// finishAny completes one job, whichever a claim brings.
func (w *world) finishAny() {
	w.Helper()
	w.done(by(sluice.EventComplete, w.claimOne()))
}

// carriedOut begins an operation and carries it out to its end.
func (w *world) carriedOut(op operation.Operation) operation.Operation {
	w.Helper()
	o := w.begin(op)
	for range 100 {
		var err error
		if o, _, err = operation.CarryOut(w.ctx, w.Store, o, "upkeep", nil); o.State.Ended() {
			w.ok(err)
			return o
		}
	}
	w.Fatalf("the operation has not ended: %+v", o)
	return o
}
