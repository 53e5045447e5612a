package storetest

import (
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/edit"
)

// keyTenantRules are about keys that jobs of several tenants want.
func keyTenantRules() []Rule {
	return []Rule{
		{"R-1062", "On duplicate, replace, coalesce and debounce touch no job of another tenant. While such a job holds the key, they refuse the new job as invalid, and say neither id nor tenant. Keep finds the first job of any tenant.", "I-7", func(w *world) {
			for _, on := range []sluice.OnDuplicate{sluice.Replace, sluice.Coalesce, sluice.Debounce} {
				key := string(on)
				wants := func(tenant string) sluice.Insert {
					return saying("2", sluice.EnqueueOptions{Key: key, Tenant: tenant, OnDuplicate: on, Delay: time.Hour})
				}
				first := w.receipts(saying("1", sluice.EnqueueOptions{Key: key, Tenant: "acme"}))[0].ID
				was := w.job(first)
				for _, tenant := range []string{"globex", ""} {
					w.refusedByKey(wants(tenant), first)
				}
				is := w.inState(first, sluice.StateQueued)
				equal(w, "payload", string(is.Payload), "1")
				equal(w, "due at", is.DueAt, was.DueAt)
				equal(w, "keep", w.receipt(sluice.EnqueueOptions{Key: key, Tenant: "globex"}), sluice.Receipt{ID: first, Duplicate: true})
				running := w.claimOne()
				w.refusedByKey(wants("globex"), first)
				w.done(by(sluice.EventComplete, running))
				equal(w, "stored when the key is free", w.receipts(wants("globex"))[0].Duplicate, false)
			}
			w.Advance(2 * time.Hour)
			equal(w, "claimed", len(w.claim(10)), 3)
			window := sluice.EnqueueOptions{Key: "w", KeyScope: sluice.ForWindow, KeyWindow: time.Hour, OnDuplicate: sluice.Coalesce, Tenant: "acme"}
			first := w.add(window)
			w.done(by(sluice.EventComplete, w.claimOne()))
			other := window
			other.Tenant = "globex"
			w.refusedByKey(insertOf(other), first)
			equal(w, "the same tenant waits for the next window", w.receipt(window).Duplicate, false)
		}},
		{"R-1063", "A job that is refused because a job of another tenant holds its key is refused alone, with the jobs of its call that run after it; the others are stored.", "I-7, I-8", func(w *world) {
			holder := w.add(sluice.EnqueueOptions{Key: "k", Tenant: "acme"})
			replacing := sluice.EnqueueOptions{Key: "k", Tenant: "globex", OnDuplicate: sluice.Replace}
			before, refusedOne := insertOf(sluice.EnqueueOptions{Key: "a", Tenant: "globex"}), insertOf(replacing)
			behind, keyedBehind := insertOf(after("", refusedOne.ID)), insertOf(after("", refusedOne.ID, before.ID))
			keyedBehind.Key, keyedBehind.KeyScope, keyedBehind.OnDuplicate = "b", sluice.WhileUnfinished, sluice.Keep
			last, plain := insertOf(after("", behind.ID)), insertOf(after("", before.ID))
			receipts, err := w.Store.Enqueue(w.ctx, []sluice.Insert{before, refusedOne, behind, keyedBehind, last, plain})
			var refused *sluice.BatchError
			if !errors.As(err, &refused) || len(refused.Failed) != 4 || refused.Failed[0] != nil || refused.Failed[5] != nil {
				w.Fatalf("the error is %v, want the jobs 1 to 4 to be refused", err)
			}
			w.is(refused.Failed[1], sluice.ErrInvalid)
			for i := 2; i <= 4; i++ {
				w.is(refused.Failed[i], sluice.ErrNotFound)
			}
			equal(w, "stored", receipts[0].ID, before.ID)
			equal(w, "stored", receipts[5].ID, plain.ID)
			for _, id := range []sluice.ID{refusedOne.ID, behind.ID, keyedBehind.ID, last.ID} {
				_, err = w.Store.Job(w.ctx, id)
				w.is(err, sluice.ErrNotFound)
			}
			equal(w, "the key of a refused job is free", w.receipt(sluice.EnqueueOptions{Key: "b"}).Duplicate, false)
			w.inState(holder, sluice.StateQueued)
		}},
		{"R-1064", "If a job gets another tenant while a job of its former tenant is to replace it, one of the two fails.", "I-7, C-9", func(w *world) {
			for n := range 12 {
				options := sluice.EnqueueOptions{Key: holder(n), Tenant: "acme", Delay: time.Hour}
				first := w.job(w.receipt(options).ID)
				options.OnDuplicate = sluice.Replace
				var wait sync.WaitGroup
				var enqueued error
				wait.Go(func() {
					_, enqueued = w.Other.Enqueue(w.ctx, []sluice.Insert{insertOf(options)})
				})
				tenant := "globex"
				edited := edit.Job(w.ctx, w.Store, first, edit.Change{Tenant: &tenant}, person("moved"), nil)
				wait.Wait()
				if (enqueued == nil) == (edited == nil) {
					w.Fatalf("the job says %v and the edit %v, want one error", enqueued, edited)
				}
				if is := w.job(first.ID); edited == nil && (is.State != sluice.StateQueued || is.Tenant != "globex") {
					w.Fatalf("the edited job is %+v", is)
				}
			}
		}},
	}
}

// refusedByKey makes sure that a job is refused because of its key, and that the error tells nothing of the holder.
func (w *world) refusedByKey(in sluice.Insert, holder sluice.ID) {
	w.Helper()
	_, err := w.Store.Enqueue(w.ctx, []sluice.Insert{in})
	w.is(err, sluice.ErrInvalid)
	if text := err.Error(); !strings.Contains(text, "key") || strings.Contains(text, holder.String()) || strings.Contains(text, "acme") {
		w.Fatalf("the error is %q, want one about the key, without the holder and its tenant", text)
	}
	_, err = w.Store.Job(w.ctx, in.ID)
	w.is(err, sluice.ErrNotFound)
}
