package storetest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/batch"
	"github.com/sluice-queue/sluice/hold"
	"github.com/sluice-queue/sluice/operation"
)

func batchActRules() []Rule {
	return []Rule{
		{"R-869", "Whatever ends a job of a batch counts: an act of a person, its expiry, lost holders, a failed job before it, the undo of a requeue. A requeue makes it unfinished again. Deleted and pruned jobs stay counted.", "I-8, I-9, E-9", func(w *world) {
			w.save(func(s *sluice.Settings) { s.MaxRecoveries = 1 })
			b := w.openBatch(batch.Batch{})
			in := func(options sluice.EnqueueOptions) sluice.ID {
				options.Batch = b.ID
				return w.add(options)
			}
			poison, uncertain, failing := in(sluice.EnqueueOptions{}), in(sluice.EnqueueOptions{}), in(sluice.EnqueueOptions{})
			in(after("", failing))
			found := w.findAll(poison, uncertain, failing)
			w.done(by(sluice.EventBury, found[failing]))
			w.ok(w.dispatchAndDoubt(found[uncertain]))
			w.ok(w.each(w.Store.Resolve(w.ctx, []sluice.ID{uncertain}, sluice.StateCompleted, person("done")))[0])
			equal(w, "a failed job, the one behind it, and a resolved one", w.counts(b.ID), "4: 1 completed, 1 dead, 1 cancelled")
			w.Advance(2 * time.Minute)
			equal(w, "poison", w.recover().Buried, 1)
			expired := in(sluice.EnqueueOptions{ExpiresAt: w.Now().Add(time.Minute)})
			w.Advance(2 * time.Minute)
			_, err := w.Store.Expire(w.ctx, 10, "upkeep")
			w.ok(err)
			equal(w, "poison and expired", w.counts(b.ID), "5: 1 completed, 2 dead, 2 cancelled")
			w.requeued(failing, false)
			w.requeued(expired, false)
			equal(w, "requeued", w.counts(b.ID), "5: 1 completed, 1 dead, 1 cancelled")
			equal(w, "batch of a requeued job", w.job(failing).Batch, b.ID)
			w.ok(w.each(w.Store.Requeue(w.ctx, []sluice.ID{failing}, sluice.Act{By: "ada", Reason: "mistake", ID: sluice.NewID(), Undo: true}))[0])
			w.ok(w.each(w.Store.Cancel(w.ctx, []sluice.ID{expired}, person("enough")))[0])
			equal(w, "undone and cancelled", w.counts(b.ID), "5: 1 completed, 2 dead, 2 cancelled")
			equal(w, "recounted", w.recounted(b.ID).Ended.Total, 5)
			w.ok(w.each(w.Store.DeleteJobs(w.ctx, []sluice.ID{failing}, person("test")))[0])
			w.Advance(400 * 24 * time.Hour)
			for mark := ""; ; {
				out, err := w.Store.Prune(w.ctx, mark, 1000)
				w.ok(err)
				if mark = out.Next; mark == "" {
					break
				}
			}
			equal(w, "deleted and pruned", w.counts(b.ID), "5: 1 completed, 2 dead, 2 cancelled")
			w.recounted(b.ID)
		}},
		{"R-870", "The jobs of a batch are listed with those of the batches in it, in pages, by state and queue, and no others.", "D-3", func(w *world) {
			root := w.openBatch(batch.Batch{})
			leaf := w.openBatch(batch.Batch{Parent: root.ID})
			var want []sluice.ID
			for n := range 7 {
				id := []sluice.ID{root.ID, leaf.ID}[n%2]
				want = append(want, w.add(sluice.EnqueueOptions{Batch: id, Labels: map[string]string{"n": fmt.Sprint(n % 3)}}))
				w.add(sluice.EnqueueOptions{})
			}
			for _, oldestFirst := range []bool{true, false} {
				got := w.pages(sluice.JobFilter{Batch: root.ID, Limit: 3, OldestFirst: oldestFirst}, func(filter *sluice.JobFilter, page sluice.Page) {
					filter.Cursor = page.Cursor
				})
				equal(w, "jobs", fmt.Sprint(got), fmt.Sprint(want))
				slices.Reverse(want)
			}
			slices.Reverse(want)
			count := func(filter sluice.JobFilter) int {
				filter.Limit = 100
				page, err := w.Store.Jobs(w.ctx, filter)
				w.ok(err)
				return len(page.Jobs)
			}
			w.cancel(person("test"), want[6])
			equal(w, "of the inner one", count(sluice.JobFilter{Batch: leaf.ID}), 3)
			equal(w, "cancelled", count(sluice.JobFilter{Batch: root.ID, States: []sluice.State{sluice.StateCancelled}}), 1)
			equal(w, "with a label", count(sluice.JobFilter{Batch: root.ID, Labels: map[string]string{"n": "1"}}), 2)
			equal(w, "of another queue", count(sluice.JobFilter{Batch: root.ID, Queue: "other"}), 0)
			equal(w, "of no batch", count(sluice.JobFilter{Batch: sluice.NewID()}), 0)
		}},
		{"R-871", "Cancel closes a batch and those in it, and an operation cancels all their unfinished jobs; then the batch is complete.", "C-9", func(w *world) {
			root := w.openBatch(batch.Batch{Callbacks: callbacks("calls", nil)})
			leaf := w.openBatch(batch.Batch{Parent: root.ID})
			w.fill(root.ID, 3)
			w.fill(leaf.ID, 3)
			kept := w.add(sluice.EnqueueOptions{})
			op, err := batch.Cancel(w.ctx, w.Store, root.ID, person("enough"))
			w.ok(err)
			equal(w, "cancelled", w.carryOut(op).Done, 6)
			_, err = w.Store.Enqueue(w.ctx, []sluice.Insert{insertOf(sluice.EnqueueOptions{Batch: leaf.ID})})
			w.is(err, sluice.ErrNotAllowed)
			equal(w, "callbacks", w.advanceBatches(), 1)
			equal(w, "state", w.batch(root.ID).State(), batch.StateComplete)
			w.inState(kept, sluice.StateQueued)
		}},
		{"R-872", "A pause holds the waiting jobs of a batch and of those in it, and jobs and batches that are added later; resume releases them. The audit tells of both.", "C-9, I-20", func(w *world) {
			root := w.openBatch(batch.Batch{})
			leaf := w.openBatch(batch.Batch{Parent: root.ID})
			w.fill(root.ID, 2)
			w.fill(leaf.ID, 2)
			op, err := batch.Pause(w.ctx, w.Store, root.ID, person("bank closed"))
			w.ok(err)
			equal(w, "held", w.carryOut(op).Done, 4)
			equal(w, "paused", w.batch(leaf.ID).Paused, "bank closed")
			late := w.fill(leaf.ID, 1)
			inner := w.openBatch(batch.Batch{Parent: leaf.ID})
			w.fill(inner.ID, 1)
			w.claimNone("all are held")
			held, is, err := hold.Of(w.ctx, w.Other, w.job(late[0]))
			equal(w, "held", fmt.Sprint(is, err, strings.HasSuffix(held.Reason, "is paused: bank closed")), "true <nil> true")
			op, err = batch.Resume(w.ctx, w.Store, root.ID, person("open"))
			w.ok(err)
			equal(w, "released", w.carryOut(op).Done, 6)
			equal(w, "claimed", len(w.claim(10)), 6)
			entries, err := w.Store.Audit(w.ctx, sluice.AuditFilter{Object: audit.ObjectBatch, Name: root.ID.String(), Limit: 10})
			w.ok(err)
			equal(w, "told", fmt.Sprintf("%d: %s, %s: %s", len(entries), entries[0].Event, entries[1].Event, entries[1].Reason), "2: resume, pause: bank closed")
		}},
		{"R-873", "Retry requeues the dead jobs of a batch and of those in it, and no others.", "E-10", func(w *world) {
			root := w.openBatch(batch.Batch{})
			leaf := w.openBatch(batch.Batch{Parent: root.ID})
			w.fill(root.ID, 2)
			w.fill(leaf.ID, 2)
			w.add(sluice.EnqueueOptions{})
			for n, c := range w.claim(5) {
				w.done(by(map[bool]sluice.Event{true: sluice.EventBury, false: sluice.EventComplete}[n != 1], c))
			}
			op, err := batch.Retry(w.ctx, w.Store, root.ID, operation.Operation{}, person("bank is back"))
			w.ok(err)
			equal(w, "requeued", w.carryOut(op).Done, 3)
			equal(w, "counts", w.counts(root.ID)+"; "+w.counts(leaf.ID), "2: 1 completed, 0 dead, 0 cancelled; 2: 0 completed, 0 dead, 0 cancelled")
			_, err = batch.Retry(w.ctx, w.Store, sluice.NewID(), operation.Operation{}, person("why"))
			w.is(err, sluice.ErrNotFound)
		}},
		{"R-874", "Any number of processes that add jobs, end them, close the batch and look at it at once count exactly, and enqueue each callback once, after all.", "I-8, I-15", func(w *world) {
			b := w.openBatch(batch.Batch{Callbacks: callbacks("calls", nil)})
			const adders, rounds, each = 4, 5, 6
			var adding, all sync.WaitGroup
			done := make(chan struct{})
			for n := range adders {
				store := []sluice.Store{w.Store, w.Other}[n%2]
				adding.Go(func() {
					for range rounds {
						inserts := make([]sluice.Insert, each)
						for i := range inserts {
							inserts[i] = insertOf(sluice.EnqueueOptions{Batch: b.ID})
						}
						if _, err := store.Enqueue(w.ctx, inserts); err != nil {
							w.Errorf("enqueue: %v", err)
						}
					}
				})
				all.Go(func() { w.endMembers(store, n, done) })
				all.Go(func() {
					for alive := true; alive; {
						select {
						case <-done:
							alive = false
						default:
						}
						if _, err := batch.Given(store).AdvanceBatches(w.ctx, 7); err != nil {
							w.Errorf("advance: %v", err)
						}
					}
				})
			}
			adding.Wait()
			w.closeBatch(b.ID)
			for w.batch(b.ID).Unfinished() > 0 && !w.Failed() {
				time.Sleep(time.Millisecond)
			}
			close(done)
			all.Wait()
			w.advanceBatches()
			got := w.batch(b.ID)
			equal(w, "total", got.Total, adders*rounds*each)
			equal(w, "state", got.State(), batch.StateComplete)
			equal(w, "recounted", w.recounted(b.ID).Ended, got.Counts)
			equal(w, "callbacks", len(w.claimOfQueue("calls", 100)), 2)
		}},
		{"R-875", "A batch that was complete for long enough is forgotten, unless jobs of it live again or it is in a batch that is not; its jobs stay, can be listed, and count no more.", "E-9", func(w *world) {
			root := w.openBatch(batch.Batch{})
			leaf, alive := w.openBatch(batch.Batch{Parent: root.ID}), w.openBatch(batch.Batch{})
			w.fill(leaf.ID, 1)
			dead := w.claimOne()
			w.done(by(sluice.EventBury, dead))
			w.fill(alive.ID, 1)
			again := w.claimOne()
			w.done(by(sluice.EventBury, again))
			for _, id := range []sluice.ID{leaf.ID, alive.ID} {
				w.closeBatch(id)
			}
			w.advanceBatches()
			w.requeued(again.ID, false)
			w.advanceBatches()
			w.Advance(time.Hour)
			equal(w, "forgotten: it is in one that is open", w.forgetBatches(30*time.Minute), 0)
			w.closeBatch(root.ID)
			w.advanceBatches()
			equal(w, "forgotten too early", w.forgetBatches(30*time.Minute), 0)
			w.Advance(time.Hour)
			equal(w, "forgotten", w.forgetBatches(30*time.Minute), 2)
			equal(w, "left", w.listBatches(batch.Filter{}), fmt.Sprint([]sluice.ID{alive.ID}))
			page, err := w.Store.Jobs(w.ctx, sluice.JobFilter{Batch: leaf.ID, Limit: 10})
			w.ok(err)
			equal(w, "its jobs", len(page.Jobs), 1)
			w.requeued(dead.ID, false)
			w.finishAnyOf(2)
			equal(w, "changes of the forgotten", w.advanceBatches(), 0)
		}},
		{"R-876", "The ETA of a closed batch follows from its rate so far; an open or paused one has none.", "D-3", func(w *world) {
			b := w.openBatch(batch.Batch{})
			w.fill(b.ID, 4)
			w.Advance(time.Hour)
			w.finishAny()
			_, known := w.batch(b.ID).ETA()
			equal(w, "known while it is open", known, false)
			w.closeBatch(b.ID)
			left, known := w.batch(b.ID).ETA()
			equal(w, "known", known, true)
			if (left - 3*time.Hour).Abs() > 5*time.Minute {
				w.Errorf("the ETA is %s, want about 3h", left)
			}
			equal(w, "progress", w.batch(b.ID).Progress(), 0.25)
		}},
	}
}

// endMembers claims jobs and ends them, one in ten as dead, until done is closed.
func (w *world) endMembers(store sluice.Store, n int, done <-chan struct{}) {
	for {
		select {
		case <-done:
			return
		default:
		}
		claimed, err := store.Claim(w.ctx, claimOf(n, 5))
		if err != nil {
			w.Errorf("claim: %v", err)
			return
		}
		var settlements []sluice.Settlement
		for i, c := range claimed.Jobs {
			settlements = append(settlements, by(map[bool]sluice.Event{true: sluice.EventBury, false: sluice.EventComplete}[i == 4], c))
		}
		if len(settlements) == 0 {
			time.Sleep(time.Millisecond)
			continue
		}
		errs, err := store.Settle(w.ctx, settlements)
		if err := errors.Join(append(errs, err)...); err != nil {
			w.Errorf("settle: %v", err)
		}
	}
}

// carryOut carries an operation out to its end.
func (w *world) carryOut(o operation.Operation) operation.Operation {
	w.Helper()
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

// dispatchAndDoubt brings a claimed job to uncertain.
func (w *world) dispatchAndDoubt(c *sluice.Claim) error {
	w.Helper()
	s := by(sluice.EventDispatch, c)
	s.Ref = "run-1"
	if err := w.settle(s); err != nil {
		return err
	}
	return w.settle(by(sluice.EventDoubt, c))
}

func (w *world) forgetBatches(age time.Duration) (gone int) {
	w.Helper()
	for {
		n, err := batch.Given(w.Store).ForgetBatches(w.ctx, age, 10)
		w.ok(err)
		if gone += n; n == 0 {
			return gone
		}
	}
}

// finishAnyOf completes jobs, whichever a claim brings.
func (w *world) finishAnyOf(n int) {
	w.Helper()
	claims := w.claim(n)
	equal(w, "claimed", len(claims), n)
	for _, c := range claims {
		w.done(by(sluice.EventComplete, c))
	}
}
