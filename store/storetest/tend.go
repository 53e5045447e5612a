package storetest

import (
	"fmt"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/health"
)

func tendRules() []Rule {
	return []Rule{
		{"R-90", "Prune deletes finished jobs that were kept as long as their queue asks for their outcome, whole, and no others.", "C-82, H-11", func(w *world) {
			const day = 24 * time.Hour
			w.save(func(s *sluice.Settings) { s.KeepCompleted, s.KeepCancelled, s.KeepDead = 2*day, 4*day, 0 })
			completed := w.add(sluice.EnqueueOptions{})
			w.done(by(sluice.EventRetry, w.claimOne()))
			w.done(by(sluice.EventComplete, w.claimOne()))
			cancelled := w.add(sluice.EnqueueOptions{})
			w.ok(w.only(w.Store.Cancel(w.ctx, []sluice.ID{cancelled}, person("test"))))
			dead := w.add(sluice.EnqueueOptions{})
			w.done(by(sluice.EventBury, w.claimOne()))
			waiting := w.add(sluice.EnqueueOptions{Delay: 30 * day})
			equal(w, "deleted at once", w.prune(), 0)
			w.Advance(3 * day)
			equal(w, "deleted after 3 days", w.prune(), 1)
			_, err := w.Store.Job(w.ctx, completed)
			w.is(err, sluice.ErrNotFound)
			_, err = w.Store.Attempts(w.ctx, completed)
			w.is(err, sluice.ErrNotFound)
			w.Advance(2 * day)
			equal(w, "deleted after 5 days", w.prune(), 1)
			w.Advance(365 * day)
			equal(w, "deleted after a year", w.prune(), 0)
			w.inState(dead, sluice.StateDead)
			w.inState(waiting, sluice.StateQueued)
		}},
		{"R-91", "Prune goes through the history slice by slice and misses none.", "C-82", func(w *world) {
			ids := w.addMany(25)
			for _, c := range w.claim(25) {
				w.done(by(sluice.EventComplete, c))
			}
			w.Advance(8 * 24 * time.Hour)
			after := ""
			deleted, slices := 0, 0
			for {
				out, err := w.Store.Prune(w.ctx, after, 10)
				w.ok(err)
				deleted += out.Deleted
				slices++
				if after = out.Next; after == "" {
					break
				}
			}
			equal(w, "deleted", deleted, len(ids))
			equal(w, "slices", slices, 3)
		}},
		{"R-575", "A pass of Prune takes as many calls as what it deletes asks for, however much is kept.", "C-82", func(w *world) {
			const day = 24 * time.Hour
			w.save(func(s *sluice.Settings) { s.KeepCompleted = 30 * day })
			w.addMany(100)
			for _, c := range w.claim(100) {
				w.done(by(sluice.EventComplete, c))
			}
			_, err := w.Store.Cancel(w.ctx, w.addMany(25), person("test"))
			w.ok(err)
			w.Advance(8 * day)
			var deleted []int
			after := ""
			for more := true; more; more = after != "" {
				out, err := w.Store.Prune(w.ctx, after, 10)
				w.ok(err)
				deleted, after = append(deleted, out.Deleted), out.Next
			}
			equal(w, "deleted by each call", fmt.Sprint(deleted), "[10 10 5]")
		}},
		{"R-1043", "A dry run of retention counts the jobs that it would delete, by queue and outcome, and deletes none. The act deletes as many, and is in the audit once, also when it is sent again.", "I-1, I-11", func(w *world) {
			day := 24 * time.Hour
			w.save(func(s *sluice.Settings) { s.KeepCompleted, s.KeepCancelled, s.KeepDead = 2*day, 4*day, 0 })
			w.addMany(5)
			for _, c := range w.claim(5) {
				w.done(by(sluice.EventComplete, c))
			}
			cancelled := w.addMany(4)
			_, err := w.Store.Cancel(w.ctx, cancelled, person("test"))
			w.ok(err)
			w.ok(w.only(w.Store.Requeue(w.ctx, cancelled[:1], person("test")))) // it lives again
			retention := func(dryRun bool, act sluice.Act) health.Maintained {
				out, err := health.Maintain(w.ctx, w.Store, health.TaskRetention, dryRun, act)
				w.ok(err)
				return out
			}
			equal(w, "would go at once", retention(true, person("look")).Rows, 0)
			w.Advance(3 * day)
			equal(w, "would go after 3 days", fmt.Sprint(retention(true, person("look")).Parts), "[{queue payments, completed 5 0}]")
			w.Advance(2 * day)
			would := retention(true, person("look"))
			equal(w, "would go after 5 days", fmt.Sprint(would.Parts), "[{queue payments, cancelled 3 0} {queue payments, completed 5 0}]")
			act := person("the disk is full")
			act.ID = sluice.NewID()
			went := retention(false, act)
			equal(w, "went", went.Rows, would.Rows)
			equal(w, "went by the same act", fmt.Sprint(retention(false, act)), fmt.Sprint(went))
			equal(w, "would go now", retention(true, person("look")).Rows, 0)
			entries, err := w.Store.Audit(w.ctx, sluice.AuditFilter{Object: audit.ObjectStore, Limit: 10})
			w.ok(err)
			equal(w, "entries", len(entries), 1)
			equal(w, "entry", fmt.Sprint(entries[0].Name, " ", entries[0].Event, " ", entries[0].Actor, " ", entries[0].Reason), "retention maintain "+act.By+" the disk is full")
		}},
		{"R-92", "A job that lives again is not pruned, however long ago an earlier life of it ended.", "I-1, I-6", func(w *world) {
			id := w.add(sluice.EnqueueOptions{})
			w.ok(w.only(w.Store.Cancel(w.ctx, []sluice.ID{id}, person("test"))))
			w.ok(w.only(w.Store.Requeue(w.ctx, []sluice.ID{id}, person("test"))))
			w.Advance(365 * 24 * time.Hour)
			w.prune()
			w.inState(id, sluice.StateQueued)
			c := w.claimOne()
			equal(w, "payload", string(c.Payload), `{"amount":1}`)
			w.done(by(sluice.EventComplete, c))
			w.prune()
			w.inState(id, sluice.StateCompleted)
		}},
		{"R-93", "Repair gives settings to a queue that has jobs and none, so that every job has somebody who looks after it.", "I-1", func(w *world) {
			w.addMany(3)
			n, err := w.Store.Repair(w.ctx, "upkeep")
			w.ok(err)
			equal(w, "repaired", n, 1)
			queues, err := w.Store.Queues(w.ctx, sluice.QueueFilter{})
			w.ok(err)
			equal(w, "queues", len(queues), 1)
			equal(w, "settings", queues[0].Settings, sluice.DefaultSettings())
			n, err = w.Store.Repair(w.ctx, "upkeep")
			w.ok(err)
			equal(w, "repaired again", n, 0)
		}},
		{"R-95", "Repair gives settings also to a queue whose jobs are all claimed, so that their leases are looked after.", "I-1", func(w *world) {
			w.add(sluice.EnqueueOptions{})
			w.claimOne()
			_, err := w.Store.Repair(w.ctx, "upkeep")
			w.ok(err)
			queues, err := w.Store.Queues(w.ctx, sluice.QueueFilter{})
			w.ok(err)
			equal(w, "queues", len(queues), 1)
		}},
		{"R-94", "A pruned job's key for ever still keeps others out, and a key whose window has passed is forgotten.", "I-7", func(w *world) {
			w.add(sluice.EnqueueOptions{Key: "ever", KeyScope: sluice.ForEver})
			w.add(sluice.EnqueueOptions{Key: "hour", KeyScope: sluice.ForWindow, KeyWindow: time.Hour})
			for _, c := range w.claim(2) {
				w.done(by(sluice.EventComplete, c))
			}
			w.Advance(8 * 24 * time.Hour)
			equal(w, "deleted", w.prune(), 2)
			equal(w, "duplicate", w.receipt(sluice.EnqueueOptions{Key: "ever", KeyScope: sluice.ForEver}).Duplicate, true)
			w.add(sluice.EnqueueOptions{Key: "hour", KeyScope: sluice.ForWindow, KeyWindow: time.Hour})
		}},
	}
}

// prune goes through the history once.
func (w *world) prune() int {
	w.Helper()
	after := ""
	deleted := 0
	for {
		out, err := w.Store.Prune(w.ctx, after, 1000)
		w.ok(err)
		deleted += out.Deleted
		if after = out.Next; after == "" {
			return deleted
		}
	}
}
