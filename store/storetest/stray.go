package storetest

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/engine"
)

func strayRules() []Rule {
	return []Rule{
		{"R-315", "When a job is cancelled while a run of it is intended or under way, the run is listed as stray: with the engine and the ref by which it can be ended. So it is when the job is buried as poison, because the engine may have the run yet. Nothing else makes one.", "D-34, I-17", func(w *world) {
			plain := w.addMany(2)
			w.claimOne()
			w.cancel(person("enough"), plain...)
			for _, event := range []sluice.Event{sluice.EventComplete, sluice.EventBury, sluice.EventRelease, sluice.EventDoubt} {
				w.done(by(event, w.intended()))
			}
			w.empty() // one was released
			equal(w, "runs, before one was cancelled", len(w.strays()), 0)

			intended := w.intended()
			named := w.dispatched("named-otherwise")
			w.cancel(person("enough"), intended.ID, named.ID)
			runs := w.strays()
			equal(w, "runs", len(runs), 2)
			for _, run := range runs {
				equal(w, "queue", run.Queue, queue)
				equal(w, "engine", run.Engine, engineName)
				w.near("cancelled at", run.CancelledAt, w.Now())
				want := refOf(intended)
				if run.JobID == named.ID {
					want = "named-otherwise"
				}
				equal(w, "ref", run.Ref, want)
			}
			poison := w.intended()
			bury := by(sluice.EventBury, poison)
			bury.Poison = true
			w.done(bury)
			runs = w.strays()
			equal(w, "runs, one of a job that was buried as poison", len(runs), 3)
			equal(w, "of another queue", len(w.straysOf("invoices", engine.OrphanRun{}, 10)), 0)
		}},
		{"R-316", "Orphan runs are listed page by page, each once, the first that was cancelled first.", "I-20", func(w *world) {
			var want []sluice.ID
			for range 3 {
				batch := []sluice.ID{w.intended().ID, w.intended().ID, w.intended().ID}
				slices.SortFunc(batch, func(a, b sluice.ID) int { return bytes.Compare(a[:], b[:]) })
				w.cancel(person("enough"), batch...)
				w.Advance(time.Second)
				want = append(want, batch...)
			}
			for _, limit := range []int{1, 2, 3, 9, 100} {
				var got []sluice.ID
				after := engine.OrphanRun{}
				for range 10 {
					for _, run := range w.straysOf(queue, after, limit) {
						got, after = append(got, run.JobID), run
					}
				}
				if !slices.Equal(got, want) {
					w.Fatalf("pages of %d list %v, want %v", limit, got, want)
				}
			}
		}},
		{"R-317", "An orphan run is listed until it is forgotten, by its job and ref: once, however often its cancel is sent, also when its job lives again or is deleted. Forgetting one that is not listed is no error.", "I-20, I-18", func(w *world) {
			first, second := w.intended(), w.intended()
			act := person("enough")
			for range 2 {
				w.cancel(act, first.ID, second.ID)
			}
			again := person("again")
			again.BesideOpenRun = true
			w.ok(w.only(w.Store.Requeue(w.ctx, []sluice.ID{first.ID}, again)))
			w.ok(w.only(w.Store.DeleteJobs(w.ctx, []sluice.ID{second.ID}, person("gone"))))
			equal(w, "runs", len(w.strays()), 2)

			next := w.claimOne()
			in := intentOf(next)
			in.Ref += "-g2"
			w.ok(w.only(engine.Given(w.Store).RecordIntent(w.ctx, []engine.Intent{in})))
			w.cancel(person("enough again"), first.ID)
			equal(w, "runs, two of one job", len(w.strays()), 3)
			forget := []engine.OrphanRun{{JobID: first.ID, Ref: refOf(first)}, {JobID: second.ID, Ref: "another"}, {JobID: sluice.NewID(), Ref: "x"}}
			for range 2 {
				w.ok(engine.Given(w.Other).ForgetOrphanRuns(w.ctx, forget))
			}
			w.ok(engine.Given(w.Store).ForgetOrphanRuns(w.ctx, nil))
			left := make(map[string]bool)
			for _, run := range w.strays() {
				left[run.Ref] = true
			}
			if len(left) != 2 || !left[in.Ref] || !left[refOf(second)] {
				w.Fatalf("left are %v", left)
			}
		}},
	}
}

func noteRules() []Rule {
	return []Rule{
		{"R-318", "Noted entries are in the audit in the order in which they are given, with the time of the store; they change nothing else.", "D-26, I-8", func(w *world) {
			w.save(func(*sluice.Settings) {})
			id := w.add(sluice.EnqueueOptions{})
			entries := []sluice.AuditEntry{
				{Object: audit.ObjectQueue, Name: queue, Event: audit.EventBatch, Actor: holder(1), After: json.RawMessage(`{"claimed":3}`), At: w.Now().Add(-time.Hour), Seq: 1},
				{Object: audit.ObjectJob, Name: queue, JobID: id, Generation: 2, Event: "looked at", Actor: "ada", Reason: "it is late", Before: json.RawMessage(`[1]`), ActID: sluice.NewID()},
			}
			for n := range 2 { // what is sent twice is there twice
				w.ok(w.Store.AppendAudit(w.ctx, entries))
				told, err := w.Other.Audit(w.ctx, sluice.AuditFilter{Name: queue, Limit: 2})
				w.ok(err)
				equal(w, "entries", len(told), 2)
				for i, want := range entries {
					got := told[1-i]
					w.near("told at", got.At, w.Now())
					equal(w, "after", squeezed(got.After), squeezed(want.After))
					equal(w, "before", squeezed(got.Before), squeezed(want.Before))
					if got.Object != want.Object || got.Name != want.Name || got.Event != want.Event || got.Actor != want.Actor ||
						got.Reason != want.Reason || got.JobID != want.JobID || got.Generation != want.Generation || got.ActID != want.ActID {
						w.Fatalf("noted %+v, told %+v", want, got)
					}
				}
				equal(w, "of the job", len(w.audit(id)), n+1)
			}
			equal(w, "batches", len(w.batches()), 2)
			w.inState(id, sluice.StateQueued)
			w.ok(w.Store.AppendAudit(w.ctx, nil))
		}},
		{"R-319", "An entry that tells of a move, or of nothing, cannot be noted, nor those that are sent with it.", "I-8", func(w *world) {
			good := sluice.AuditEntry{Object: audit.ObjectQueue, Name: queue, Event: audit.EventBatch, Actor: holder(1)}
			move, states, nothing, nobody := good, good, good, good
			move.Event, states.To, nothing.Event, nobody.Object = sluice.EventCancel, sluice.StateDead, "", ""
			for _, bad := range []sluice.AuditEntry{move, states, nothing, nobody} {
				w.is(w.Store.AppendAudit(w.ctx, []sluice.AuditEntry{good, bad}), sluice.ErrInvalid)
			}
			equal(w, "batches", len(w.batches()), 0)
		}},
	}
}

// straysOf is a page of the orphan runs of a queue.
func (w *world) straysOf(of string, after engine.OrphanRun, limit int) []engine.OrphanRun {
	w.Helper()
	runs, err := engine.Given(w.Other).OrphanRuns(w.ctx, of, after, limit)
	w.ok(err)
	return runs
}

func (w *world) strays() []engine.OrphanRun {
	w.Helper()
	return w.straysOf(queue, engine.OrphanRun{}, 100)
}

// cancel cancels jobs, all of them.
func (w *world) cancel(act sluice.Act, ids ...sluice.ID) {
	w.Helper()
	errs, err := w.Store.Cancel(w.ctx, ids, act)
	w.ok(err)
	w.ok(errors.Join(errs...))
}

// squeezed is JSON without the spaces that a store may put in.
func squeezed(text json.RawMessage) string { return strings.ReplaceAll(string(text), " ", "") }

// batches lists what the audit tells of batches.
func (w *world) batches() []sluice.AuditEntry {
	w.Helper()
	all, err := w.Store.Audit(w.ctx, sluice.AuditFilter{Object: audit.ObjectQueue, Name: queue, Limit: 100})
	w.ok(err)
	return slices.DeleteFunc(all, func(e sluice.AuditEntry) bool { return e.Event != audit.EventBatch })
}
