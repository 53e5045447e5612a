package storetest

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/engine"
)

// openRunRules say that a run counts until its engine says that it has ended, whatever has become of its job.
func openRunRules() []Rule {
	return []Rule{
		{"R-460", "A job that is requeued while a run of it may be open waits, until the last of its runs is forgotten; then it goes at once. Nobody lets it go before, and only the job itself waits.", "I-16", func(w *world) {
			for _, c := range []*sluice.Claim{w.intended(), w.dispatched("named-otherwise")} {
				w.cancel(person("enough"), c.ID)
				w.requeued(c.ID, false)
				job := w.inState(c.ID, sluice.StateQueued)
				equal(w, "generation", job.Generation, 2)
				equal(w, "waits for itself", job.BlockedBy, c.ID)
				w.claimNone("its run may be open")
				_, err := w.Store.Repair(w.ctx, "upkeep")
				w.ok(err)
				w.ok(w.only(w.Store.Reschedule(w.ctx, []sluice.ID{c.ID}, time.Time{}, person("now"))))
				w.claimNone("its run may be open")
				w.add(sluice.EnqueueOptions{})
				w.done(by(sluice.EventComplete, w.claimOne()))

				runs := w.strays()
				w.forget(w.Other, runs[0])
				next := w.claimOne()
				equal(w, "claimed", next.ID, c.ID)
				equal(w, "of generation", next.Generation, 2)
				w.done(by(sluice.EventComplete, next))
				equal(w, "runs", len(w.strays()), 0)
			}
		}},
		{"R-461", "Of several runs of a job that may be open, the next waits for every one, also for that of a job which was buried as poison; a job that is cancelled while it waits makes none, and waits again when it is requeued.", "I-16", func(w *world) {
			c := w.intended()
			bury := by(sluice.EventBury, c)
			bury.Poison = true
			w.done(bury)
			act := person("they may overlap")
			act.BesideOpenRun = true
			w.ok(w.only(w.Store.Requeue(w.ctx, []sluice.ID{c.ID}, act)))
			again := w.claimOne()
			in := intentOf(again)
			in.Ref += "-g2"
			w.ok(w.only(engine.Given(w.Store).RecordIntent(w.ctx, []engine.Intent{in})))
			w.cancel(person("enough"), c.ID)
			w.requeued(c.ID, false)
			w.cancel(person("enough of that"), c.ID)
			equal(w, "runs", len(w.strays()), 2)
			w.requeued(c.ID, false)
			w.claimNone("the second run may be open")
			w.forget(w.Store, engine.OrphanRun{JobID: c.ID, Ref: refOf(c)})
			w.claimNone("the second run may be open: nobody has decided for that one")
			w.forget(w.Store, engine.OrphanRun{JobID: c.ID, Ref: in.Ref})
			equal(w, "generation", w.claimOne().Generation, 4)
		}},
		{"R-462", "A person may let a job run beside a run that may be open: the requeue does not wait then, the audit tells for which run, and the run stays listed. A requeue that is refused decides nothing.", "I-16, D-26", func(w *world) {
			c := w.dispatched("")
			w.cancel(person("enough"), c.ID)
			w.requeued(c.ID, false)
			act := person("the bank says that it hangs")
			act.BesideOpenRun = true
			w.is(w.only(w.Store.Requeue(w.ctx, []sluice.ID{c.ID}, act)), sluice.ErrNotAllowed)
			w.claimNone("it waits already")
			w.cancel(person("so be it"), c.ID)
			for range 2 { // sent again because an answer was lost
				w.ok(w.only(w.Other.Requeue(w.ctx, []sluice.ID{c.ID}, act)))
			}
			told := w.audit(c.ID)[3]
			equal(w, "told", told.Event, audit.EventBeside)
			equal(w, "by", told.Actor, act.By)
			equal(w, "reason", told.Reason, act.Reason)
			var run struct{ Engine, Ref string }
			w.ok(json.Unmarshal(told.After, &run))
			equal(w, "engine", run.Engine, engineName)
			equal(w, "ref", run.Ref, refOf(c))
			equal(w, "claimed", w.claimOne().ID, c.ID)
			if runs := w.strays(); len(runs) != 1 || !runs[0].Beside {
				w.Fatalf("the orphan runs are %+v", runs)
			}
		}},
		{"R-463", "A requeued job that has its place among others waits for its run and for them, in whatever order they end; those behind it wait for it.", "I-16, C-5", func(w *world) {
			for _, runFirst := range []bool{true, false} {
				first := w.orderedAs("account-1")
				c := w.claimOne()
				equal(w, "claimed", c.ID, first)
				w.ok(w.intend(c))
				second := w.orderedAs("account-1")
				w.cancel(person("enough"), first)
				held := w.claimOne()
				equal(w, "the next of the order", held.ID, second)
				third := w.orderedAs("account-1")
				w.requeued(first, false)
				end := []func(){func() { w.forget(w.Store, engine.OrphanRun{JobID: first, Ref: refOf(c)}) }, func() { w.done(by(sluice.EventComplete, held)) }}
				if !runFirst {
					slices.Reverse(end)
				}
				end[0]()
				w.claimNone("one of both is open")
				end[1]()
				w.finishes(first, third)
			}
		}},
		{"R-464", "A job that waits for a run of its own keeps its key, and gives it back when it is cancelled.", "I-7, I-16", func(w *world) {
			options := sluice.EnqueueOptions{Key: "payment-1"}
			id := w.add(options)
			c := w.claimOne()
			w.ok(w.intend(c))
			w.cancel(person("enough"), id)
			w.requeued(id, false)
			twin := w.receipt(options)
			equal(w, "the twin is a duplicate of", twin, sluice.Receipt{ID: id, Duplicate: true})
			w.cancel(person("enough again"), id)
			equal(w, "the next is one", w.receipt(options).Duplicate, false)
			w.is(w.only(w.Store.Requeue(w.ctx, []sluice.ID{id}, person("again"))), sluice.ErrDuplicate)
		}},
		{"R-465", "The run of an ended job counts as in flight of its queue until it is forgotten, and room is told at once; also when the job was deleted.", "I-10, I-17", func(w *world) {
			w.save(func(s *sluice.Settings) { s.Concurrency = 2 })
			first, second := w.intended(), w.dispatched("")
			w.cancel(person("enough"), first.ID, second.ID)
			w.ok(w.only(w.Store.DeleteJobs(w.ctx, []sluice.ID{second.ID}, person("gone"))))
			last := w.add(sluice.EnqueueOptions{})
			w.limitedTo(0)
			equal(w, "in flight", w.position(last).InFlight, 2)
			depth, err := w.Store.Depth(w.ctx, queue, sluice.DepthLimit)
			w.ok(err)
			equal(w, "orphan runs", depth.OrphanRuns, 2)
			equal(w, "in flight of the depth", depth.InFlight(), 2)
			runs := w.strays()
			heard := w.watch(w.Store)
			w.forget(w.Store, runs[0])
			heard.wait(w, "room", wakes)
			w.limitedTo(1)
			w.forget(w.Store, runs[1])
			equal(w, "in flight", w.position(last).InFlight, 1)
		}},
		{"R-466", "The run of an ended job counts as in flight of its tenant until it is forgotten, in the claims, in what is told of the tenant, and of nobody else; then the tenant's next job goes at once.", "I-10, I-17", func(w *world) {
			w.save(func(s *sluice.Settings) { s.TenantConcurrency = 1 })
			w.addOf("acme", 3)
			w.addOf("globex", 2)
			for n := range 2 {
				claims := w.claimFrom(w.Store, 10).Jobs
				if n > 0 {
					equal(w, "claimed in round 2", len(claims), 1)
				}
				for _, c := range claims {
					w.ok(w.intend(c))
					w.cancel(person("enough"), c.ID)
					if c.Tenant == "globex" {
						w.forget(w.Store, engine.OrphanRun{JobID: c.ID, Ref: refOf(c)})
					}
				}
			}
			equal(w, "claimed while a run of acme's may be open", len(w.claimFrom(w.Other, 10).Jobs), 0)
			runs := w.strays()
			equal(w, "runs", len(runs), 1)
			equal(w, "tenant", runs[0].Tenant, "acme")
			waiting := w.addTo("acme", 1)
			position := w.position(waiting)
			equal(w, "held", position.Held, 1)
			if !slices.Equal(position.Holding, []sluice.ID{runs[0].JobID}) {
				w.Fatalf("held by %v", position.Holding)
			}
			for _, of := range w.flowOf(5).Tenants {
				equal(w, "in flight of "+of.Tenant, of.InFlight, 1)
				equal(w, "tenant", of.Tenant, "acme")
			}
			w.forget(w.Store, runs[0])
			claims := w.claimFrom(w.Store, 10).Jobs
			equal(w, "claimed when it had ended", len(claims), 1)
			equal(w, "claimed", claims[0].ID, waiting)
		}},
		{"R-467", "With any number of claimers, cancels and runs that end late, a tenant never has more runs that may be open than its concurrency.", "I-10", func(w *world) {
			w.save(func(s *sluice.Settings) { s.TenantConcurrency, s.Concurrency = 2, 5 })
			for _, tenant := range []string{"a", "b", "c", "d"} {
				w.addOf(tenant, 5)
			}
			open := make(map[string]int)
			for ended := 0; ended < 20; {
				for _, c := range w.claimFrom(w.Store, 10).Jobs {
					open[c.Tenant]++
					open[""]++
					w.ok(w.intend(c))
					w.cancel(person("enough"), c.ID)
				}
				if open["a"] > 2 || open["b"] > 2 || open["c"] > 2 || open["d"] > 2 || open[""] > 5 {
					w.Fatalf("open are %v", open)
				}
				runs := w.strays()
				if len(runs) == 0 {
					w.Fatalf("nothing goes on after %d", ended)
				}
				run := runs[ended%len(runs)]
				w.forget(w.Other, run)
				open[run.Tenant]--
				open[""]--
				ended++
			}
		}},
		{"R-468", "Terminate marks the orphan runs of a job, once, and tells the audit for which run; a job without one is refused, and so is an unknown one. A deleted job's run can be terminated too.", "I-17, D-26", func(w *world) {
			c, gone := w.dispatched(""), w.dispatched("")
			w.is(w.only(w.Store.Terminate(w.ctx, []sluice.ID{c.ID}, person("it runs"))), sluice.ErrNotAllowed)
			w.is(w.only(w.Store.Terminate(w.ctx, []sluice.ID{sluice.NewID()}, person("who?"))), sluice.ErrNotFound)
			w.cancel(person("enough"), c.ID, gone.ID)
			w.ok(w.only(w.Store.DeleteJobs(w.ctx, []sluice.ID{gone.ID}, person("gone"))))
			act := person("it ignores its cancel")
			for range 2 {
				w.ok(w.only(w.Other.Terminate(w.ctx, []sluice.ID{c.ID}, act)))
			}
			w.ok(w.only(w.Store.Terminate(w.ctx, []sluice.ID{c.ID}, person("again"))))
			told := w.told(c.ID, audit.EventTerminate)
			equal(w, "by", told.Actor, act.By)
			equal(w, "reason", told.Reason, act.Reason)
			w.ok(w.only(w.Store.Terminate(w.ctx, []sluice.ID{gone.ID}, act)))
			for _, run := range w.strays() {
				equal(w, "terminate", run.Terminate, true)
				equal(w, "started", run.Started, true)
				equal(w, "generation", run.Generation, 1)
			}
			w.inState(c.ID, sluice.StateCancelled)
			equal(w, "entries", len(slices.DeleteFunc(w.audit(c.ID), func(e sluice.AuditEntry) bool { return e.Event != audit.EventTerminate })), 1)
		}},
		{"R-469", "What is known of a job's turn names the runs of it that may be open.", "D-29", func(w *world) {
			c := w.dispatched("")
			equal(w, "runs while it is under way", len(w.position(c.ID).OrphanRuns), 0)
			w.cancel(person("enough"), c.ID)
			w.requeued(c.ID, false)
			runs := w.position(c.ID).OrphanRuns
			if len(runs) != 1 || runs[0] != w.strays()[0] {
				w.Fatalf("the runs are %+v", runs)
			}
			w.near("claimed at", runs[0].ClaimedAt, w.Now())
		}},
	}
}

// requeued requeues a job.
func (w *world) requeued(id sluice.ID, beside bool) {
	w.Helper()
	act := person("again")
	act.BesideOpenRun = beside
	w.ok(w.only(w.Store.Requeue(w.ctx, []sluice.ID{id}, act)))
}

// forget says that an orphan run has ended.
func (w *world) forget(store sluice.Store, run engine.OrphanRun) {
	w.Helper()
	w.ok(engine.Given(store).ForgetOrphanRuns(w.ctx, []engine.OrphanRun{run}))
}

// orderedAs adds a job with an order key.
func (w *world) orderedAs(key string) sluice.ID {
	w.Helper()
	return w.add(sluice.EnqueueOptions{OrderKey: key})
}

// limitedTo claims all that may be claimed, which must be so many.
func (w *world) limitedTo(want int) {
	w.Helper()
	equal(w, "claimed", len(w.claimFrom(w.Store, 10).Jobs), want)
}
