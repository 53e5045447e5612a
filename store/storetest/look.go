package storetest

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/audit"
)

func lookRules() []Rule {
	return []Rule{
		{"R-100", "What is not there is not found, never empty.", "I-20", func(w *world) {
			_, err := w.Store.Job(w.ctx, sluice.NewID())
			w.is(err, sluice.ErrNotFound)
			_, err = w.Store.Attempts(w.ctx, sluice.NewID())
			w.is(err, sluice.ErrNotFound)
		}},
		{"R-101", "Jobs are listed the newest first, in pages without gaps or repeats, unfinished and finished ones alike.", "C-55, C-84", func(w *world) {
			ids := w.addMany(25)
			for i, c := range w.claim(10) {
				w.done(by([]sluice.Event{sluice.EventComplete, sluice.EventBury, sluice.EventRelease}[i%3], c))
			}
			var before sluice.ID
			var seen []sluice.ID
			for pages := 0; ; pages++ {
				page, err := w.Store.Jobs(w.ctx, sluice.JobFilter{Before: before, Limit: 10})
				w.ok(err)
				for _, j := range page.Jobs {
					equal(w, "payload", len(j.Payload), 0)
					seen = append(seen, j.ID)
				}
				if before = page.Next; before.IsZero() {
					equal(w, "pages", pages, 2)
					break
				}
			}
			equal(w, "jobs", len(seen), len(ids))
			for i, id := range seen {
				equal(w, "order", id, ids[len(ids)-1-i])
			}
		}},
		{"R-1006", "With the oldest first, jobs are listed in pages without gaps or repeats, unfinished and finished ones alike, whichever way they are chosen; a job that comes meanwhile is on a later page.", "C-55", func(w *world) {
			options := func(n int) sluice.EnqueueOptions {
				return sluice.EnqueueOptions{Tenant: "acme", Key: fmt.Sprintf("k%d", n%2), KeyScope: sluice.ForWindow, KeyWindow: time.Millisecond, Labels: map[string]string{"region": "eu"}}
			}
			for n := range 12 {
				w.add(options(n))
				w.Advance(time.Second)
			}
			for i, c := range w.claim(8) {
				w.done(by([]sluice.Event{sluice.EventComplete, sluice.EventBury}[i%2], c))
			}
			for n, filter := range []sluice.JobFilter{
				{},
				{Queue: queue},
				{Tenant: "acme"},
				{Key: "k1"},
				{Labels: map[string]string{"region": "eu"}},
				{States: []sluice.State{sluice.StateQueued}},
				{Queue: queue, States: []sluice.State{sluice.StateDead}},
			} {
				filter.Limit = 3
				byID := func(filter *sluice.JobFilter, page sluice.Page) { filter.Before = page.Next }
				want := w.pages(filter, byID)
				slices.Reverse(want)
				filter.OldestFirst = true
				got := w.pages(filter, byID)
				equal(w, fmt.Sprintf("by id, %+v", filter), fmt.Sprint(got), fmt.Sprint(want))
				var late sluice.ID
				got = w.pages(filter, func(filter *sluice.JobFilter, page sluice.Page) {
					if late.IsZero() {
						late = w.add(options(1 + 2*n))
						w.Advance(time.Second)
					}
					filter.Cursor = page.Cursor
				})
				if !slices.Equal(filter.States, []sluice.State{sluice.StateDead}) {
					want = append(want, late)
				}
				equal(w, fmt.Sprintf("by cursor, %+v", filter), fmt.Sprint(got), fmt.Sprint(want))
			}
		}},
		{"R-102", "A filter narrows a list by queue, tenant, key, state and labels.", "C-84", func(w *world) {
			acme := w.add(sluice.EnqueueOptions{Tenant: "acme", Labels: map[string]string{"region": "eu", "kind": "card"}})
			keyed := w.add(sluice.EnqueueOptions{Key: "k", Tenant: "globex", Labels: map[string]string{"region": "eu"}})
			other := insertOf(sluice.EnqueueOptions{Tenant: "acme"})
			other.Queue = "refunds"
			w.receipts(other)
			w.ok(w.only(w.Store.Cancel(w.ctx, []sluice.ID{keyed}, person("test"))))
			for _, c := range []struct {
				filter sluice.JobFilter
				want   []sluice.ID
			}{
				{sluice.JobFilter{Queue: queue}, []sluice.ID{keyed, acme}},
				{sluice.JobFilter{Tenant: "acme"}, []sluice.ID{other.ID, acme}},
				{sluice.JobFilter{Queue: queue, Tenant: "acme"}, []sluice.ID{acme}},
				{sluice.JobFilter{Key: "k"}, []sluice.ID{keyed}},
				{sluice.JobFilter{States: []sluice.State{sluice.StateCancelled}}, []sluice.ID{keyed}},
				{sluice.JobFilter{States: []sluice.State{sluice.StateQueued}}, []sluice.ID{other.ID, acme}},
				{sluice.JobFilter{States: []sluice.State{sluice.StateDead, sluice.StateUncertain}}, nil},
				{sluice.JobFilter{Labels: map[string]string{"region": "eu"}}, []sluice.ID{keyed, acme}},
				{sluice.JobFilter{Labels: map[string]string{"region": "eu", "kind": "card"}}, []sluice.ID{acme}},
				{sluice.JobFilter{Labels: map[string]string{"region": "us"}}, nil},
			} {
				c.filter.Limit = 10
				page, err := w.Store.Jobs(w.ctx, c.filter)
				w.ok(err)
				equal(w, "found", len(page.Jobs), len(c.want))
				for i, id := range c.want {
					equal(w, "job", page.Jobs[i].ID, id)
				}
			}
		}},
		{"R-529", "Jobs finds those of which so many attempts failed, and that lost so many holders, unfinished and finished ones, page by page.", "E-9", func(w *world) {
			calm, failed, lost, both := w.add(sluice.EnqueueOptions{}), w.add(sluice.EnqueueOptions{}), w.add(sluice.EnqueueOptions{}), w.add(sluice.EnqueueOptions{})
			for _, c := range w.claim(4) {
				switch c.ID {
				case failed:
					w.done(by(sluice.EventRetry, c))
				case lost:
					w.done(by(sluice.EventRecover, c))
				case both:
					w.done(by(sluice.EventRecover, c))
				case calm:
					w.done(by(sluice.EventComplete, c))
				}
			}
			for _, c := range w.claim(3) {
				switch c.ID {
				case both:
					w.done(by(sluice.EventBury, c))
				default:
					w.done(by(sluice.EventRelease, c))
				}
			}
			for _, c := range []struct {
				filter sluice.JobFilter
				want   []sluice.ID
			}{
				{sluice.JobFilter{MinAttempts: 1}, []sluice.ID{both, failed}},
				{sluice.JobFilter{MinAttempts: 2}, nil},
				{sluice.JobFilter{MinAttempts: math.MaxInt, MinRecoveries: math.MaxInt}, nil},
				{sluice.JobFilter{MinRecoveries: 1}, []sluice.ID{both, lost}},
				{sluice.JobFilter{MinAttempts: 1, MinRecoveries: 1}, []sluice.ID{both}},
				{sluice.JobFilter{Queue: queue, States: []sluice.State{sluice.StateDead}, MinAttempts: 1}, []sluice.ID{both}},
				{sluice.JobFilter{Queue: queue, States: []sluice.State{sluice.StateDead}, MinAttempts: 2}, nil},
			} {
				var got []sluice.ID
				for c.filter.Limit = 1; ; {
					page, err := w.Other.Jobs(w.ctx, c.filter)
					w.ok(err)
					for _, j := range page.Jobs {
						got = append(got, j.ID)
					}
					if page.Next.IsZero() {
						break
					}
					c.filter.Before = page.Next
				}
				if !slices.Equal(got, c.want) {
					w.Fatalf("%+v lists %v, want %v", c.filter, got, c.want)
				}
			}
		}},
		{"R-103", "A job that was requeued is listed once, by its present state.", "I-6", func(w *world) {
			id := w.add(sluice.EnqueueOptions{})
			w.done(by(sluice.EventBury, w.claimOne()))
			w.ok(w.only(w.Store.Requeue(w.ctx, []sluice.ID{id}, person("test"))))
			page, err := w.Store.Jobs(w.ctx, sluice.JobFilter{Limit: 10})
			w.ok(err)
			equal(w, "jobs", len(page.Jobs), 1)
			equal(w, "state", page.Jobs[0].State, sluice.StateQueued)
			dead, err := w.Store.Jobs(w.ctx, sluice.JobFilter{States: []sluice.State{sluice.StateDead}, Limit: 10})
			w.ok(err)
			equal(w, "dead", len(dead.Jobs), 0)
		}},
		{"R-104", "Depth counts the jobs of a queue by state and tells since when the first has been due.", "C-65", func(w *world) {
			due := w.Now().Add(-time.Hour)
			w.add(sluice.EnqueueOptions{DueAt: due, Priority: 9})
			w.addMany(5)
			w.add(sluice.EnqueueOptions{Delay: time.Hour})
			w.add(sluice.EnqueueOptions{Delay: 2 * time.Hour, Priority: 1})
			running := w.add(sluice.EnqueueOptions{Key: "k", Priority: 1})
			claims := w.claim(5)
			equal(w, "first", claims[0].ID, running)
			w.add(sluice.EnqueueOptions{Key: "k", OnDuplicate: sluice.Coalesce})
			w.done(by(sluice.EventDispatch, claims[1]))
			w.done(by(sluice.EventDoubt, claims[2]))
			w.done(by(sluice.EventBury, claims[3]))
			got, err := w.Other.Depth(w.ctx, queue, sluice.DepthLimit)
			w.ok(err)
			w.near("oldest due", got.OldestDue, due)
			got.OldestDue = time.Time{}
			equal(w, "depth", got, sluice.Depth{Queue: queue, Ready: 2, Scheduled: 2, Blocked: 1, Claimed: 2, Dispatched: 1, Uncertain: 1, Dead: 1})
		}},
		{"R-105", "The audit is listed the newest first, in pages, and narrowed by object, name, job, actor, event and number.", "I-4", func(w *world) {
			var ids []sluice.ID
			for range 5 {
				id := w.add(sluice.EnqueueOptions{})
				w.ok(w.only(w.Store.Cancel(w.ctx, []sluice.ID{id}, person("test"))))
				ids = append(ids, id)
			}
			w.save(func(s *sluice.Settings) {})
			jobs, err := w.Store.Audit(w.ctx, sluice.AuditFilter{Object: audit.ObjectJob, Limit: 3})
			w.ok(err)
			equal(w, "entries", len(jobs), 3)
			equal(w, "newest first", jobs[0].JobID, ids[4])
			rest, err := w.Store.Audit(w.ctx, sluice.AuditFilter{Object: audit.ObjectJob, Limit: 3, Before: jobs[2].Seq})
			w.ok(err)
			equal(w, "the rest", len(rest), 2)
			equal(w, "the oldest", rest[1].JobID, ids[0])
			for _, id := range []sluice.ID{ids[1], ids[3]} {
				act := person("back")
				act.By = "grace by token shop"
				w.ok(w.only(w.Store.Requeue(w.ctx, []sluice.ID{id}, act)))
			}
			for what, one := range map[string]struct {
				filter sluice.AuditFilter
				want   int
			}{
				"of an actor":           {sluice.AuditFilter{Actor: "grace by token shop"}, 2},
				"of a person":           {sluice.AuditFilter{Actor: "grace"}, 2},
				"of a pattern":          {sluice.AuditFilter{Actor: "grac%"}, 0},
				"of an actor's job":     {sluice.AuditFilter{Actor: "grace", JobID: ids[3]}, 1},
				"of another actor":      {sluice.AuditFilter{Actor: "grac"}, 0},
				"of an event":           {sluice.AuditFilter{Event: sluice.EventCancel}, 5},
				"of an actor and event": {sluice.AuditFilter{Actor: "grace", Event: sluice.EventCancel}, 0},
				"after a number":        {sluice.AuditFilter{Event: sluice.EventCancel, After: rest[0].Seq}, 3},
				"between numbers":       {sluice.AuditFilter{Event: sluice.EventCancel, After: rest[0].Seq, Before: jobs[0].Seq}, 2},
			} {
				one.filter.Limit = 10
				found, err := w.Other.Audit(w.ctx, one.filter)
				w.ok(err)
				equal(w, what, len(found), one.want)
			}
			equal(w, "of one job", len(w.audit(ids[2])), 1)
			w.near("at", rest[0].At, w.Now())
		}},
	}
}

// pages lists the jobs of a filter page by page, and goes on from each as next sets the filter.
func (w *world) pages(filter sluice.JobFilter, next func(*sluice.JobFilter, sluice.Page)) (ids []sluice.ID) {
	w.Helper()
	for range 100 {
		page, err := w.Other.Jobs(w.ctx, filter)
		w.ok(err)
		for _, j := range page.Jobs {
			ids = append(ids, j.ID)
		}
		if page.Cursor == "" {
			return ids
		}
		next(&filter, page)
	}
	w.Fatalf("%+v has more than 100 pages", filter)
	return nil
}
