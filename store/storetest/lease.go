package storetest

import (
	"encoding/json"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/internal/storing"
)

func leaseRules() []Rule {
	return []Rule{
		{"R-40", "A renewed claim is held on; a lease that is not renewed runs out.", "C-42", func(w *world) {
			kept, left := w.add(sluice.EnqueueOptions{}), w.add(sluice.EnqueueOptions{})
			claims := w.claim(2)
			w.Advance(50 * time.Second)
			lost, err := w.Store.Renew(w.ctx, []sluice.Renewal{{ID: claims[0].ID, Token: claims[0].Token, Lease: time.Minute}})
			w.ok(err)
			equal(w, "lost", len(lost), 0)
			w.Advance(20 * time.Second)
			equal(w, "recovered", w.recover(), sluice.Recovered{Requeued: 1})
			w.inState(kept, sluice.StateClaimed)
			w.inState(left, sluice.StateQueued)
		}},
		{"R-41", "Renew names the claims that the holder no longer has: settled, cancelled, recovered, another's.", "I-2", func(w *world) {
			w.addMany(5)
			claims := w.claim(5)
			w.done(by(sluice.EventComplete, claims[0]))
			w.ok(w.only(w.Store.Cancel(w.ctx, []sluice.ID{claims[1].ID}, person("test"))))
			w.Advance(2 * time.Minute)
			renewals := []sluice.Renewal{
				{ID: claims[3].ID, Token: claims[3].Token, Lease: time.Minute},
				{ID: claims[4].ID, Token: sluice.NewToken(), Lease: time.Minute},
			}
			_, err := w.Store.Renew(w.ctx, renewals)
			w.ok(err)
			equal(w, "recovered", w.recover().Requeued, 2)
			renewals = append(renewals, sluice.Renewal{ID: sluice.NewID(), Token: sluice.NewToken(), Lease: time.Minute})
			for _, c := range claims[:3] {
				renewals = append(renewals, sluice.Renewal{ID: c.ID, Token: c.Token, Lease: time.Minute})
			}
			lost, err := w.Store.Renew(w.ctx, renewals)
			w.ok(err)
			equal(w, "lost", len(lost), 5)
			for _, id := range lost {
				equal(w, "the one still held is not lost", id != claims[3].ID, true)
			}
		}},
		{"R-560", "A job that somebody cancelled while it was claimed tells so to its holder, and to no holder that lost it before.", "I-2", func(w *world) {
			id := w.add(sluice.EnqueueOptions{})
			w.done(by(sluice.EventRelease, w.claimOne()))
			w.done(by(sluice.EventRetry, w.claimOne()))
			w.Advance(time.Hour)
			slow := w.claimOne()
			cancelled := func(c *sluice.Claim, when string, want bool) {
				w.Helper()
				equal(w, when, c.Cancelled(w.job(id)), want)
			}
			cancelled(slow, "while it is held", false)
			w.Advance(2 * time.Minute)
			equal(w, "recovered", w.recover().Requeued, 1)
			cancelled(slow, "taken back", false)
			held := w.claimOne()
			w.ok(w.only(w.Store.Cancel(w.ctx, []sluice.ID{id}, person("test"))))
			cancelled(held, "cancelled", true)
			cancelled(slow, "cancelled while another held it", false)
			w.ok(w.only(w.Store.Requeue(w.ctx, []sluice.ID{id}, person("test"))))
			cancelled(held, "requeued", false)
			again := w.claimOne()
			cancelled(held, "requeued and claimed by another", false)
			w.ok(w.only(w.Store.Cancel(w.ctx, []sluice.ID{id}, person("test"))))
			cancelled(again, "cancelled in its second life", true)
			cancelled(held, "its first life", false)
		}},
		{"R-42", "A job whose lease ran out is recovered to its place in the queue; that counts as a recovery, not as an attempt, is audited, and its old holder has lost it.", "I-2, I-5, A-47, A-53, A-101, C-62, E-4", func(w *world) {
			id := w.add(sluice.EnqueueOptions{DueAt: w.Now().Add(-time.Hour)})
			due := w.job(id).DueAt
			old := w.claimOne()
			equal(w, "recovered before the lease ran out", w.recover(), sluice.Recovered{})
			w.Advance(61 * time.Second)
			equal(w, "recovered", w.recover(), sluice.Recovered{Requeued: 1})
			j := w.inState(id, sluice.StateQueued)
			equal(w, "attempts", j.Attempts, 0)
			equal(w, "recoveries", j.Recoveries, 1)
			equal(w, "holder", j.Holder, "")
			equal(w, "due before now", j.DueAt.Before(due.Add(time.Second)), true)
			equal(w, "audit by", w.told(id, sluice.EventRecover).Actor, "upkeep")
			w.is(w.settle(by(sluice.EventComplete, old)), sluice.ErrLost)
			next := w.claimOne()
			w.is(w.settle(by(sluice.EventComplete, old)), sluice.ErrLost)
			w.done(by(sluice.EventComplete, next))
		}},
		{"R-43", "A holder whose lease ran out may still settle, as long as nobody has recovered the job.", "A-69", func(w *world) {
			id := w.add(sluice.EnqueueOptions{})
			c := w.claimOne()
			w.Advance(5 * time.Minute)
			w.done(by(sluice.EventComplete, c))
			w.inState(id, sluice.StateCompleted)
			equal(w, "recovered", w.recover(), sluice.Recovered{})
		}},
		{"R-44", "A job that has lost max_recoveries holders is buried as poison, without counting an attempt.", "I-5, E-8", func(w *world) {
			w.save(func(s *sluice.Settings) { s.MaxRecoveries = 2 })
			id := w.add(sluice.EnqueueOptions{})
			w.claimOne()
			w.Advance(2 * time.Minute)
			equal(w, "first", w.recover(), sluice.Recovered{Requeued: 1})
			w.claimOne()
			w.Advance(2 * time.Minute)
			equal(w, "second", w.recover(), sluice.Recovered{Buried: 1})
			j := w.inState(id, sluice.StateDead)
			equal(w, "recoveries", j.Recoveries, 2)
			equal(w, "attempts", j.Attempts, 0)
			equal(w, "error", j.Error, storing.PoisonError(2))
			w.told(id, sluice.EventBury)
		}},
		{"R-45", "Recover takes no more than its limit, and only from its queue.", "D-36", func(w *world) {
			w.addMany(5)
			w.claim(5)
			w.Advance(2 * time.Minute)
			out, err := w.Store.Recover(w.ctx, "refunds", 100, "upkeep")
			w.ok(err)
			equal(w, "of another queue", out, sluice.Recovered{})
			out, err = w.Store.Recover(w.ctx, queue, 3, "upkeep")
			w.ok(err)
			equal(w, "of this one", out, sluice.Recovered{Requeued: 3})
			equal(w, "the rest", w.recover(), sluice.Recovered{Requeued: 2})
		}},
		{"R-46", "Many that recover at once recover each job once.", "I-25, A-124", func(w *world) {
			for _, upkeepers := range []int{2, 8} {
				ids := w.addMany(40)
				w.claim(40)
				w.Advance(2 * time.Minute)
				var wait sync.WaitGroup
				var total atomic.Int32
				for n := range upkeepers {
					store := w.Store
					if n%2 == 1 {
						store = w.Other
					}
					wait.Go(func() {
						out, err := store.Recover(w.ctx, queue, 1000, "upkeep")
						if err != nil {
							w.Errorf("recover: %v", err)
						}
						total.Add(int32(out.Requeued))
					})
				}
				wait.Wait()
				equal(w, "recovered", int(total.Load()), 40)
				for _, id := range ids {
					equal(w, "recoveries", w.inState(id, sluice.StateQueued).Recoveries, 1)
				}
				for _, c := range w.claim(40) {
					w.done(by(sluice.EventComplete, c))
				}
			}
		}},
		{"R-47", "A checkpoint outlives a retry, a release and a recovery, and is gone in the next generation; one with an old token is refused and audited.", "C-50, I-2", func(w *world) {
			id := w.add(sluice.EnqueueOptions{})
			c := w.claimOne()
			w.ok(w.Store.SaveCheckpoint(w.ctx, id, c.Token, []byte(`{"uploaded":true}`)))
			w.is(w.Store.SaveCheckpoint(w.ctx, id, sluice.NewToken(), []byte(`{}`)), sluice.ErrLost)
			w.told(id, audit.EventLost)
			w.done(by(sluice.EventRetry, c))
			c = w.claimOne()
			equal(w, "after a retry", string(c.Checkpoint), `{"uploaded":true}`)
			w.done(by(sluice.EventRelease, c))
			w.claimOne()
			w.Advance(2 * time.Minute)
			w.recover()
			c = w.claimOne()
			equal(w, "after a recovery", string(c.Checkpoint), `{"uploaded":true}`)
			w.done(by(sluice.EventBury, c))
			w.ok(w.only(w.Store.Requeue(w.ctx, []sluice.ID{id}, person("again"))))
			equal(w, "in the next generation", string(w.claimOne().Checkpoint), "")
		}},
		{"R-48", "A result or a checkpoint of more than 1 MiB is refused, alone, and the job stays claimed; one of 1 MiB is kept.", "C-25, C-50", func(w *world) {
			most := json.RawMessage(`"` + strings.Repeat("a", sluice.MaxResultBytes-2) + `"`)
			more := append(most[:len(most):len(most)], ' ')
			id, other := w.add(sluice.EnqueueOptions{}), w.add(sluice.EnqueueOptions{})
			claims := w.claim(2)
			c, beside := claims[0], claims[1]
			if c.ID != id {
				c, beside = beside, c
			}
			w.is(w.Store.SaveCheckpoint(w.ctx, id, c.Token, more), sluice.ErrInvalid)
			w.ok(w.Store.SaveCheckpoint(w.ctx, id, c.Token, most))
			large := by(sluice.EventComplete, c)
			large.Result = more
			errs, err := w.Store.Settle(w.ctx, []sluice.Settlement{large, by(sluice.EventComplete, beside)})
			w.ok(err)
			w.is(errs[0], sluice.ErrInvalid)
			w.ok(errs[1])
			w.inState(other, sluice.StateCompleted)
			equal(w, "the checkpoint", len(w.inState(id, sluice.StateClaimed).Checkpoint), len(most))
			large.Result = most
			w.done(large)
			equal(w, "the result", len(w.inState(id, sluice.StateCompleted).Result), len(most))
		}},
		{"R-1220", "A result or a checkpoint that is not UTF-8 is refused, alone, and the job stays claimed.", "[limits](guide/workers-in-other-languages.md)", func(w *world) {
			broken := json.RawMessage("\"caf\xe9\"")
			id, other := w.add(sluice.EnqueueOptions{}), w.add(sluice.EnqueueOptions{})
			claims := w.claim(2)
			c, beside := claims[0], claims[1]
			if c.ID != id {
				c, beside = beside, c
			}
			w.is(w.Store.SaveCheckpoint(w.ctx, id, c.Token, broken), sluice.ErrInvalid)
			done := by(sluice.EventComplete, c)
			done.Result = broken
			errs, err := w.Store.Settle(w.ctx, []sluice.Settlement{done, by(sluice.EventComplete, beside)})
			w.ok(err)
			w.is(errs[0], sluice.ErrInvalid)
			w.ok(errs[1])
			w.inState(other, sluice.StateCompleted)
			equal(w, "the checkpoint", string(w.inState(id, sluice.StateClaimed).Checkpoint), "")
		}},
	}
}
