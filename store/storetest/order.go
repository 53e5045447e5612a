package storetest

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluice-queue/sluice"
)

func orderRules() []Rule {
	return []Rule{
		{"R-270", "Jobs of a queue that share an order key run one at a time, in the order in which they were enqueued, whatever their priorities and due times; other jobs do not wait for them.", "C-5", func(w *world) {
			first := w.add(ordered("a", func(o *sluice.EnqueueOptions) { o.Priority = 9 }))
			second := w.add(ordered("a", func(o *sluice.EnqueueOptions) { o.Priority, o.DueAt = 1, w.Now().Add(-time.Hour) }))
			third := w.add(ordered("a"))
			elsewhere := insertOf(ordered("a"))
			elsewhere.Queue = "refunds"
			w.receipts(elsewhere)
			free, other := w.add(sluice.EnqueueOptions{}), w.add(ordered("b"))
			equal(w, "blocked by", w.job(second).BlockedBy, first)
			equal(w, "blocked by", w.job(third).BlockedBy, second)
			equal(w, "order key", w.job(third).OrderKey, "a")
			equal(w, "claimed elsewhere", len(w.claimAs(w.Store, inQueue("refunds", claimOf(1, 10)))), 1)
			for _, c := range w.claims(first, free, other) {
				w.done(by(sluice.EventComplete, c))
			}
			w.finishes(second, third)
			w.claimNone("all are done")
		}},
		{"R-271", "Those of one batch are ordered as in the batch, and those of later batches come behind, through any store.", "C-5", func(w *world) {
			var want []sluice.ID
			for n := range 4 {
				store := w.Store
				if n%2 == 1 {
					store = w.Other
				}
				var batch []sluice.Insert
				for k := range 25 {
					in := insertOf(ordered("a", func(o *sluice.EnqueueOptions) { o.Priority = 1 + (7*k)%10 }))
					in.ID[15] = byte(251 * k) // ids say nothing of the order
					want, batch = append(want, in.ID), append(batch, in, insertOf(sluice.EnqueueOptions{Delay: time.Hour}))
				}
				_, err := store.Enqueue(w.ctx, batch)
				w.ok(err)
			}
			w.finishes(want...)
		}},
		{"R-272", "While the first of an order is not due, retries, was released, recovered or is uncertain, the others wait.", "C-5", func(w *world) {
			first := w.add(ordered("a", func(o *sluice.EnqueueOptions) { o.Delay = time.Hour }))
			second := w.add(ordered("a"))
			w.claimNone("the first is not due")
			w.Advance(61 * time.Minute)
			retry := by(sluice.EventRetry, w.claims(first)[0])
			retry.Delay = time.Hour
			w.done(retry)
			w.claimNone("the first waits for its next attempt")
			w.Advance(61 * time.Minute)
			w.done(by(sluice.EventRelease, w.claims(first)[0]))
			w.claims(first)
			w.claimNone("the first runs")
			w.Advance(2 * time.Minute)
			equal(w, "recovered", w.recover().Requeued, 1)
			w.done(by(sluice.EventDoubt, w.claims(first)[0]))
			w.claimNone("nobody knows whether the first ran")
			w.ok(w.only(w.Store.Requeue(w.ctx, []sluice.ID{first}, person("it did not"))))
			w.finishes(first, second)
		}},
		{"R-273", "A dead, cancelled or expired first lets the next go.", "C-5", func(w *world) {
			ids := []sluice.ID{w.add(ordered("a")), w.add(ordered("a")), 2: w.add(ordered("a", func(o *sluice.EnqueueOptions) { o.ExpiresAt = w.Now().Add(time.Hour) })), 3: w.add(ordered("a"))}
			w.done(by(sluice.EventBury, w.claims(ids[0])[0]))
			w.ok(w.only(w.Store.Cancel(w.ctx, ids[1:2], person("test"))))
			w.Advance(61 * time.Minute)
			_, err := w.Store.Expire(w.ctx, 10, "upkeep")
			w.ok(err)
			w.finishes(ids[3])
		}},
		{"R-274", "When jobs in the middle of an order end, those behind wait for what is left before them; when the last ends, new ones do.", "C-5", func(w *world) {
			var ids []sluice.ID
			for range 6 {
				ids = append(ids, w.add(ordered("a")))
			}
			running := w.claims(ids[0])[0]
			errs, err := w.Other.Cancel(w.ctx, []sluice.ID{ids[1], ids[2], ids[5]}, person("test"))
			w.ok(err)
			equal(w, "errors", len(slices.DeleteFunc(errs, func(err error) bool { return err == nil })), 0)
			equal(w, "blocked by", w.job(ids[3]).BlockedBy, ids[0])
			equal(w, "blocked by", w.job(ids[4]).BlockedBy, ids[3])
			last := w.add(ordered("a"))
			equal(w, "blocked by", w.job(last).BlockedBy, ids[4])
			w.claimNone("the first runs")
			w.done(by(sluice.EventComplete, running))
			w.finishes(ids[3], ids[4], last)
		}},
		{"R-275", "A requeued job has its old place in its order again, before those that wait, but behind one that was let go meanwhile.", "C-5, C-56", func(w *world) {
			var ids []sluice.ID
			for range 4 {
				ids = append(ids, w.add(ordered("a")))
			}
			for _, id := range ids[:2] {
				w.done(by(sluice.EventBury, w.claims(id)[0]))
			}
			third := w.claims(ids[2])[0]
			errs, err := w.Store.Requeue(w.ctx, []sluice.ID{ids[1], ids[0]}, person("mended"))
			w.ok(err)
			equal(w, "errors", len(slices.DeleteFunc(errs, func(err error) bool { return err == nil })), 0)
			w.claimNone("the third runs")
			w.done(by(sluice.EventComplete, third))
			w.finishes(ids[0], ids[1], ids[3])
			w.add(ordered("a"))
			w.ok(w.only(w.Store.Cancel(w.ctx, []sluice.ID{w.add(ordered("a"))}, person("test"))))
		}},
		{"R-276", "With many holders, through several stores, of jobs that fail, are released and are cancelled, no two of one order key are ever in flight, and they begin in the order in which they were enqueued.", "C-5, I-2", func(w *world) {
			w.save(func(s *sluice.Settings) { s.Audit, s.MaxAttempts = sluice.AuditFull, 10 })
			w.runOrdered(8, 16, 4)
		}},
		{"R-277", "Jobs that are enqueued behind one that ends in this moment do not stay behind it, without upkeep.", "C-5, I-1", func(w *world) {
			for n := range 25 {
				first := w.add(ordered(holder(n)))
				running := w.claims(first)[0]
				second := insertOf(ordered(holder(n)))
				third := insertOf(sluice.EnqueueOptions{After: []sluice.ID{first}})
				var wait sync.WaitGroup
				wait.Go(func() { w.done(by(sluice.EventComplete, running)) })
				wait.Go(func() {
					_, err := w.Other.Enqueue(w.ctx, []sluice.Insert{second, third})
					if err != nil {
						w.Errorf("enqueue: %v", err)
					}
				})
				wait.Wait()
				for _, c := range w.claims(second.ID, third.ID) {
					w.done(by(sluice.EventComplete, c))
				}
			}
		}},
		{"R-278", "A job that is sent again keeps its place; one that replaces another goes to the end; one that is coalesced behind its running twin waits for its order too.", "C-5, I-7", func(w *world) {
			sent := insertOf(ordered("a"))
			w.receipts(sent)
			replaced := w.add(ordered("a", func(o *sluice.EnqueueOptions) { o.Key = "k" }))
			third := w.add(ordered("a"))
			equal(w, "duplicate", w.receipts(sent)[0].Duplicate, true)
			replacing := w.receipt(ordered("a", func(o *sluice.EnqueueOptions) { o.Key, o.OnDuplicate = "k", sluice.Replace }))
			equal(w, "replaced", replacing.Replaced, replaced)
			equal(w, "blocked by", w.job(third).BlockedBy, sent.ID)
			w.finishes(sent.ID, third)
			running := w.claims(replacing.ID)[0]
			fourth := w.add(ordered("a"))
			coalesced := w.add(ordered("a", func(o *sluice.EnqueueOptions) { o.Key, o.OnDuplicate = "k", sluice.Coalesce }))
			w.done(by(sluice.EventComplete, running))
			w.finishes(fourth, coalesced)
			equal(w, "the key is free", w.receipt(sluice.EnqueueOptions{Key: "k"}).Duplicate, false)
		}},
		{"R-279", "The key of a job that is cancelled while it waits for another of its order is free.", "C-5, I-7", func(w *world) {
			w.add(ordered("a"))
			id := w.add(ordered("a", func(o *sluice.EnqueueOptions) { o.Key = "k" }))
			w.ok(w.only(w.Store.Cancel(w.ctx, []sluice.ID{id}, person("test"))))
			equal(w, "the key is free", w.receipt(sluice.EnqueueOptions{Key: "k"}).Duplicate, false)
		}},
	}
}

// ordered are the options of a job with an order key.
func ordered(key string, changes ...func(*sluice.EnqueueOptions)) sluice.EnqueueOptions {
	o := sluice.EnqueueOptions{OrderKey: key}
	for _, change := range changes {
		change(&o)
	}
	return o
}

func inQueue(name string, request sluice.ClaimRequest) sluice.ClaimRequest {
	request.Queue = name
	return request
}

// claims takes exactly these jobs, which are all that can be claimed.
func (w *world) claims(want ...sluice.ID) []*sluice.Claim {
	w.Helper()
	claims := w.claim(100)
	if len(claims) < len(want) {
		claims = append(claims, w.claim(100)...) // what was let go a moment ago may come a moment later
	}
	by := make(map[sluice.ID]*sluice.Claim)
	for _, c := range claims {
		by[c.ID] = c
	}
	out := make([]*sluice.Claim, len(want))
	for i, id := range want {
		if out[i] = by[id]; out[i] == nil || len(claims) != len(want) {
			w.Fatalf("claimed %d jobs, want %d, among them %s, which is %+v", len(claims), len(want), id, w.job(id))
		}
	}
	return out
}

// finishes completes jobs, each of which is all that can be claimed when its turn comes.
func (w *world) finishes(want ...sluice.ID) {
	w.Helper()
	for _, id := range want {
		w.done(by(sluice.EventComplete, w.claims(id)[0]))
	}
}

// runOrdered lets holders run jobs of some order keys while they are enqueued, and looks at the audit.
func (w *world) runOrdered(holders, jobs, keys int) {
	enqueued := make([][]sluice.ID, keys)
	var produced atomic.Bool
	var producers, wait sync.WaitGroup
	for key := range keys {
		producers.Go(func() {
			for n := 0; n < jobs; n += 4 {
				store := w.Store
				if n%8 == 4 {
					store = w.Other
				}
				var batch []sluice.Insert
				for range 4 {
					in := insertOf(ordered(fmt.Sprint(key), func(o *sluice.EnqueueOptions) { o.Priority = 1 + len(enqueued[key])%3 }))
					batch, enqueued[key] = append(batch, in), append(enqueued[key], in.ID)
				}
				if _, err := store.Enqueue(w.ctx, batch); err != nil {
					w.Errorf("enqueue: %v", err)
				}
				if n%12 == 8 {
					_, _ = store.Cancel(w.ctx, []sluice.ID{batch[1].ID}, person("test")) // unless it runs already
				}
			}
		})
	}
	for n := range holders {
		store := w.Store
		if n%2 == 1 {
			store = w.Other
		}
		wait.Go(func() { w.holdOrdered(store, n, &produced) })
	}
	producers.Wait()
	produced.Store(true)
	wait.Wait()
	w.ranInOrder(enqueued)
}

// holdOrdered is one holder: it claims, and completes, fails or releases what it got.
func (w *world) holdOrdered(store sluice.Store, n int, produced *atomic.Bool) {
	for round := 0; ; round++ {
		request := claimOf(n, 3)
		request.Ageing = 0.3
		claimed, err := store.Claim(w.ctx, request)
		if err != nil {
			w.Errorf("claim: %v", err)
			return
		}
		if len(claimed.Jobs) == 0 {
			if produced.Load() && !w.unfinished() {
				return
			}
			time.Sleep(60 * time.Millisecond) // the others want the store, too
		}
		for i, c := range claimed.Jobs {
			event := sluice.EventComplete
			switch (n + round + i) % 7 {
			case 3:
				event = sluice.EventRetry
			case 4:
				event = sluice.EventRelease
			case 6:
				event = sluice.EventBury
			}
			if errs, err := store.Settle(w.ctx, []sluice.Settlement{by(event, c)}); err != nil {
				w.Errorf("settle: %v %v", errs, err)
				return
			}
		}
	}
}

// unfinished reports whether jobs of the queue are left.
func (w *world) unfinished() bool {
	page, err := w.Store.Jobs(w.ctx, sluice.JobFilter{Queue: queue, States: []sluice.State{sluice.StateQueued, sluice.StateClaimed}, Limit: 1})
	if err != nil {
		w.Errorf("list: %v", err)
		return false
	}
	return len(page.Jobs) > 0
}

// ranInOrder replays the audit: of each order key, one job at a time was in flight, and each began after
// those before it had ended.
func (w *world) ranInOrder(enqueued [][]sluice.ID) {
	type told struct {
		place int
		entry sluice.AuditEntry
	}
	for key, ids := range enqueued {
		var story []told
		for place, id := range ids {
			for _, entry := range w.audit(id) {
				story = append(story, told{place, entry})
			}
		}
		slices.SortFunc(story, func(a, b told) int { return int(a.entry.Seq - b.entry.Seq) })
		ended, running := make(map[int]bool), -1
		for _, t := range story {
			switch {
			case t.entry.From == t.entry.To: // such as an outcome that came too late
			case t.entry.To == sluice.StateClaimed:
				if running >= 0 {
					w.Fatalf("key %d: job %d was claimed while job %d ran", key, t.place, running)
				}
				running = t.place
				for before := range t.place {
					if !ended[before] {
						w.Fatalf("key %d: job %d was claimed before job %d had ended", key, t.place, before)
					}
				}
			case t.entry.From == sluice.StateClaimed:
				running = -1
			}
			ended[t.place] = ended[t.place] || t.entry.To.Finished()
		}
		equal(w, "jobs of the key that ended", len(ended), len(ids))
	}
}
