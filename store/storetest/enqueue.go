package storetest

import (
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluice-queue/sluice"
)

func enqueueRules() []Rule {
	return []Rule{
		{"R-1", "A job that Enqueue reported stored can be looked up, with everything the producer said.", "I-1, C-88", func(w *world) {
			due := w.Now().Add(time.Hour).Truncate(time.Millisecond)
			in := insertOf(sluice.EnqueueOptions{
				Tenant: "acme", Key: "order-42", Priority: 2, DueAt: due, ExpiresAt: due.Add(time.Hour), MaxAttempts: 7,
				Labels: map[string]string{"region": "eu", "blank": "", "umlaut": "Größe"},
			})
			equal(w, "receipt", w.receipts(in)[0], sluice.Receipt{ID: in.ID})
			j := w.inState(in.ID, sluice.StateQueued)
			equal(w, "queue", j.Queue, queue)
			equal(w, "tenant", j.Tenant, "acme")
			equal(w, "key", j.Key, "order-42")
			equal(w, "priority", j.Priority, 2)
			equal(w, "max_attempts", j.MaxAttempts, 7)
			equal(w, "generation", j.Generation, 1)
			equal(w, "due_at", j.DueAt.Equal(due), true)
			equal(w, "expires_at", j.ExpiresAt.Equal(due.Add(time.Hour)), true)
			equal(w, "labels", len(j.Labels), 3)
			equal(w, "label", j.Labels["umlaut"], "Größe")
			w.near("created_at", j.CreatedAt, w.Now())
		}},
		{"R-2", "The payload read equals the payload given, byte for byte.", "I-9", func(w *world) {
			for _, payload := range []string{
				`1`, `"x"`, `null`, `{}`, `{"n":12345678901234567890.10,"b":1,"a":2,"a":3}`, `{"text":"\u0000 nul, ünï, 語, 🚰, <&>"}`,
				` { "spaces" : [ 1 , 2 ] } `, strings.Repeat("[", 500) + strings.Repeat("]", 500), `"` + strings.Repeat("x", 300_000) + `"`,
			} {
				in := insertOf(sluice.EnqueueOptions{})
				in.Payload = []byte(payload)
				w.receipts(in)
				if got := string(w.job(in.ID).Payload); got != payload {
					w.Fatalf("looked up %.80q, want %.80q", got, payload)
				}
				if got := string(w.claimOne().Payload); got != payload {
					w.Fatalf("claimed %.80q, want %.80q", got, payload)
				}
			}
		}},
		{"R-3", "Enqueueing an id again finds the first job and changes nothing, also after the job has ended.", "I-7, I-20", func(w *world) {
			first := insertOf(sluice.EnqueueOptions{Tenant: "first", Key: "k"})
			w.receipts(first)
			again := first
			again.Tenant = "second"
			equal(w, "receipt", w.receipts(again)[0], sluice.Receipt{ID: first.ID, Duplicate: true})
			equal(w, "tenant", w.job(first.ID).Tenant, "first")
			w.done(by(sluice.EventComplete, w.claimOne()))
			equal(w, "receipt", w.receipts(again)[0], sluice.Receipt{ID: first.ID, Duplicate: true})
			w.inState(first.ID, sluice.StateCompleted)
			w.claimNone("the job has ended")
		}},
		{"R-4", "A delay is counted by the store's clock.", "I-3, I-26", func(w *world) {
			id := w.add(sluice.EnqueueOptions{Delay: time.Hour})
			w.near("due_at", w.job(id).DueAt, w.Now().Add(time.Hour))
			w.claimNone("it is not due")
			w.Advance(61 * time.Minute)
			equal(w, "claimed", w.claimOne().ID, id)
		}},
		{"R-5", "Jobs of a batch that share an id or a key are treated as if they came one after the other.", "I-7, I-8", func(w *world) {
			a := insertOf(sluice.EnqueueOptions{Key: "k"})
			b := insertOf(sluice.EnqueueOptions{Key: "k"})
			c := insertOf(sluice.EnqueueOptions{Key: "k", OnDuplicate: sluice.Replace})
			plain := insertOf(sluice.EnqueueOptions{})
			got := w.receipts(a, b, plain, plain, c)
			want := []sluice.Receipt{{ID: a.ID}, {ID: a.ID, Duplicate: true}, {ID: plain.ID}, {ID: plain.ID, Duplicate: true}, {ID: c.ID, Replaced: a.ID}}
			for i := range want {
				equal(w, "receipt", got[i], want[i])
			}
			w.inState(a.ID, sluice.StateCancelled)
			w.inState(c.ID, sluice.StateQueued)
		}},
		{"R-6", "Enqueues of many callers at once are all stored, each once.", "I-1", func(w *world) {
			const callers, each = 8, 25
			var wait sync.WaitGroup
			for range callers {
				wait.Go(func() {
					for range each {
						if _, err := w.Store.Enqueue(w.ctx, []sluice.Insert{insertOf(sluice.EnqueueOptions{})}); err != nil {
							w.Errorf("enqueue: %v", err)
						}
					}
				})
			}
			wait.Wait()
			equal(w, "claimed", len(w.claim(2*callers*each)), callers*each)
		}},
		{"R-561", "Of many callers at once, each gets the receipt or the error of its own job.", "I-1, I-7", func(w *world) {
			const callers = 8
			stored, shared := insertOf(sluice.EnqueueOptions{}), insertOf(sluice.EnqueueOptions{})
			w.receipts(stored)
			var wait sync.WaitGroup
			var made atomic.Int32
			for range callers {
				wait.Go(func() {
					in := insertOf(sluice.EnqueueOptions{})
					w.callerGets("a new job", sluice.Receipt{ID: in.ID}, in)
				})
				wait.Go(func() { w.callerGets("a stored job", sluice.Receipt{ID: stored.ID, Duplicate: true}, stored) })
				wait.Go(func() {
					got, err := w.Store.Enqueue(w.ctx, []sluice.Insert{shared})
					if err != nil || got[0].ID != shared.ID {
						w.Errorf("a job of many callers: %v, %v", got, err)
					} else if !got[0].Duplicate {
						made.Add(1)
					}
				})
				wait.Go(func() {
					var refused *sluice.BatchError
					behind := insertOf(sluice.EnqueueOptions{After: []sluice.ID{sluice.NewID()}})
					if _, err := w.Store.Enqueue(w.ctx, []sluice.Insert{behind}); !errors.As(err, &refused) || refused.Failed[0] == nil {
						w.Errorf("a job after one that is not stored: %v", err)
					}
				})
			}
			wait.Wait()
			equal(w, "who made the job of many callers", made.Load(), 1)
			equal(w, "claimed", len(w.claim(10*callers)), callers+2)
		}},
	}
}

// callerGets enqueues one job, beside others who do.
func (w *world) callerGets(what string, want sluice.Receipt, in sluice.Insert) {
	got, err := w.Store.Enqueue(w.ctx, []sluice.Insert{in})
	if err != nil || len(got) != 1 || got[0] != want {
		w.Errorf("%s: receipts %+v, error %v", what, got, err)
	}
}
