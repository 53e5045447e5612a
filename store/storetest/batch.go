package storetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/batch"
)

func batchRules() []Rule {
	return []Rule{
		{"R-860", "A batch reads back as it was opened, from every process; batches are listed the newest first, in pages, by parent, and those that are not complete; an unknown one is not found.", "I-20", func(w *world) {
			want := batch.Batch{ID: sluice.NewID(), Name: "import", Callbacks: batch.Callbacks{OnDeath: &batch.Callback{Queue: "calls", Payload: json.RawMessage(`{"a":1}`), Tenant: "acme", Priority: 2}}}
			w.openBatch(want)
			got := w.batch(want.ID)
			equal(w, "batch", fmt.Sprint(got.Name, got.CreatedBy, got.State(), jsonText(w, got.Callbacks)), fmt.Sprint("import", "ada", batch.StateOpen, jsonText(w, want.Callbacks)))
			w.near("opened", got.CreatedAt, w.Now())
			w.near("clock", got.Now, w.Now())
			w.add(sluice.EnqueueOptions{Batch: want.ID})
			equal(w, "its counts", w.counts(want.ID), "1: 0 completed, 0 dead, 0 cancelled")
			inner, alone := w.openBatch(batch.Batch{Parent: want.ID}), w.openBatch(batch.Batch{})
			w.closeBatch(alone.ID)
			w.advanceBatches()
			equal(w, "all", w.listBatches(batch.Filter{}), fmt.Sprint([]sluice.ID{alone.ID, inner.ID, want.ID}))
			equal(w, "a page", w.listBatches(batch.Filter{Before: alone.ID, Limit: 1}), fmt.Sprint([]sluice.ID{inner.ID}))
			equal(w, "in it", w.listBatches(batch.Filter{Parent: want.ID}), fmt.Sprint([]sluice.ID{inner.ID}))
			equal(w, "not complete", w.listBatches(batch.Filter{Unfinished: true}), fmt.Sprint([]sluice.ID{inner.ID, want.ID}))
			_, err := batch.Read(w.ctx, w.Other, sluice.NewID())
			w.is(err, sluice.ErrNotFound)
			w.is(batch.Close(w.ctx, w.Store, sluice.NewID(), person("test")), sluice.ErrNotFound)
		}},
		{"R-1140", "A batch that is opened again as it is stored is the same batch, in every state, and by anybody. With another name, parent or callback, the open is refused as an invalid ID that names what differs, and the stored batch stays as it is.", "[batches](guide/batch.md)", func(w *world) {
			parent := w.openBatch(batch.Batch{})
			of := func(complete, death *batch.Callback) batch.Callbacks {
				return batch.Callbacks{OnComplete: complete, OnDeath: death}
			}
			call := batch.Callback{Queue: "calls", Payload: json.RawMessage(`{"a": 1, "b": [2.0]}`), Tenant: "acme"}
			want := batch.Batch{ID: sluice.NewID(), Name: "import", Parent: parent.ID, Callbacks: of(&call, nil)}
			w.openBatch(want)
			w.add(sluice.EnqueueOptions{Batch: want.ID})
			again := want
			again.Callbacks = of(&batch.Callback{Queue: "calls", Payload: json.RawMessage(`{"b":[2.0],"a":1}`), Tenant: "acme", Priority: sluice.DefaultPriority}, nil)
			w.openBatch(again)
			w.closeBatch(want.ID)
			w.closeBatch(parent.ID)
			for differs, change := range map[string]func(b *batch.Batch){
				"name":                  func(b *batch.Batch) { b.Name = "" },
				"parent":                func(b *batch.Batch) { b.Parent = sluice.ID{} },
				"name, parent":          func(b *batch.Batch) { b.Name, b.Parent = "other", sluice.NewID() },
				"on_complete":           func(b *batch.Batch) { b.OnComplete = nil },
				"on_death":              func(b *batch.Batch) { b.OnDeath = &call },
				"on_complete, on_death": func(b *batch.Batch) { b.Callbacks = of(nil, &call) },
				"on_success":            func(b *batch.Batch) { b.OnSuccess = &batch.Callback{Queue: "calls"} },
			} {
				w.openedOtherwise(want, differs, change)
			}
			for _, change := range []func(c *batch.Callback){
				func(c *batch.Callback) { c.Queue = "other" },
				func(c *batch.Callback) { c.Tenant = "" },
				func(c *batch.Callback) { c.Priority = 1 },
				func(c *batch.Callback) { c.Payload = nil },
				func(c *batch.Callback) { c.Payload = json.RawMessage(`null`) },
				func(c *batch.Callback) { c.Payload = json.RawMessage(`{"a":1,"b":[2.0,3]}`) },
			} {
				other := call
				change(&other)
				w.openedOtherwise(want, "on_complete", func(b *batch.Batch) { b.OnComplete = &other })
			}
			opened, err := batch.Open(w.ctx, w.Other, want, sluice.Act{By: "another"})
			w.ok(err)
			equal(w, "opened again, closed", fmt.Sprint(opened.Name, opened.Total, opened.ClosedAt.IsZero(), opened.CreatedBy), fmt.Sprint("import", 1, false, "ada"))
			equal(w, "callbacks", jsonText(w, w.batch(want.ID).Callbacks), jsonText(w, want.Callbacks))
		}},
		{"R-861", "A batch counts its jobs as they are added and as they end, at once and in every process; retries and releases count nothing, and a settlement that is sent again does not count twice.", "I-8, I-9", func(w *world) {
			b := w.openBatch(batch.Batch{})
			w.fill(b.ID, 5)
			w.add(sluice.EnqueueOptions{})
			equal(w, "added", w.counts(b.ID), "5: 0 completed, 0 dead, 0 cancelled")
			claims := w.members(b.ID, 5)
			equal(w, "batch, as its holder gets it", claims[0].Batch, b.ID)
			for range 2 {
				w.ok(w.settle(by(sluice.EventComplete, claims[0])))
				w.ok(w.settle(by(sluice.EventBury, claims[1])))
				w.ok(w.settle(by(sluice.EventRetry, claims[2])))
				w.ok(w.settle(by(sluice.EventRelease, claims[3])))
			}
			w.cancel(person("enough"), claims[4].ID)
			equal(w, "ended", w.counts(b.ID), "5: 1 completed, 1 dead, 1 cancelled")
			w.advanceBatches()
			equal(w, "after upkeep", w.counts(b.ID), "5: 1 completed, 1 dead, 1 cancelled")
			equal(w, "batch, once finished", w.job(claims[0].ID).Batch, b.ID)
			w.recounted(b.ID)
		}},
		{"R-862", "On complete is enqueued once, when the batch is closed and its last job has ended, and not before; its job tells of the counts. With a dead job, on success is not.", "I-15", func(w *world) {
			b := w.openBatch(batch.Batch{Name: "import", Callbacks: callbacks("calls", nil)})
			w.fill(b.ID, 2)
			first, last := w.claimOne(), w.claimOne()
			w.done(by(sluice.EventComplete, first))
			equal(w, "callbacks while it is open", w.advanceBatches(), 0)
			w.closeBatch(b.ID)
			equal(w, "callbacks before the last job", w.advanceBatches(), 0)
			w.done(by(sluice.EventBury, last))
			equal(w, "state", w.batch(b.ID).State(), batch.StateClosed)
			equal(w, "callbacks", w.advanceBatches(), 2)
			equal(w, "callbacks of another look", w.advanceBatches(), 0)
			equal(w, "state", w.batch(b.ID).State(), batch.StateComplete)
			called := w.called("calls")
			equal(w, "calls", len(called), 2)
			equal(w, "on death", called["death"], fmt.Sprintf(`{"batch":"%s","name":"import","event":"death","total":2,"completed":1,"dead":1,"cancelled":0}`, b.ID))
			equal(w, "on complete", called["complete"], fmt.Sprintf(`{"batch":"%s","name":"import","event":"complete","total":2,"completed":1,"dead":1,"cancelled":0}`, b.ID))
		}},
		{"R-863", "On success is enqueued once, when all jobs of a complete batch have completed: also if the dead ones were requeued after it was complete. On complete is not enqueued again.", "I-15", func(w *world) {
			b := w.openBatch(batch.Batch{Callbacks: callbacks("calls", json.RawMessage(`{"of":"{{batch}}"}`))})
			w.fill(b.ID, 2)
			w.closeBatch(b.ID)
			w.finishAny()
			dead := w.claimOne()
			w.done(by(sluice.EventBury, dead))
			equal(w, "callbacks", w.advanceBatches(), 2)
			for _, c := range w.claimOfQueue("calls", 9) {
				equal(w, "payload", squeezed(c.Payload), fmt.Sprintf(`{"of":"%s"}`, b.ID))
				equal(w, "label", c.Labels[batch.Label], b.ID.String())
				w.done(by(sluice.EventComplete, c))
			}
			w.requeued(dead.ID, false)
			equal(w, "counts", w.counts(b.ID), "2: 1 completed, 0 dead, 0 cancelled")
			equal(w, "callbacks while it runs again", w.advanceBatches(), 0)
			w.finishAny()
			equal(w, "callbacks", w.advanceBatches(), 1)
			equal(w, "callbacks of another look", w.advanceBatches(), 0)
			got := w.batch(b.ID)
			equal(w, "state", got.State(), batch.StateSucceeded)
			equal(w, "complete before", got.CompletedAt.Before(got.SucceededAt), true)
			equal(w, "jobs", len(w.claimOfQueue("calls", 9)), 1)
		}},
		{"R-864", "On death is enqueued once, at the first dead job, also while the batch is open, and whatever becomes of that job.", "I-15", func(w *world) {
			b := w.openBatch(batch.Batch{Callbacks: callbacks("calls", nil)})
			w.fill(b.ID, 3)
			claims := w.claim(3)
			w.done(by(sluice.EventBury, claims[0]))
			w.requeued(claims[0].ID, false)
			equal(w, "callbacks", w.advanceBatches(), 1)
			w.done(by(sluice.EventBury, claims[1]))
			equal(w, "callbacks of the second", w.advanceBatches(), 0)
			equal(w, "it died", w.batch(b.ID).DiedAt.IsZero(), false)
			equal(w, "jobs", fmt.Sprint(len(w.called("calls"))), "1")
		}},
		{"R-865", "A job for a closed or unknown batch is refused alone, with ErrNotAllowed or ErrNotFound; the others are stored. A job that is stored already is a duplicate.", "I-8", func(w *world) {
			b := w.openBatch(batch.Batch{})
			in := insertOf(sluice.EnqueueOptions{Batch: b.ID})
			w.receipts(in)
			w.closeBatch(b.ID)
			late, lost, good := insertOf(sluice.EnqueueOptions{Batch: b.ID}), insertOf(sluice.EnqueueOptions{Batch: sluice.NewID()}), insertOf(sluice.EnqueueOptions{})
			behind := insertOf(after("", late.ID))
			receipts, err := w.Store.Enqueue(w.ctx, []sluice.Insert{in, late, lost, good, behind})
			var refused *sluice.BatchError
			if !errors.As(err, &refused) || len(refused.Failed) != 3 {
				w.Fatalf("the error is %v, want three jobs to be refused", err)
			}
			w.is(refused.Failed[1], sluice.ErrNotAllowed)
			w.is(refused.Failed[2], sluice.ErrNotFound)
			w.is(refused.Failed[4], sluice.ErrNotFound)
			equal(w, "sent again", receipts[0], sluice.Receipt{ID: in.ID, Duplicate: true})
			w.inState(good.ID, sluice.StateQueued)
			equal(w, "counts", w.counts(b.ID), "1: 0 completed, 0 dead, 0 cancelled")
			_, err = w.Store.Job(w.ctx, late.ID)
			w.is(err, sluice.ErrNotFound)
		}},
		{"R-866", "A batch that is closed without jobs completes and succeeds; closed again, it stays as it is.", "I-15", func(w *world) {
			b := w.openBatch(batch.Batch{Callbacks: callbacks("calls", nil)})
			equal(w, "callbacks while it is open", w.advanceBatches(), 0)
			w.closeBatch(b.ID)
			closed := w.batch(b.ID).ClosedAt
			equal(w, "callbacks", w.advanceBatches(), 2)
			w.closeBatch(b.ID)
			equal(w, "callbacks", w.advanceBatches(), 0)
			got := w.batch(b.ID)
			equal(w, "state", got.State(), batch.StateSucceeded)
			equal(w, "closed", got.ClosedAt, closed)
			equal(w, "progress", got.Progress(), 1)
		}},
		{"R-867", "A batch is complete only when the batches in it are, at any depth, and succeeds only if they do; the first death in it is one of its own. A closed batch takes no other.", "I-15", func(w *world) {
			root := w.openBatch(batch.Batch{Callbacks: callbacks("root", nil)})
			middle := w.openBatch(batch.Batch{Parent: root.ID})
			leaf := w.openBatch(batch.Batch{Parent: middle.ID, Callbacks: callbacks("leaf", nil)})
			w.fill(leaf.ID, 2)
			for _, id := range []sluice.ID{root.ID, middle.ID, leaf.ID} {
				w.closeBatch(id)
			}
			for _, parent := range []sluice.ID{root.ID, sluice.NewID()} {
				_, err := batch.Open(w.ctx, w.Store, batch.Batch{Parent: parent}, person("test"))
				w.is(err, map[bool]error{true: sluice.ErrNotAllowed, false: sluice.ErrNotFound}[parent == root.ID])
			}
			claims := w.claim(2)
			w.done(by(sluice.EventBury, claims[0]))
			equal(w, "callbacks of the death", w.advanceBatches(), 2)
			equal(w, "state before the last job", w.batch(root.ID).State(), batch.StateClosed)
			w.done(by(sluice.EventComplete, claims[1]))
			equal(w, "callbacks of the end", w.advanceBatches(), 2)
			equal(w, "state", w.batch(root.ID).State(), batch.StateComplete)
			equal(w, "in it", fmt.Sprint(w.batch(root.ID).Batches, w.batch(root.ID).BatchesComplete), "1 1")
			w.requeued(claims[0].ID, false)
			w.finishes(claims[0].ID)
			equal(w, "callbacks of the success", w.advanceBatches(), 2)
			equal(w, "state", w.batch(root.ID).State(), batch.StateSucceeded)
			equal(w, "calls of the root", len(w.called("root")), 3)
		}},
		{"R-868", "A duplicate is no job of the batch that it was sent for: the job that has the key stays in its own, with the new payload if it is coalesced. A replaced job counts as cancelled in its batch.", "I-7", func(w *world) {
			a, b := w.openBatch(batch.Batch{}), w.openBatch(batch.Batch{})
			first := w.add(sluice.EnqueueOptions{Batch: a.ID, Key: "k"})
			for _, rule := range []sluice.OnDuplicate{sluice.Keep, sluice.Coalesce, sluice.Debounce} {
				equal(w, string(rule), w.receipt(sluice.EnqueueOptions{Batch: b.ID, Key: "k", OnDuplicate: rule}), sluice.Receipt{ID: first, Duplicate: true})
			}
			equal(w, "batch", w.job(first).Batch, a.ID)
			equal(w, "counts", w.counts(b.ID), "0: 0 completed, 0 dead, 0 cancelled")
			next := w.receipt(sluice.EnqueueOptions{Batch: b.ID, Key: "k", OnDuplicate: sluice.Replace})
			equal(w, "replaced", next.Replaced, first)
			equal(w, "counts of the replaced", w.counts(a.ID), "1: 0 completed, 0 dead, 1 cancelled")
			equal(w, "counts of the new", w.counts(b.ID), "1: 0 completed, 0 dead, 0 cancelled")
			w.finishes(next.ID)
			equal(w, "counts", w.counts(b.ID), "1: 1 completed, 0 dead, 0 cancelled")
		}},
		{"R-950", "Of many jobs for one batch, those that are stored already are duplicates and count no more; the others are stored and counted. So are those that come twice in one call.", "I-8", func(w *world) {
			b := w.openBatch(batch.Batch{})
			inserts := make([]sluice.Insert, 20)
			for i := range inserts {
				inserts[i] = insertOf(sluice.EnqueueOptions{Batch: b.ID})
			}
			w.receipts(inserts[3:7]...)
			receipts := w.receipts(append(inserts, inserts[19])...)
			for i, r := range receipts {
				equal(w, fmt.Sprint("receipt ", i), r, sluice.Receipt{ID: inserts[min(i, 19)].ID, Duplicate: i >= 3 && i < 7 || i == 20})
			}
			equal(w, "counts", w.counts(b.ID), "20: 0 completed, 0 dead, 0 cancelled")
			w.members(b.ID, 20)
			w.recounted(b.ID)
		}},
	}
}

// callbacks are all three in a queue.
func callbacks(queue string, payload json.RawMessage) batch.Callbacks {
	c := &batch.Callback{Queue: queue, Payload: payload}
	return batch.Callbacks{OnComplete: c, OnSuccess: c, OnDeath: c}
}

func (w *world) openBatch(b batch.Batch) batch.Batch {
	w.Helper()
	got, err := batch.Open(w.ctx, w.Store, b, person("test"))
	w.ok(err)
	return got
}

// openedOtherwise opens a stored batch again, after a change.
func (w *world) openedOtherwise(stored batch.Batch, differs string, change func(b *batch.Batch)) {
	w.Helper()
	change(&stored)
	_, err := batch.Open(w.ctx, w.Other, stored, person("test"))
	var invalid *sluice.InvalidError
	if !errors.As(err, &invalid) || invalid.Field != "id" || !strings.Contains(invalid.Rule, "is stored with another "+differs+";") {
		w.Errorf("another %s: the error is %v", differs, err)
	}
}

// closeBatch closes a batch through the other store.
func (w *world) closeBatch(id sluice.ID) {
	w.Helper()
	w.ok(batch.Close(w.ctx, w.Other, id, person("test")))
}

func (w *world) batch(id sluice.ID) batch.Batch {
	w.Helper()
	got, err := batch.Read(w.ctx, w.Other, id)
	w.ok(err)
	return got
}

// counts are those of a batch, which both stores must know.
func (w *world) counts(id sluice.ID) string {
	w.Helper()
	text := func(b batch.Batch) string {
		return fmt.Sprintf("%d: %d completed, %d dead, %d cancelled", b.Total, b.Completed, b.Dead, b.Cancelled)
	}
	listed, err := batch.List(w.ctx, w.Store, batch.Filter{Limit: 10_000})
	w.ok(err)
	at := slices.IndexFunc(listed, func(b batch.Batch) bool { return b.ID == id })
	equal(w, "counts in the list", text(listed[at]), text(w.batch(id)))
	return text(listed[at])
}

func (w *world) listBatches(filter batch.Filter) string {
	w.Helper()
	found, err := batch.List(w.ctx, w.Other, filter)
	w.ok(err)
	var ids []sluice.ID
	for _, b := range found {
		ids = append(ids, b.ID)
	}
	return fmt.Sprint(ids)
}

// fill adds jobs to a batch.
func (w *world) fill(id sluice.ID, n int) []sluice.ID {
	w.Helper()
	inserts := make([]sluice.Insert, n)
	ids := make([]sluice.ID, n)
	for i := range inserts {
		inserts[i] = insertOf(sluice.EnqueueOptions{Batch: id})
		ids[i] = inserts[i].ID
	}
	w.receipts(inserts...)
	return ids
}

// members claims all jobs of the queue, and returns those of a batch.
func (w *world) members(id sluice.ID, want int) []*sluice.Claim {
	w.Helper()
	claims := slices.DeleteFunc(w.claim(1000), func(c *sluice.Claim) bool { return c.Batch != id })
	equal(w, "claimed jobs of the batch", len(claims), want)
	return claims
}

// advanceBatches lets upkeep look at batches until nothing has changed, and returns how many callbacks it enqueued.
func (w *world) advanceBatches() (callbacks int) {
	w.Helper()
	for range 100 {
		out, err := batch.Given(w.Store).AdvanceBatches(w.ctx, 1000)
		w.ok(err)
		if callbacks += out.Callbacks; out.Changes == 0 {
			return callbacks
		}
	}
	w.Fatal("batches change for ever")
	return 0
}

// claimOfQueue claims jobs of another queue.
func (w *world) claimOfQueue(queue string, limit int) []*sluice.Claim {
	w.Helper()
	request := claimOf(1, limit)
	request.Queue = queue
	return w.claimAs(w.Store, request)
}

// called claims the callbacks of a queue, and returns their payloads by event.
func (w *world) called(queue string) map[string]string {
	w.Helper()
	out := make(map[string]string)
	for _, c := range w.claimOfQueue(queue, 100) {
		var told struct{ Event string }
		w.ok(json.Unmarshal(c.Payload, &told))
		out[told.Event] += squeezed(c.Payload)
	}
	return out
}

// recounted makes sure that the counts of a batch fit its jobs.
func (w *world) recounted(id sluice.ID) batch.Recount {
	w.Helper()
	got, err := batch.Given(w.Store).RecountBatch(w.ctx, id)
	w.ok(err)
	if !got.Exact() {
		w.Fatalf("the counts %+v do not fit the jobs: %d unfinished, ended %+v", got.Batch.Counts, got.Unfinished, got.Ended)
	}
	return got
}
