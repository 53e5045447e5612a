package storetest

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/sluice-queue/sluice"
)

func claimRules() []Rule {
	return []Rule{
		{"R-20", "A job is never handed out before it is due.", "I-3", func(w *world) {
			id := w.add(sluice.EnqueueOptions{DueAt: w.Now().Add(10 * time.Minute)})
			w.claimNone("it is due in 10 minutes")
			w.Advance(9 * time.Minute)
			w.claimNone("it is due in 1 minute")
			w.Advance(2 * time.Minute)
			c := w.claimOne()
			equal(w, "claimed", c.ID, id)
			equal(w, "claimed after it was due", c.ClaimedAt.Before(c.DueAt), false)
		}},
		{"R-21", "The lowest priority figure goes first, then the longest due, then the first enqueued.", "C-19, C-44, E-19", func(w *world) {
			now := w.Now()
			var want []sluice.ID
			third := w.add(sluice.EnqueueOptions{Priority: 5, DueAt: now.Add(-time.Minute)})
			fourth := w.add(sluice.EnqueueOptions{Priority: 5, DueAt: now.Add(-time.Minute)})
			second := w.add(sluice.EnqueueOptions{Priority: 5, DueAt: now.Add(-time.Hour)})
			last := w.add(sluice.EnqueueOptions{Priority: 10, DueAt: now.Add(-48 * time.Hour)})
			first := w.add(sluice.EnqueueOptions{Priority: 1, DueAt: now.Add(-time.Second)})
			want = append(want, first, second, third, fourth, last)
			for i, c := range w.claim(2) {
				equal(w, "claimed", c.ID, want[i])
			}
			for i, c := range w.claim(10) {
				equal(w, "claimed", c.ID, want[i+2])
			}
		}},
		{"R-22", "A claim never takes more than its limit; the next one takes the rest.", "A-88, A-92", func(w *world) {
			w.addMany(15)
			equal(w, "first claim", len(w.claim(10)), 10)
			equal(w, "second claim", len(w.claim(10)), 5)
			w.claimNone("all are claimed")
		}},
		{"R-23", "A claim that finds nothing tells how long until the next job is due, or that none waits.", "A-93, C-40", func(w *world) {
			claimed, err := w.Store.Claim(w.ctx, claimOf(1, 10))
			w.ok(err)
			equal(w, "jobs", len(claimed.Jobs), 0)
			equal(w, "next due of an empty queue is negative", claimed.NextDue < 0, true)
			w.add(sluice.EnqueueOptions{Delay: time.Hour})
			w.add(sluice.EnqueueOptions{Delay: 10 * time.Minute, Priority: 9})
			// It may first ask to look again soon: the slower the store answers, the later.
			for deadline := time.Now().Add(10 * time.Minute); claimed.NextDue < 9*time.Minute && time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
				claimed, err = w.Store.Claim(w.ctx, claimOf(1, 10))
				w.ok(err)
			}
			if claimed.NextDue < 9*time.Minute || claimed.NextDue > 10*time.Minute {
				w.Fatalf("next due in %s, want about 10m", claimed.NextDue)
			}
		}},
		{"R-590", "A look tells of many queues at once how long until their first waiting job is due, whatever its priority and the limits; queues with nothing to wait for are left out.", "I-14", func(w *world) {
			look := func() map[string]time.Duration {
				found, err := w.Other.NextDue(w.ctx, []string{queue, "later", "empty", "paused", "closed", "fair"})
				w.ok(err)
				return found
			}
			equal(w, "queues of an empty store", len(look()), 0)
			at := w.Now()
			for _, in := range []struct {
				queue string
				due   time.Duration
			}{{queue, -time.Second}, {"later", time.Hour}, {"later", 10 * time.Minute}, {"paused", 0}, {"closed", 0}, {"fair", 0}} {
				insert := insertOf(sluice.EnqueueOptions{DueAt: at.Add(in.due), Priority: 3, Tenant: "acme"})
				insert.Queue = in.queue
				w.receipts(insert)
			}
			w.saveNamed("paused", func(s *sluice.Settings) { s.Paused, s.PausedUntil = true, at.Add(30*time.Minute) })
			w.saveNamed("closed", func(s *sluice.Settings) { s.Paused = true })
			w.saveNamed("fair", func(s *sluice.Settings) { s.Fair, s.Concurrency = true, 1 })
			about := func(found map[string]time.Duration, queue string, want time.Duration) {
				got, waits := found[queue]
				if !waits || want <= 0 && got > 0 || want > 0 && (got > want || got < want-time.Minute) {
					w.Errorf("the first job of %s is due in %s (%t), want %s", queue, got, waits, want)
				}
			}
			found := look()
			equal(w, "queues with something to wait for", len(found), 4)
			about(found, queue, 0)
			about(found, "later", 10*time.Minute)
			about(found, "paused", 30*time.Minute)
			about(found, "fair", 0)
			w.claimOne()
			equal(w, "queues after a claim", len(look()), 3)
			w.Advance(11 * time.Minute)
			about(look(), "later", 0)
		}},
		{"R-591", "A claim from several queues takes their jobs in their order, each up to its limit; a queue that is paused, has limits or serves tenants in turns gives nothing.", "I-14", func(w *world) {
			names := []string{"one", "two", "paused", "rated", "fair", "three"}
			for _, name := range names {
				for range 5 {
					insert := insertOf(sluice.EnqueueOptions{})
					insert.Queue = name
					w.receipts(insert)
				}
			}
			w.saveNamed("paused", func(s *sluice.Settings) { s.Paused = true })
			w.saveNamed("rated", func(s *sluice.Settings) { s.Rate = sluice.Rate{Jobs: 100, Per: time.Second} })
			w.saveNamed("fair", func(s *sluice.Settings) { s.Fair = true })
			claim := func(limit int) map[string]int {
				request := claimOf(1, limit)
				for _, name := range names {
					request.Queues = append(request.Queues, sluice.QueueClaim{Queue: name, Limit: 3, Lease: time.Hour})
				}
				claimed, err := w.Store.Claim(w.ctx, request)
				w.ok(err)
				got := make(map[string]int)
				for _, c := range claimed.Jobs {
					got[c.Queue]++
					w.near("lease_until", c.LeaseUntil, w.Now().Add(time.Hour))
					equal(w, "queue of the job", w.inState(c.ID, sluice.StateClaimed).Queue, c.Queue)
				}
				return got
			}
			equal(w, "up to a limit", maps.Equal(claim(5), map[string]int{"one": 3, "two": 2}), true)
			equal(w, "up to the limit of each", maps.Equal(claim(100), map[string]int{"one": 2, "two": 3, "three": 3}), true)
			equal(w, "the rest", maps.Equal(claim(100), map[string]int{"three": 2}), true)
			equal(w, "nothing", len(claim(100)), 0)
		}},
		{"R-933", "A claim that says that it was sent before gets the jobs that it still has, from every process, and others only if it has none.", "I-20", func(w *world) {
			w.addMany(3)
			request := claimOf(1, 2)
			first := w.claimAs(w.Store, request)
			request.Again = true
			again := w.claimAs(w.Other, request)
			equal(w, "jobs of the claim that is sent again", len(again), 2)
			for i, c := range again {
				equal(w, "job", c.ID, first[i].ID)
				equal(w, "proof", c.Token, first[i].Token)
				equal(w, "payload", string(c.Payload), string(first[i].Payload))
			}
			w.done(by(sluice.EventComplete, first[0]))
			equal(w, "jobs once one has ended", len(w.claimAs(w.Store, request)), 1)
			w.done(by(sluice.EventComplete, first[1]))
			equal(w, "jobs once all have ended: the next", len(w.claimAs(w.Store, request)), 1)
			never := claimOf(1, 2)
			never.Again = true
			equal(w, "jobs of a claim that was never sent", len(w.claimAs(w.Store, never)), 0)
		}},
		{"R-24", "A claimed job is not handed out again while its lease holds.", "I-2, C-89", func(w *world) {
			id := w.add(sluice.EnqueueOptions{})
			c := w.claimOne()
			j := w.inState(id, sluice.StateClaimed)
			equal(w, "holder", j.Holder, holder(1))
			w.near("lease_until", j.LeaseUntil, w.Now().Add(time.Minute))
			w.near("claimed_at", c.ClaimedAt, w.Now())
			w.claimNone("it is held")
		}},
		{"R-25", "However many holders claim at once, through any store, every job is handed out exactly once.", "I-2, A-66, B-49", func(w *world) {
			for _, holders := range []int{2, 8} {
				ids := w.addMany(40 * holders)
				taken := w.claimTogether(holders, 7)
				equal(w, "jobs handed out", len(taken), len(ids))
				for id, times := range taken {
					equal(w, "times "+id.String()+" was handed out", times, 1)
				}
			}
		}},
		{"R-26", "Jobs that are not due never stand in the way of those that are, whatever their priority.", "A-114", func(w *world) {
			for range 20 {
				w.add(sluice.EnqueueOptions{Priority: 1, Delay: time.Hour})
			}
			id := w.add(sluice.EnqueueOptions{Priority: 10})
			equal(w, "claimed", w.claimOne().ID, id)
		}},
		{"R-28", "A paused queue hands out nothing, from the moment the pause is stored; what is claimed goes on, and resume continues where it was.", "I-13, D-19, D-64", func(w *world) {
			w.addMany(3)
			running := w.claimOne()
			w.save(func(s *sluice.Settings) { s.Paused = true })
			w.claimNone("the queue is paused")
			if claims := w.claimAs(w.Other, claimOf(2, 10)); len(claims) > 0 {
				w.Fatal("another process claims from a paused queue")
			}
			w.done(by(sluice.EventComplete, running))
			w.save(func(s *sluice.Settings) { s.Paused = false })
			equal(w, "claimed after resume", len(w.claim(10)), 2)
		}},
		{"R-29", "A claim brings the job whole: payload, tenant, key, labels, attempts, error and checkpoint.", "D-10", func(w *world) {
			in := insertOf(sluice.EnqueueOptions{Tenant: "acme", Key: "k", Labels: map[string]string{"region": "eu"}, MaxAttempts: 9, Priority: 3})
			w.receipts(in)
			c := w.claimOne()
			w.ok(w.Store.SaveCheckpoint(w.ctx, c.ID, c.Token, []byte(`{"step":2}`)))
			w.done(by(sluice.EventRetry, c))
			c = w.claimOne()
			equal(w, "id", c.ID, in.ID)
			equal(w, "queue", c.Queue, queue)
			equal(w, "state", c.State, sluice.StateClaimed)
			equal(w, "tenant", c.Tenant, "acme")
			equal(w, "key", c.Key, "k")
			equal(w, "label", c.Labels["region"], "eu")
			equal(w, "priority", c.Priority, 3)
			equal(w, "max_attempts", c.MaxAttempts, 9)
			equal(w, "attempts", c.Attempts, 1)
			equal(w, "generation", c.Generation, 1)
			equal(w, "error", c.Error, "no route to bank")
			equal(w, "checkpoint", string(c.Checkpoint), `{"step":2}`)
			equal(w, "payload", string(c.Payload), string(in.Payload))
		}},
		{"R-30", "A claim takes jobs of its queue only.", "E-18", func(w *world) {
			other := insertOf(sluice.EnqueueOptions{})
			other.Queue = "refunds"
			w.receipts(other)
			w.claimNone("the job is in another queue")
		}},
		{"R-31", "A job that becomes due behind those already claimed is found: released, rescheduled, or enqueued with a due_at in the past.", "I-1", func(w *world) {
			w.addMany(20)
			claims := w.claim(15)
			w.done(by(sluice.EventRelease, claims[0]))
			past := w.add(sluice.EnqueueOptions{DueAt: w.Now().Add(-24 * time.Hour)})
			w.findAll(claims[0].ID, past)
		}},
		{"R-35", "A job that is due since long before anybody can have meant it is found all the same.", "I-1", func(w *world) {
			id := w.add(sluice.EnqueueOptions{Delay: time.Hour})
			long := time.Date(1734, 1, 1, 0, 0, 0, 0, time.UTC)
			errs, err := w.Store.Reschedule(w.ctx, []sluice.ID{id}, long, person("test"))
			w.ok(w.only(errs, err))
			equal(w, "claimed", w.claimOne().ID, id)
		}},
		{"R-34", "A job that another store puts behind those already claimed is found a moment later.", "I-1", func(w *world) {
			w.addMany(20)
			claims := w.claim(15)
			errs, err := w.Other.Settle(w.ctx, []sluice.Settlement{by(sluice.EventRelease, claims[0])})
			w.ok(w.only(errs, err))
			past := insertOf(sluice.EnqueueOptions{DueAt: w.Now().Add(-24 * time.Hour)})
			_, err = w.Other.Enqueue(w.ctx, []sluice.Insert{past})
			w.ok(err)
			w.findAll(claims[0].ID, past.ID)
		}},
		{"R-32", "A job past its expiry is not handed out, and is cancelled when upkeep looks; one that is claimed runs on, and expires if it comes back.", "H-14", func(w *world) {
			at := w.Now().Add(10 * time.Minute)
			running := w.add(sluice.EnqueueOptions{ExpiresAt: at, Priority: 1})
			c := w.claimOne()
			waiting := w.add(sluice.EnqueueOptions{ExpiresAt: at})
			w.Advance(11 * time.Minute)
			w.claimNone("it has expired")
			n, err := w.Store.Expire(w.ctx, 100, "upkeep")
			w.ok(err)
			equal(w, "expired", n, 1)
			w.inState(waiting, sluice.StateCancelled)
			equal(w, "reason", w.told(waiting, sluice.EventCancel).Reason, "expired")
			w.inState(running, sluice.StateClaimed)
			w.done(by(sluice.EventRelease, c))
			n, err = w.Store.Expire(w.ctx, 100, "upkeep")
			w.ok(err)
			equal(w, "expired", n, 1)
			w.inState(running, sluice.StateCancelled)
		}},
		{"R-33", "A queue that has no settings stored hands out its jobs by the defaults.", "I-1", func(w *world) {
			in := insertOf(sluice.EnqueueOptions{})
			in.Queue = "unheard-of"
			w.receipts(in)
			request := claimOf(1, 1)
			request.Queue = in.Queue
			equal(w, "claimed", len(w.claimAs(w.Store, request)), 1)
		}},
	}
}

// claimTogether lets holders claim from both stores at once until nothing is left, and counts how
// often each job was handed out.
func (w *world) claimTogether(holders, limit int) map[sluice.ID]int {
	var wait sync.WaitGroup
	var mu sync.Mutex
	taken := make(map[sluice.ID]int)
	for n := range holders {
		store := w.Store
		if n%2 == 1 && w.Other != nil {
			store = w.Other
		}
		wait.Go(func() {
			for idle := 0; idle < 3; {
				claimed, err := store.Claim(w.ctx, claimOf(n, limit))
				if err != nil {
					w.Errorf("claim: %v", err)
					return
				}
				if len(claimed.Jobs) == 0 {
					idle++
					time.Sleep(min(max(claimed.NextDue, 0), 50*time.Millisecond))
				}
				mu.Lock()
				for _, c := range claimed.Jobs {
					taken[c.ID]++
				}
				mu.Unlock()
			}
		})
	}
	wait.Wait()
	return taken
}

// findAll claims until it has seen the jobs, and gives all that it claimed. As a worker does, it comes again when a claim
// says so: on a slow machine a store looks for jobs behind those already claimed more rarely.
func (w *world) findAll(ids ...sluice.ID) map[sluice.ID]*sluice.Claim {
	w.Helper()
	all := make(map[sluice.ID]*sluice.Claim)
	missing := func(id sluice.ID) bool { return all[id] == nil }
	for waited := time.Duration(0); slices.ContainsFunc(ids, missing); {
		claimed, err := w.Store.Claim(w.ctx, claimOf(1, 10))
		w.ok(err)
		for _, c := range claimed.Jobs {
			all[c.ID] = c
		}
		if len(claimed.Jobs) > 0 {
			continue
		}
		if waited += max(claimed.NextDue, time.Millisecond); claimed.NextDue < 0 || waited > time.Minute {
			w.Fatalf("nothing more can be claimed, the next look is in %s, and not all of %v were found", claimed.NextDue, ids)
		}
		time.Sleep(max(claimed.NextDue, time.Millisecond))
	}
	return all
}
