package storetest

import (
	"fmt"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/edit"
	"github.com/sluice-queue/sluice/limit"
)

// limitedRunRules say what limits count of a run that may be open although its job was edited or deleted.
func limitedRunRules() []Rule {
	return []Rule{
		{"R-1053", "A limit per key counts a run that may be open under the limit key that the job had when the run began, also when the requeued job was edited. When the run ends, jobs that wait for that key get in with the next claim.", "I-10, I-16, C-35", func(w *world) {
			w.share(limit.Limit{Name: "host", Concurrency: 1, PerKey: true}, "host")
			id := w.openRun(sluice.EnqueueOptions{LimitKey: "a"})
			w.addKeyed(refunds, "a")
			equal(w, "beside the open run", len(w.claimShared(9).Jobs), 0)
			for _, key := range []string{"b", ""} {
				w.ok(w.edit(w.job(id), edit.Change{LimitKey: &key}, person("moved")))
				w.addKeyed(queue, "a", "b")
				claimed := w.claimOnce(9).Jobs
				equal(w, "after the edit, of the new key", keysIn(claimed), "b:1")
				w.done(by(sluice.EventComplete, claimed[0]))
				equal(w, "of the old key", len(w.claimShared(9).Jobs), 0)
				equal(w, "in use", w.inUse("host", "a", "b"), "1 0")
			}
			w.forget(w.Other, w.strays()[0])
			equal(w, "in use after the run", w.inUse("host", "a", "b"), "0 0")
			equal(w, "of the old key after the run", keysIn(w.claimShared(9).Jobs), "a:1")
			claimed := w.claimOnce(9).Jobs
			equal(w, "the job itself, without a key", keysIn(claimed), ":1")
			equal(w, "it", claimed[0].ID, id)
		}},
		{"R-1054", "A limit by cost counts a run that may be open with the cost that the job had when the run began, also when the requeued job was edited.", "I-10, I-16, C-35", func(w *world) {
			for _, perKey := range []bool{false, true} {
				name, key := "gpu", ""
				if perKey {
					name, key = "host", "a"
				}
				w.share(limit.Limit{Name: name, Concurrency: 4, ByCost: true, PerKey: perKey}, name)
				for _, c := range []struct{ cost, edited, fits int }{{4, 1, 0}, {3, 1, 1}, {1, 4, 3}} {
					id := w.openRun(sluice.EnqueueOptions{LimitKey: key, Cost: c.cost})
					w.ok(w.edit(w.job(id), edit.Change{Cost: &c.edited}, person("measured")))
					for range 4 {
						w.add(sluice.EnqueueOptions{LimitKey: key})
					}
					claimed := w.claimOnce(9).Jobs
					equal(w, fmt.Sprintf("beside a run of cost %d, edited to %d", c.cost, c.edited), len(claimed), c.fits)
					equal(w, "in use", w.unitsInUse(name), c.cost+c.fits)
					w.cancel(person("not needed"), id)
					w.forget(w.Store, w.strays()[0])
					equal(w, "after the run", w.unitsInUse(name), c.fits)
					for _, one := range claimed {
						w.done(by(sluice.EventComplete, one))
					}
					for _, one := range w.claimOnce(9).Jobs {
						w.done(by(sluice.EventComplete, one))
					}
				}
			}
		}},
		{"R-1055", "The concurrency of a tenant counts a run that may be open for the tenant that the job had when the run began, also when the requeued job was edited.", "I-10, I-16", func(w *world) {
			w.save(func(s *sluice.Settings) { s.TenantConcurrency = 1 })
			id := w.openRun(sluice.EnqueueOptions{Tenant: "acme"})
			bolt := "bolt"
			w.ok(w.edit(w.job(id), edit.Change{Tenant: &bolt}, person("moved")))
			w.addOf("acme", 1)
			other := w.addTo("bolt", 5)
			claimed := w.claimOnce(9).Jobs
			if len(claimed) != 1 || claimed[0].ID != other {
				w.Fatalf("beside the run of acme, a claim gets %d jobs, want that of bolt", len(claimed))
			}
			w.done(by(sluice.EventComplete, claimed[0]))
			equal(w, "beside the run", len(w.claimOnce(9).Jobs), 0)
			w.forget(w.Other, w.strays()[0])
			equal(w, "after the run", len(w.claimOnce(9).Jobs), 2)
		}},
		{"R-1056", "Limits per key and by cost count a run that may be open although its job was deleted, until it ends.", "I-10, I-17, C-35", func(w *world) {
			w.share(limit.Limit{Name: "host", Concurrency: 4, PerKey: true, ByCost: true}, "host")
			for _, perKey := range []bool{true, false} {
				w.saveLimit("host", func(l *limit.Limit) { l.PerKey = perKey })
				id := w.openRun(sluice.EnqueueOptions{LimitKey: "a", Cost: 4})
				w.cancel(person("enough"), id)
				w.ok(w.only(w.Store.DeleteJobs(w.ctx, []sluice.ID{id}, person("gone"))))
				w.addKeyed(queue, "a")
				equal(w, "in use", w.unitsInUse("host"), 4)
				equal(w, "beside the run", len(w.claimOnce(9).Jobs), 0)
				w.forget(w.Store, w.strays()[0])
				claimed := w.claimOnce(9).Jobs
				equal(w, "after the run", keysIn(claimed), "a:1")
				w.done(by(sluice.EventComplete, claimed[0]))
			}
		}},
	}
}

// openRun adds a job, has its run begin and cancels it; then the job waits again, while the run may be open.
func (w *world) openRun(o sluice.EnqueueOptions) sluice.ID {
	w.Helper()
	id := w.add(o)
	var claimed []*sluice.Claim
	for range 5 { // a store may sort jobs into their tenant queues first
		if claimed = w.claimOnce(1).Jobs; len(claimed) > 0 {
			break
		}
		w.Advance(time.Second)
	}
	if len(claimed) != 1 || claimed[0].ID != id {
		w.Fatalf("claimed %d jobs, want %s", len(claimed), id)
	}
	w.ok(w.intend(claimed[0]))
	w.cancel(person("enough"), id)
	w.requeued(id, false)
	return id
}

// inUse lists what is in flight of keys of a limit.
func (w *world) inUse(name string, keys ...string) (text string) {
	w.Helper()
	uses, err := limit.KeyUses(w.ctx, w.Store, name, keys...)
	w.ok(err)
	for i, use := range uses {
		if i > 0 {
			text += " "
		}
		text += fmt.Sprint(use.InFlight)
	}
	return text
}

// unitsInUse returns what is in flight of a limit by cost, of all keys together.
func (w *world) unitsInUse(name string) int {
	w.Helper()
	uses, err := limit.Given(w.Store).LimitUses(w.ctx, []string{name})
	w.ok(err)
	return uses[0].InFlight
}
