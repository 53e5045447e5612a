package storetest

import (
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/explain"
)

func flowRules() []Rule {
	return []Rule{
		{"R-200", "A queue with a rate gives its burst at once, then what the rate gives, and says when there will be more.", "I-12, D-36, H-10", func(w *world) {
			w.save(func(s *sluice.Settings) { s.Rate, s.Burst = sluice.RatePerSecond(0.02), 5 })
			w.addMany(50)
			equal(w, "the burst", len(w.claimOnce(20).Jobs), 5)
			claimed := w.claimOnce(20)
			equal(w, "jobs", len(claimed.Jobs), 0)
			equal(w, "limited", claimed.Limited, true)
			if claimed.NextDue <= 0 || claimed.NextDue > 50*time.Second {
				w.Fatalf("the next token in %s, want at most 50s", claimed.NextDue)
			}
			w.Advance(160 * time.Second)
			claimed = w.claimOnce(20)
			equal(w, "after 160s at one in 50s", len(claimed.Jobs), 3)
			equal(w, "limited", claimed.Limited, true)
		}},
		{"R-201", "Tokens that nobody takes do not pile up beyond the burst, which is what a tenth of a second gives, or one, if nothing is said.", "I-12", func(w *world) {
			w.addMany(50)
			w.save(func(s *sluice.Settings) { s.Rate, s.Burst = sluice.RatePerSecond(0.01), 4 })
			equal(w, "the burst", len(w.claimOnce(20).Jobs), 4)
			w.Advance(24 * time.Hour)
			equal(w, "after a day", len(w.claimOnce(20).Jobs), 4)
			w.save(func(s *sluice.Settings) { s.Rate, s.Burst = sluice.RatePerSecond(10), 0 })
			w.Advance(24 * time.Hour)
			equal(w, "without a burst", len(w.claimOnce(20).Jobs), 1)
			w.save(func(s *sluice.Settings) { s.Rate = sluice.RatePerSecond(0.01) })
			w.Advance(24 * time.Hour)
			equal(w, "at least one", len(w.claimOnce(20).Jobs), 1)
		}},
		{"R-202", "In no window do more jobs start than the burst and the rate times the window, with many holders in two processes.", "I-12", func(w *world) {
			const rate, burst = 300, 40
			w.save(func(s *sluice.Settings) { s.Rate, s.Burst = sluice.RatePerSecond(rate), burst })
			w.addMany(1000)
			starts := w.claimByMany(8, 7, 5*burst)
			for i := range starts {
				for k := i; k < len(starts); k++ {
					window := starts[k].Sub(starts[i]).Seconds()
					if most := burst + rate*window + 1e-3; float64(k-i+1) > most {
						w.Fatalf("%d jobs in %.4f s, and %.1f are allowed", k-i+1, window, most)
					}
				}
			}
		}},
		{"R-203", "A changed limit counts from the next claim on, in every process.", "I-10, I-15", func(w *world) {
			w.addMany(100)
			equal(w, "without limits", len(w.claimOnce(10).Jobs), 10)
			w.save(func(s *sluice.Settings) { s.Concurrency = 12 })
			equal(w, "two more", len(w.claimOnce(10).Jobs), 2)
			w.save(func(s *sluice.Settings) { s.Concurrency = 5 })
			equal(w, "lowered below what is in flight", len(w.claimOnce(10).Jobs), 0)
			w.save(func(s *sluice.Settings) { s.Concurrency = 13 })
			other, err := w.Other.Claim(w.ctx, claimOf(2, 10))
			w.ok(err)
			equal(w, "in the other process", len(other.Jobs), 1)
			w.save(func(s *sluice.Settings) { s.Concurrency, s.Rate, s.Burst = 0, sluice.RatePerSecond(0.02), 3 })
			equal(w, "by the new rate", len(w.claimOnce(10).Jobs), 3)
			w.save(func(s *sluice.Settings) { s.Rate = sluice.Rate{} })
			equal(w, "without limits again", len(w.claimOnce(10).Jobs), 10)
		}},
		{"R-204", "In flight never exceeds concurrency, with many holders in two processes, and every job gets its turn.", "I-10", func(w *world) {
			const limit = 7
			w.save(func(s *sluice.Settings) { s.Concurrency = limit })
			ids := w.addMany(200)
			var holders sync.WaitGroup
			for n := range 8 {
				holders.Go(func() { w.workUnder(n, limit) })
			}
			holders.Wait()
			for _, id := range ids {
				w.inState(id, sluice.StateCompleted)
			}
		}},
		{"R-205", "A dispatched job is in flight until its run has ended; an uncertain one is not.", "I-10, H-6", func(w *world) {
			w.save(func(s *sluice.Settings) { s.Concurrency = 2 })
			w.addMany(10)
			jobs := w.claimOnce(10).Jobs
			equal(w, "claimed", len(jobs), 2)
			w.done(by(sluice.EventDispatch, jobs[0]))
			equal(w, "beside a dispatched one", len(w.claimOnce(10).Jobs), 0)
			w.done(by(sluice.EventComplete, jobs[0]))
			equal(w, "when its run has ended", len(w.claimOnce(10).Jobs), 1)
			w.done(by(sluice.EventDispatch, jobs[1]))
			w.done(by(sluice.EventDoubt, jobs[1]))
			equal(w, "when one is uncertain", len(w.claimOnce(10).Jobs), 1)
		}},
		{"R-206", "Every way out of flight makes room: completed, retried, released, buried, cancelled and recovered.", "I-10", func(w *world) {
			w.save(func(s *sluice.Settings) { s.Concurrency = 1 })
			w.addMany(20)
			for _, event := range []sluice.Event{sluice.EventComplete, sluice.EventRetry, sluice.EventRelease, sluice.EventBury} {
				w.done(by(event, w.claimOne()))
			}
			c := w.claimOne()
			w.ok(w.only(w.Store.Cancel(w.ctx, []sluice.ID{c.ID}, person("test"))))
			w.claimOne()
			equal(w, "limited", w.claimOnce(1).Limited, true)
			w.Advance(time.Hour)
			equal(w, "recovered", w.recover().Requeued, 1)
			w.claimOne()
		}},
		{"R-207", "A queue that is held back by its limits holds no other queue back, and one without due jobs is not called limited.", "I-11", func(w *world) {
			w.save(func(s *sluice.Settings) { s.Concurrency, s.Rate, s.Burst = 1, sluice.RatePerSecond(1), 1 })
			claimed := w.claimOnce(5)
			equal(w, "an empty queue is limited", claimed.Limited, false)
			w.addMany(3)
			w.claimOne()
			claimed = w.claimOnce(5)
			equal(w, "a full one is limited", claimed.Limited, true)
			equal(w, "it waits for an end", claimed.NextDue < 0, true)
			open := insertOf(sluice.EnqueueOptions{})
			open.Queue = "open"
			w.receipts(open)
			request := claimOf(1, 5)
			request.Queue = "open"
			equal(w, "of the other queue", len(w.claimAs(w.Store, request)), 1)
		}},
		{"R-209", "A queue that is paused until an instant opens by itself when it has come.", "I-13", func(w *world) {
			w.add(sluice.EnqueueOptions{})
			w.save(func(s *sluice.Settings) { s.Paused, s.PausedUntil = true, w.Now().Add(time.Hour) })
			w.claimNone("the queue is paused")
			w.save(func(s *sluice.Settings) { s.Concurrency = 5 })
			w.claimNone("the queue is paused, and has limits")
			w.save(func(s *sluice.Settings) { s.PausedUntil = w.Now().Add(-time.Second) })
			w.claimOne()
			w.add(sluice.EnqueueOptions{})
			w.save(func(s *sluice.Settings) { s.Concurrency = 0 })
			w.claimOne()
		}},
		{"R-210", "Where claims age, low priorities get their share however much waits at the first; where they do not, the order is strict.", "I-14", func(w *world) {
			for range 5 {
				w.addMany(20)
			}
			inserts := make([]sluice.Insert, 400)
			for i := range inserts {
				inserts[i] = insertOf(sluice.EnqueueOptions{Priority: 1})
			}
			w.receipts(inserts...)
			strict := 0
			for range 100 {
				strict += w.claimLow(0)
			}
			equal(w, "low priorities in strict order", strict, 0)
			begun := 0 // how many claims began with priority 5, the one that has jobs
			for range 200 {
				begun += w.claimLow(1)
			}
			if begun < 5 || begun > 60 {
				w.Fatalf("%d of 200 claims served priority 5, want about a ninth", begun)
			}
		}},
		{"R-211", "The audit's line of a claim bears the instant of the claim, with limits and without.", "I-12, I-23", func(w *world) {
			for _, limit := range []int{0, 5} {
				w.save(func(s *sluice.Settings) { s.Audit, s.Concurrency = sluice.AuditFull, limit })
				w.addMany(1)
				c := w.claimOne()
				if told := w.told(c.ID, sluice.EventClaim); !told.At.Equal(c.ClaimedAt) {
					w.Fatalf("it says %s of a claim at %s", told.At, c.ClaimedAt)
				}
			}
		}},
		{"R-208", "A job's position tells what is due before it, what is in flight, and when there is a token.", "I-1", func(w *world) {
			_, err := explain.Given(w.Store).Position(w.ctx, sluice.NewID())
			w.is(err, sluice.ErrNotFound)
			w.addMany(5)
			urgent := w.add(sluice.EnqueueOptions{Priority: 1})
			later := w.add(sluice.EnqueueOptions{Priority: 1, DueAt: w.Now().Add(time.Hour)})
			last := w.add(sluice.EnqueueOptions{})
			least := w.add(sluice.EnqueueOptions{Priority: 10})
			w.Advance(time.Second) // so that all but one are due for sure
			for id, ahead := range map[sluice.ID]int{urgent: 0, later: 1, last: 6, least: 7} {
				equal(w, "ahead", w.position(id).Ahead, ahead)
			}
			w.save(func(s *sluice.Settings) { s.Rate, s.Burst = sluice.RatePerSecond(0.1), 2 })
			equal(w, "a token is there", w.position(last).TokenWait, 0)
			claims := w.claimOnce(2).Jobs
			equal(w, "the most urgent first", claims[0].ID, urgent)
			w.done(by(sluice.EventDispatch, claims[1]))
			o := w.position(last)
			equal(w, "ahead", o.Ahead, 4)
			equal(w, "in flight", o.InFlight, 2)
			if o.TokenWait <= 5*time.Second || o.TokenWait > 10*time.Second {
				w.Fatalf("the next token in %s, want almost 10s", o.TokenWait)
			}
			w.near("now", o.Now, w.Now())
			equal(w, "before one that runs", w.position(urgent).Ahead, 0)
		}},
	}
}

// claimLow claims one job, and gives 1 if it was not of the first priority.
func (w *world) claimLow(ageing float64) int {
	w.Helper()
	request := claimOf(1, 1)
	request.Ageing = ageing
	jobs := w.claimAs(w.Store, request)
	if len(jobs) != 1 {
		w.Fatalf("claimed %d jobs, want 1", len(jobs))
	}
	if jobs[0].Priority == 1 {
		return 0
	}
	return 1
}

// position looks at a job's turn.
func (w *world) position(id sluice.ID) explain.Position {
	w.Helper()
	out, err := explain.Given(w.Store).Position(w.ctx, id)
	w.ok(err)
	return out
}

// claimOnce claims for holder 1, and gives the whole answer.
func (w *world) claimOnce(limit int) sluice.Claimed {
	w.Helper()
	if w.Refresh != nil {
		w.Refresh()
	}
	claimed, err := w.Store.Claim(w.ctx, claimOf(1, limit))
	w.ok(err)
	return claimed
}

// claimByMany lets holders claim at the same time, through both stores, until they have at least so many jobs, and
// gives when each was claimed, the first first. A holder that finds the limit locked by another gets nothing, so on a
// slow machine a number of claims would say little.
func (w *world) claimByMany(holders, limit, jobs int) []time.Time {
	var mu sync.Mutex
	var starts []time.Time
	var all sync.WaitGroup
	for n := range holders {
		store := w.Store
		if n%2 == 1 {
			store = w.Other
		}
		all.Go(func() {
			enough := false
			for try := 0; try < 2000 && !enough; try++ {
				claimed, err := store.Claim(w.ctx, claimOf(n, limit))
				if err != nil {
					w.Errorf("claim: %v", err)
					return
				}
				mu.Lock()
				for _, c := range claimed.Jobs {
					starts = append(starts, c.ClaimedAt)
				}
				enough = len(starts) >= jobs
				mu.Unlock()
				time.Sleep(min(max(claimed.NextDue, 0), 20*time.Millisecond))
			}
		})
	}
	all.Wait()
	if len(starts) < jobs {
		w.Fatalf("%d jobs were claimed, want at least %d", len(starts), jobs)
	}
	slices.SortFunc(starts, time.Time.Compare)
	return starts
}

// workUnder claims and completes until nothing waits, and looks each time how much is in flight.
func (w *world) workUnder(n, limit int) {
	store := w.Store
	if n%2 == 1 {
		store = w.Other
	}
	for {
		claimed, err := store.Claim(w.ctx, claimOf(n, 1+n%3))
		if err != nil {
			w.Errorf("claim: %v", err)
			return
		}
		depth, err := store.Depth(w.ctx, queue, sluice.DepthLimit)
		if err != nil || depth.Claimed > limit {
			w.Errorf("%d are in flight, and %d are allowed: %v", depth.Claimed, limit, err)
			return
		}
		var settlements []sluice.Settlement
		for _, c := range claimed.Jobs {
			settlements = append(settlements, by(sluice.EventComplete, c))
		}
		if errs, err := store.Settle(w.ctx, settlements); err != nil || errors.Join(errs...) != nil {
			w.Errorf("settle: %v %v", err, errs)
			return
		}
		if len(claimed.Jobs) == 0 && depth.Ready == 0 {
			return
		}
	}
}
