package storetest

import (
	"encoding/json"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/internal/storing"
)

func actRules() []Rule {
	return []Rule{
		{"R-70", "Cancel ends an unfinished job, whoever holds it, and tells who did it and why; a finished one is not allowed, an unknown one not found.", "H-14, C-30", func(w *world) {
			waiting, held := w.add(sluice.EnqueueOptions{Delay: time.Hour}), w.add(sluice.EnqueueOptions{})
			c := w.claimOne()
			unknown := sluice.NewID()
			act := person("customer left")
			errs, err := w.Store.Cancel(w.ctx, []sluice.ID{held, unknown, waiting}, act)
			w.ok(err)
			w.ok(errs[0])
			w.is(errs[1], sluice.ErrNotFound)
			w.ok(errs[2])
			for _, id := range []sluice.ID{waiting, held} {
				w.inState(id, sluice.StateCancelled)
				e := w.told(id, sluice.EventCancel)
				equal(w, "actor", e.Actor, "ada")
				equal(w, "reason", e.Reason, "customer left")
				equal(w, "act", e.ActID, act.ID)
			}
			w.is(w.settle(by(sluice.EventComplete, c)), sluice.ErrLost)
			w.is(w.only(w.Store.Cancel(w.ctx, []sluice.ID{held}, person("again"))), sluice.ErrNotAllowed)
		}},
		{"R-71", "A requeued job begins the next generation: due now, nothing counted, its history kept; who and why are told.", "I-6, C-56, E-10, E-11, E-12, E-14", func(w *world) {
			id := w.add(sluice.EnqueueOptions{ExpiresAt: w.Now().Add(time.Minute), Tenant: "acme", Priority: 2})
			w.done(by(sluice.EventRelease, w.claimOne()))
			w.done(by(sluice.EventRetry, w.claimOne()))
			w.done(by(sluice.EventBury, w.claimOne()))
			w.Advance(time.Hour)
			w.ok(w.only(w.Store.Requeue(w.ctx, []sluice.ID{id}, person("requested by nightly workflow"))))
			e := w.told(id, sluice.EventRequeue)
			equal(w, "reason", e.Reason, "requested by nightly workflow")
			equal(w, "generation told", e.Generation, 2)
			j := w.inState(id, sluice.StateQueued)
			equal(w, "generation", j.Generation, 2)
			equal(w, "attempts", j.Attempts, 0)
			equal(w, "releases", j.Releases, 0)
			equal(w, "tenant", j.Tenant, "acme")
			equal(w, "priority", j.Priority, 2)
			w.near("due_at", j.DueAt, w.Now())
			c := w.claimOne()
			equal(w, "error", c.Error, "")
			w.done(by(sluice.EventRetry, c))
			attempts, err := w.Store.Attempts(w.ctx, id)
			w.ok(err)
			equal(w, "attempts of both lives", len(attempts), 3)
			equal(w, "the last", attempts[2].Generation, 2)
			w.is(w.only(w.Store.Requeue(w.ctx, []sluice.ID{id}, person("again"))), sluice.ErrNotAllowed)
		}},
		{"R-536", "The undo of a requeue ends a job that nobody has claimed since as it had ended before: dead or cancelled, with the error, the figures and the end that it had, and told with who and why; another one is not allowed, an unknown one not found.", "I-6, E-10", func(w *world) {
			dead, cancelled := w.add(sluice.EnqueueOptions{}), w.add(sluice.EnqueueOptions{Delay: 24 * time.Hour})
			c := w.claimOne()
			w.done(by(sluice.EventRetry, c))
			w.Advance(time.Hour)
			bury := by(sluice.EventBury, w.claimOne())
			bury.Error = "the bank is away"
			w.done(bury)
			w.ok(w.only(w.Store.Cancel(w.ctx, []sluice.ID{cancelled}, person("test"))))
			ids := []sluice.ID{cancelled, dead}
			w.Advance(time.Hour)
			were := []sluice.Job{w.job(cancelled), w.job(dead)}
			fresh, unknown := w.add(sluice.EnqueueOptions{Delay: 24 * time.Hour}), sluice.NewID()
			for range 2 { // again after another requeue
				for _, err := range w.each(w.Store.Requeue(w.ctx, ids, person("all of them"))) {
					w.ok(err)
				}
				w.ok(w.only(w.Store.Reschedule(w.ctx, []sluice.ID{dead}, w.Now().Add(time.Hour), person("later"))))
				act := undo()
				errs, err := w.Other.Requeue(w.ctx, append(ids, fresh, unknown), act)
				w.ok(err)
				w.ok(errs[0])
				w.ok(errs[1])
				w.is(errs[2], sluice.ErrNotAllowed)
				w.is(errs[3], sluice.ErrNotFound)
				errs, err = w.Store.Requeue(w.ctx, ids, act) // sent again
				w.ok(err)
				w.ok(errs[0])
				w.is(w.only(w.Store.Requeue(w.ctx, []sluice.ID{dead}, undo())), sluice.ErrNotAllowed)
				for i, id := range ids {
					was := were[i]
					is := w.inState(id, was.State)
					equal(w, "error", is.Error, was.Error)
					equal(w, "attempts", is.Attempts, was.Attempts)
					equal(w, "finished at", is.FinishedAt, was.FinishedAt)
					equal(w, "due at", is.DueAt, was.DueAt)
					event := []sluice.Event{sluice.EventCancel, sluice.EventUndo}[i]
					e := w.told(id, event)
					equal(w, "reason", e.Reason, "by mistake")
					equal(w, "from", e.From, sluice.StateQueued)
					equal(w, "generation", e.Generation, is.Generation)
				}
				w.claimNone("they ended")
			}
		}},
		{"R-537", "A requeue cannot be undone once somebody has claimed the job, whatever became of that, nor that of an uncertain job; an undo frees the key and lets those go that wait for the job.", "I-6, I-7", func(w *world) {
			for _, event := range []sluice.Event{sluice.EventRetry, sluice.EventRelease, sluice.EventDispatch} {
				id := w.add(sluice.EnqueueOptions{})
				w.done(by(sluice.EventBury, w.claimOne()))
				w.ok(w.only(w.Store.Requeue(w.ctx, []sluice.ID{id}, person("again"))))
				c := w.claimOne()
				w.is(w.only(w.Store.Requeue(w.ctx, []sluice.ID{id}, undo())), sluice.ErrNotAllowed)
				w.done(by(event, c))
				w.is(w.only(w.Store.Requeue(w.ctx, []sluice.ID{id}, undo())), sluice.ErrNotAllowed)
				w.clear(id)
			}
			uncertain := w.add(sluice.EnqueueOptions{})
			w.done(by(sluice.EventDoubt, w.claimOne()))
			w.ok(w.only(w.Store.Requeue(w.ctx, []sluice.ID{uncertain}, person("again"))))
			w.is(w.only(w.Store.Requeue(w.ctx, []sluice.ID{uncertain}, undo())), sluice.ErrNotAllowed)
			w.clear(uncertain)

			first := w.add(sluice.EnqueueOptions{Key: "k", OrderKey: "o"})
			w.done(by(sluice.EventBury, w.claimOne()))
			w.ok(w.only(w.Store.Requeue(w.ctx, []sluice.ID{first}, person("again"))))
			behind := w.add(sluice.EnqueueOptions{OrderKey: "o"})
			equal(w, "waits for", w.inState(behind, sluice.StateQueued).BlockedBy, first)
			w.ok(w.only(w.Store.Requeue(w.ctx, []sluice.ID{first}, undo())))
			equal(w, "claimed", w.claimOne().ID, behind)
			equal(w, "duplicate", w.receipts(insertOf(sluice.EnqueueOptions{Key: "k"}))[0].Duplicate, false)
		}},
		{"R-72", "A requeue is refused while another unfinished job holds the key, and of two dead twins one is requeued.", "I-7", func(w *world) {
			first := w.add(sluice.EnqueueOptions{Key: "k"})
			w.done(by(sluice.EventBury, w.claimOne()))
			second := w.add(sluice.EnqueueOptions{Key: "k"})
			w.is(w.only(w.Store.Requeue(w.ctx, []sluice.ID{first}, person("again"))), sluice.ErrDuplicate)
			w.inState(first, sluice.StateDead)
			w.done(by(sluice.EventBury, w.claimOne()))
			errs, err := w.Store.Requeue(w.ctx, []sluice.ID{first, second}, person("both"))
			w.ok(err)
			w.ok(errs[0])
			w.is(errs[1], sluice.ErrDuplicate)
			w.inState(first, sluice.StateQueued)
			w.inState(second, sluice.StateDead)
		}},
		{"R-73", "Reschedule changes when a queued job is due, to an instant or to now; other jobs are refused.", "H-14", func(w *world) {
			id := w.add(sluice.EnqueueOptions{Delay: time.Hour})
			held := w.add(sluice.EnqueueOptions{})
			w.claimOne()
			at, due := w.Now().Add(3*time.Hour), w.job(id).DueAt
			errs, err := w.Store.Reschedule(w.ctx, []sluice.ID{id, held, sluice.NewID()}, at, person("later"))
			w.ok(err)
			w.ok(errs[0])
			w.is(errs[1], sluice.ErrNotAllowed)
			w.is(errs[2], sluice.ErrNotFound)
			w.near("due_at", w.job(id).DueAt, at)
			w.dueTold(id, due, at)
			w.Advance(2 * time.Hour)
			w.claimNone("it was put off")
			w.ok(w.only(w.Store.Reschedule(w.ctx, []sluice.ID{id}, time.Time{}, person("now"))))
			equal(w, "claimed", w.claimOne().ID, id)
		}},
		{"R-1070", "Reschedule refuses a job that would expire before it is due, and one that has expired, as invalid; the other jobs move, also if the call is sent again.", "H-14", func(w *world) {
			expires := w.Now().Add(time.Hour)
			soon, other := w.add(sluice.EnqueueOptions{ExpiresAt: expires}), w.add(sluice.EnqueueOptions{})
			due, act := w.job(soon).DueAt, person("later")
			for range 2 { // the second time, an answer was lost
				errs, err := w.Store.Reschedule(w.ctx, []sluice.ID{soon, other}, expires, act)
				w.ok(err)
				w.is(errs[0], sluice.ErrInvalid)
				w.ok(errs[1])
			}
			equal(w, "due_at", w.job(soon).DueAt, due)
			equal(w, "audit entries", len(w.audit(soon)), 0)
			w.near("due_at", w.job(other).DueAt, expires)
			w.ok(w.only(w.Store.Reschedule(w.ctx, []sluice.ID{soon}, expires.Add(-30*time.Minute), person("in time"))))
			w.Advance(2 * time.Hour)
			w.is(w.only(w.Store.Reschedule(w.ctx, []sluice.ID{soon}, time.Time{}, person("now"))), sluice.ErrInvalid)
			w.inState(soon, sluice.StateQueued)
		}},
		{"R-1065", "A requeued job does not expire: it has no expires_at, is not cancelled after the one that it had, and can be put off beyond it.", "H-14", func(w *world) {
			expires := w.Now().Add(time.Hour)
			id := w.add(sluice.EnqueueOptions{ExpiresAt: expires})
			w.done(by(sluice.EventBury, w.claimOne()))
			w.near("expires_at", w.job(id).ExpiresAt, expires)
			w.ok(w.only(w.Store.Requeue(w.ctx, []sluice.ID{id}, person("again"))))
			equal(w, "expires_at", w.job(id).ExpiresAt, time.Time{})
			page, err := w.Store.Jobs(w.ctx, sluice.JobFilter{States: []sluice.State{sluice.StateQueued}, Limit: 10})
			w.ok(err)
			equal(w, "jobs", len(page.Jobs), 1)
			equal(w, "expires_at in a list", page.Jobs[0].ExpiresAt, time.Time{})
			w.ok(w.only(w.Store.Reschedule(w.ctx, []sluice.ID{id}, expires.Add(time.Hour), person("later"))))
			w.Advance(3 * time.Hour)
			n, err := w.Store.Expire(w.ctx, 100, "upkeep")
			w.ok(err)
			equal(w, "expired", n, 0)
			equal(w, "claimed", w.claimOne().ID, id)
		}},
		{"R-74", "An act sent again does its work once.", "I-20", func(w *world) {
			id := w.add(sluice.EnqueueOptions{})
			w.done(by(sluice.EventBury, w.claimOne()))
			act := person("again")
			w.ok(w.only(w.Store.Requeue(w.ctx, []sluice.ID{id}, act)))
			w.done(by(sluice.EventBury, w.claimOne()))
			w.ok(w.only(w.Store.Requeue(w.ctx, []sluice.ID{id}, act)))
			equal(w, "generation", w.inState(id, sluice.StateDead).Generation, 2)
			other := w.add(sluice.EnqueueOptions{})
			cancel := person("cancel")
			w.ok(w.only(w.Store.Cancel(w.ctx, []sluice.ID{other}, cancel)))
			w.ok(w.only(w.Store.Cancel(w.ctx, []sluice.ID{other}, cancel)))
			equal(w, "audit entries", len(w.audit(other)), 1)
		}},
		{"R-77", "A person who knows what became of an uncertain job's run ends the job by it, completed or dead; who and why are told in every queue, no attempt is counted, and no other job is moved.", "I-6, I-16, I-17", func(w *world) {
			var uncertain []sluice.ID
			for range 2 {
				c := w.intended()
				w.done(by(sluice.EventDispatch, c))
				w.done(by(sluice.EventDoubt, c))
				uncertain = append(uncertain, c.ID)
			}
			waiting, unknown := w.add(sluice.EnqueueOptions{Delay: time.Hour}), sluice.NewID()
			for i, outcome := range []sluice.State{sluice.StateCompleted, sluice.StateDead} {
				act := person("the bank has it in its books")
				for range 2 { // the second time, an answer was lost
					errs, err := w.Store.Resolve(w.ctx, []sluice.ID{unknown, uncertain[i], waiting}, outcome, act)
					w.ok(err)
					w.is(errs[0], sluice.ErrNotFound)
					w.ok(errs[1])
					w.is(errs[2], sluice.ErrNotAllowed)
				}
				j := w.inState(uncertain[i], outcome)
				equal(w, "attempts", j.Attempts, 0)
				move, _ := sluice.Resolution(outcome)
				e := w.told(j.ID, move.Event)
				equal(w, "actor", e.Actor, act.By)
				equal(w, "reason", e.Reason, act.Reason)
				equal(w, "from", e.From, sluice.StateUncertain)
				w.is(w.only(w.Store.Resolve(w.ctx, []sluice.ID{j.ID}, outcome, person("again"))), sluice.ErrNotAllowed)
				if outcome == sluice.StateDead {
					equal(w, "error", j.Error, storing.ResolvedError(act))
				}
			}
			w.inState(waiting, sluice.StateQueued)
		}},
		{"R-78", "A job that is resolved gives its key back, and lets the jobs behind it go.", "I-7, I-8", func(w *world) {
			first := w.add(sluice.EnqueueOptions{Key: "k"})
			c := w.claimOne()
			equal(w, "claimed", c.ID, first)
			behind := w.add(sluice.EnqueueOptions{After: []sluice.ID{first}})
			w.done(by(sluice.EventDoubt, c))
			w.claimNone("it waits for the uncertain one")
			w.ok(w.only(w.Store.Resolve(w.ctx, []sluice.ID{first}, sluice.StateCompleted, person("it was paid"))))
			equal(w, "claimed after it", w.claimOne().ID, behind)
			w.inState(w.add(sluice.EnqueueOptions{Key: "k"}), sluice.StateQueued)
		}},
		{"R-75", "A cancelled job can be requeued, and a job that was requeued can end again in any way.", "C-31, H-5", func(w *world) {
			id := w.add(sluice.EnqueueOptions{})
			for life := range 3 {
				w.ok(w.only(w.Store.Cancel(w.ctx, []sluice.ID{id}, person("stop"))))
				w.ok(w.only(w.Store.Requeue(w.ctx, []sluice.ID{id}, person("go"))))
				equal(w, "generation", w.job(id).Generation, life+2)
			}
			w.done(by(sluice.EventComplete, w.claimOne()))
			w.inState(id, sluice.StateCompleted)
			w.is(w.only(w.Store.Requeue(w.ctx, []sluice.ID{id}, person("again"))), sluice.ErrNotAllowed)
		}},
		{"R-76", "A person may have dead and cancelled jobs deleted before their time, and no others; the audit keeps who and why.", "C-99", func(w *world) {
			dead := w.add(sluice.EnqueueOptions{})
			w.done(by(sluice.EventRetry, w.claimOne()))
			w.done(by(sluice.EventBury, w.claimOne()))
			waiting := w.add(sluice.EnqueueOptions{})
			act := person("resolved by hand")
			errs, err := w.Store.DeleteJobs(w.ctx, []sluice.ID{dead, waiting, sluice.NewID()}, act)
			w.ok(err)
			w.ok(errs[0])
			w.is(errs[1], sluice.ErrNotAllowed)
			w.is(errs[2], sluice.ErrNotFound)
			_, err = w.Store.Job(w.ctx, dead)
			w.is(err, sluice.ErrNotFound)
			equal(w, "reason", w.told(dead, audit.EventDelete).Reason, "resolved by hand")
			w.ok(w.only(w.Store.DeleteJobs(w.ctx, []sluice.ID{dead}, act)))
			w.inState(waiting, sluice.StateQueued)
		}},
	}
}

// dueTold makes sure that the audit tells when a job was due before and after it was rescheduled.
func (w *world) dueTold(id sluice.ID, before, after time.Time) {
	w.Helper()
	e := w.told(id, sluice.EventReschedule)
	for _, due := range []struct {
		name string
		text json.RawMessage
		want time.Time
	}{{"before", e.Before, before}, {"after", e.After, after}} {
		var told struct {
			DueAt time.Time `json:"due_at"`
		}
		w.ok(json.Unmarshal(due.text, &told))
		w.near("due "+due.name, told.DueAt, due.want)
	}
}
