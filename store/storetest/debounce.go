package storetest

import (
	"fmt"
	"time"

	"github.com/sluice-queue/sluice"
)

// saying makes a job with a payload.
func saying(payload string, options sluice.EnqueueOptions) sluice.Insert {
	in := insertOf(options)
	in.Payload = []byte(payload)
	return in
}

func debounceRules() []Rule {
	debounced := sluice.EnqueueOptions{Key: "k", OnDuplicate: sluice.Debounce, Delay: time.Minute, KeyWindow: 150 * time.Second}
	throttled := sluice.EnqueueOptions{Key: "k", OnDuplicate: sluice.Coalesce, KeyScope: sluice.ForWindow, KeyWindow: time.Hour}
	return []Rule{
		{"R-710", "Debounce puts the waiting job off by the delay of the newest, with the newest payload, at most until the longest wait after the first.", "I-7", func(w *world) {
			first := w.receipts(saying("1", debounced))[0].ID
			for _, payload := range []string{"2", "3"} {
				w.Advance(50 * time.Second)
				equal(w, "receipt", w.receipts(saying(payload, debounced))[0], sluice.Receipt{ID: first, Duplicate: true})
				w.claimNone("it was put off")
			}
			w.near("due", w.job(first).DueAt, w.Now().Add(50*time.Second)) // 150 s after the first
			w.Advance(30 * time.Second)
			w.receipts(saying("4", debounced))
			w.Advance(21 * time.Second)
			c := w.claimOne()
			equal(w, "claimed", c.ID, first)
			equal(w, "payload", string(c.Payload), "4")
		}},
		{"R-711", "Without a longest wait, debounce puts a job off again and again; a job that has begun stays, and the next comes after it.", "I-7", func(w *world) {
			forEver := debounced
			forEver.KeyWindow = 0
			first := w.receipt(forEver).ID
			for range 10 {
				w.Advance(50 * time.Second)
				equal(w, "receipt", w.receipt(forEver).ID, first)
				w.claimNone("it was put off")
			}
			w.Advance(61 * time.Second)
			running := w.claimOne()
			later := w.receipt(forEver)
			equal(w, "duplicate", later.Duplicate, false)
			equal(w, "blocked by", w.job(later.ID).BlockedBy, first)
			w.done(by(sluice.EventComplete, running))
			w.claimNone("its delay")
			w.Advance(61 * time.Second)
			equal(w, "claimed", w.claimOne().ID, later.ID)
		}},
		{"R-1100", "A job that debounce puts off expires when the newest would, and not before it is due; a requeued one does not.", "I-7", func(w *world) {
			until := func(after time.Duration) sluice.EnqueueOptions {
				expiring := debounced
				expiring.ExpiresAt = w.Now().Add(after)
				return expiring
			}
			first := w.receipt(until(70 * time.Second)).ID
			w.Advance(50 * time.Second)
			equal(w, "receipt", w.receipt(until(70*time.Second)).ID, first)
			w.near("expires", w.job(first).ExpiresAt, w.Now().Add(70*time.Second))
			w.Advance(61 * time.Second)
			w.done(by(sluice.EventBury, w.claimOne()))
			w.ok(w.only(w.Store.Requeue(w.ctx, []sluice.ID{first}, person("again"))))
			equal(w, "receipt", w.receipt(until(70*time.Second)).ID, first)
			equal(w, "a requeued job expires", w.job(first).ExpiresAt, time.Time{})
			w.Advance(2 * time.Hour)
			equal(w, "claimed", w.claimOne().ID, first)
		}},
		{"R-1130", "A job that others coalesce into expires when the newest would, with a window and without, unless it is due only then; a requeued one does not.", "I-7", func(w *world) {
			for _, options := range []sluice.EnqueueOptions{{Key: "k", OnDuplicate: sluice.Coalesce}, throttled} {
				until := func(after time.Duration) sluice.EnqueueOptions {
					expiring := options
					expiring.ExpiresAt = w.Now().Add(after)
					return expiring
				}
				first := w.receipt(until(time.Minute)).ID
				w.Advance(50 * time.Second)
				equal(w, "receipt", w.receipt(until(2*time.Minute)), sluice.Receipt{ID: first, Duplicate: true})
				w.near("expires", w.job(first).ExpiresAt, w.Now().Add(2*time.Minute))
				w.Advance(time.Minute)
				expired, err := w.Store.Expire(w.ctx, 10, "upkeep")
				equal(w, "expired by the older deadline", fmt.Sprint(expired, err), "0 <nil>")
				equal(w, "receipt", w.receipt(options).ID, first)
				equal(w, "expires", w.job(first).ExpiresAt, time.Time{})
				_, err = w.Store.Reschedule(w.ctx, []sluice.ID{first}, w.Now().Add(time.Hour), person("later"))
				w.ok(err)
				equal(w, "receipt", w.receipt(until(time.Minute)).ID, first)
				equal(w, "it would expire before it is due", w.job(first).ExpiresAt, time.Time{})
				w.Advance(61 * time.Minute)
				w.done(by(sluice.EventComplete, w.claimOne()))
				w.Advance(2 * time.Hour)
			}
			again := sluice.EnqueueOptions{Key: "k", OnDuplicate: sluice.Coalesce}
			dead := w.receipt(again).ID
			w.done(by(sluice.EventBury, w.claimOne()))
			w.ok(w.only(w.Store.Requeue(w.ctx, []sluice.ID{dead}, person("again"))))
			again.ExpiresAt = w.Now().Add(time.Minute)
			equal(w, "receipt", w.receipt(again).ID, dead)
			equal(w, "a requeued job expires", w.job(dead).ExpiresAt, time.Time{})
		}},
		{"R-712", "In a queue that serves its tenants in turns, a job that debounce has put off is handed out when it is due.", "I-7", func(w *world) {
			w.save(func(s *sluice.Settings) { s.Fair = true })
			of := func() sluice.Insert {
				in := insertOf(debounced)
				in.Tenant, in.ByTenant = "acme", true
				return in
			}
			first := w.receipts(of())[0].ID
			w.Advance(50 * time.Second)
			w.receipts(of())
			w.Advance(20 * time.Second)
			w.claimNone("it was put off")
			w.Advance(41 * time.Second)
			_, err := w.Store.Repair(w.ctx, "upkeep")
			w.ok(err)
			equal(w, "claimed", w.claimOne().ID, first)
		}},
		{"R-713", "Coalesce with a window throttles: the first job of a key starts at once, and one job with the newest payload starts at the end of each window.", "I-7", func(w *world) {
			first := w.receipts(saying("1", throttled))[0].ID
			equal(w, "claimed at once", w.claimOne().ID, first)
			w.Advance(10 * time.Minute)
			second := w.receipts(saying("2", throttled))[0]
			equal(w, "the second is stored", second.Duplicate, false)
			w.near("due", w.job(second.ID).DueAt, w.Now().Add(50*time.Minute))
			equal(w, "the third merges", w.receipts(saying("3", throttled))[0], sluice.Receipt{ID: second.ID, Duplicate: true})
			w.claimNone("the window has not ended")
			w.Advance(51 * time.Minute)
			c := w.claimOne()
			equal(w, "claimed", c.ID, second.ID)
			equal(w, "payload", string(c.Payload), "3")
			w.done(by(sluice.EventComplete, c))
			fourth := w.receipts(saying("4", throttled))[0]
			equal(w, "the fourth waits for the second window", fourth.Duplicate, false)
			w.near("due", w.job(fourth.ID).DueAt, w.Now().Add(59*time.Minute))
			w.Advance(3 * time.Hour)
			equal(w, "claimed after it", w.claimOne().ID, fourth.ID)
			w.receipts(saying("5", throttled))
			equal(w, "after a pause the first starts at once", string(w.claimOne().Payload), "5")
		}},
		{"R-714", "Throttle merges into the first job of a window while nobody has claimed it; a key for ever lets none follow.", "I-7", func(w *world) {
			first := w.receipts(saying("1", throttled))[0].ID
			equal(w, "receipt", w.receipts(saying("2", throttled))[0], sluice.Receipt{ID: first, Duplicate: true})
			equal(w, "payload", string(w.claimOne().Payload), "2")
			ever := w.add(sluice.EnqueueOptions{Key: "e", KeyScope: sluice.ForEver})
			w.claimOne()
			behind := throttled
			behind.Key = "e"
			equal(w, "receipt of a key for ever", w.receipt(behind), sluice.Receipt{ID: ever, Duplicate: true})
		}},
	}
}
