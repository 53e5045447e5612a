package storetest

import (
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
)

// windowRules are those of a rate with holders that tell when the jobs of their claims begin. In the rules below ten may
// start in an hour, and nine at once.
func windowRules() []Rule {
	return []Rule{
		{"R-510", "What was claimed and has not begun keeps its place in the window of the rate, however long it waits.", "I-12, D-36", func(w *world) {
			w.tenAnHour()
			first := w.claimTelling(5)
			equal(w, "jobs", len(first.Jobs), 5)
			equal(w, "paced", first.Paced, true)
			w.Advance(20 * time.Hour) // the bucket is full
			equal(w, "beside five that wait", len(w.claimTelling(20).Jobs), 5)
			w.Advance(20 * time.Hour)
			claimed := w.claimTelling(20)
			equal(w, "beside ten that wait", len(claimed.Jobs), 0)
			equal(w, "limited", claimed.Limited, true)
		}},
		{"R-511", "A job counts from when it began, as its holder tells, and for the length of the window; what is told twice counts once.", "I-12, I-20", func(w *world) {
			w.tenAnHour()
			first := w.claimTelling(5)
			w.Advance(20 * time.Hour)
			begun := sluice.Begun{Token: first.Jobs[0].Token, Jobs: 5, Ago: 30 * time.Minute}
			w.tell(begun)
			w.tell(begun)
			second := w.claimTelling(20)
			equal(w, "beside five of half an hour ago", len(second.Jobs), 5)
			w.tell(sluice.Begun{Token: second.Jobs[0].Token, Jobs: 5})
			w.Advance(31 * time.Minute)
			equal(w, "when the first five are over, what the bucket holds", len(w.claimTelling(20).Jobs), 4)
		}},
		{"R-512", "Jobs that never begin give their place back once their holder tells.", "I-12", func(w *world) {
			w.tenAnHour()
			first := w.claimTelling(9)
			w.Advance(20 * time.Hour)
			w.tell(sluice.Begun{Token: first.Jobs[0].Token, Jobs: 2, Gone: 7})
			equal(w, "beside two that began", len(w.claimTelling(20).Jobs), 8)
		}},
		{"R-513", "The jobs of a holder that does not say that it will tell begin when they are claimed.", "I-12", func(w *world) {
			w.tenAnHour()
			equal(w, "jobs", len(w.claimOnce(9).Jobs), 9)
			w.Advance(20 * time.Hour)
			equal(w, "when the hour is over", len(w.claimOnce(20).Jobs), 9)
		}},
		{"R-514", "A claim whose lease is over keeps its places while its holder has a job of it; when it has none, what it did not tell counts as begun until then.", "I-12, I-6", func(w *world) {
			w.tenAnHour()
			first := w.claimTelling(5)
			for _, c := range first.Jobs[:2] {
				w.done(by(sluice.EventComplete, c))
			}
			w.Advance(20 * time.Hour) // nobody has recovered the other three
			equal(w, "beside two that began and three that wait", len(w.claimTelling(20).Jobs), 5)
			equal(w, "recovered", w.recover().Requeued, 3)
			w.Advance(20 * time.Hour)
			equal(w, "beside five that wait and five that may have begun until now", len(w.claimTelling(20).Jobs), 0)
			w.Advance(2 * time.Hour)
			equal(w, "beside five that wait, in the next window", len(w.claimTelling(20).Jobs), 5)
		}},
		{"R-515", "A paused queue, and a claim of no jobs, take in what is told.", "I-12, I-13", func(w *world) {
			w.tenAnHour()
			first := w.claimTelling(9)
			w.Advance(20 * time.Hour)
			w.save(func(s *sluice.Settings) { s.Paused = true })
			request := claimOf(1, 5)
			request.ReportsBegun, request.Begun = true, []sluice.Begun{{Token: first.Jobs[0].Token, Jobs: 9, Ago: 2 * time.Hour}}
			w.claimNoneBy(request)
			w.save(func(s *sluice.Settings) { s.Paused = false })
			equal(w, "when all nine are over", len(w.claimTelling(20).Jobs), 9)
		}},
		{"R-516", "A rate that is lowered counts what started before.", "I-12, I-15", func(w *world) {
			w.tenAnHour()
			equal(w, "jobs", len(w.claimOnce(6).Jobs), 6)
			w.save(func(s *sluice.Settings) { s.Rate, s.Burst = sluice.Rate{Jobs: 1, Per: 2 * time.Hour}, 7 })
			w.Advance(90 * time.Minute)
			equal(w, "in the longer window", len(w.claimOnce(20).Jobs), 2)
		}},
		{"R-517", "In no window do more jobs start than the rate allows, with many holders in two processes that begin late, tell late, or die.", "I-12", func(w *world) {
			rate := sluice.Rate{Jobs: 40, Per: time.Second}
			w.save(func(s *sluice.Settings) { s.Rate, s.Burst, s.MaxRecoveries = rate, 0, 10_000 })
			w.addMany(400)
			KeepsRate(w, w.startByMany(6, 3*rate.Jobs, someLate, queue), rate, 0)
		}},
		{"R-1046", "Jobs that begin as soon as their claim returns keep the rate: a claim that gives out places ahead returns when they are free.", "I-12", func(w *world) {
			rate := sluice.Rate{Jobs: 100, Per: 500 * time.Millisecond}
			w.save(func(s *sluice.Settings) { s.Rate, s.Burst, s.MaxRecoveries = rate, 0, 10_000 })
			w.addMany(400)
			KeepsRate(w, w.startByMany(2, 3*rate.Jobs, 0, queue), rate, 0)
		}},
	}
}

// KeepsRate looks at every window that ends with a start, of starts in any order, and fails the test if more jobs started
// in one than a rate and its burst allow.
func KeepsRate(t testing.TB, starts []time.Time, rate sluice.Rate, burst int) {
	t.Helper()
	starts = slices.SortedFunc(slices.Values(starts), time.Time.Compare)
	first := 0
	for i, start := range starts {
		for !starts[first].After(start.Add(-rate.Per)) {
			first++
		}
		if n := i - first + 1; n > rate.Jobs+burst {
			early := rate.Per - start.Sub(starts[i-rate.Jobs-burst])
			t.Fatalf("%d jobs started in the %s before %s, and %d may: the last came %s too early", n, rate.Per, start, rate.Jobs+burst, early)
		}
	}
}

// tenAnHour lets ten of many jobs start in an hour, and nine of them at once.
func (w *world) tenAnHour() {
	w.Helper()
	w.save(func(s *sluice.Settings) {
		s.Rate, s.Burst, s.MaxRecoveries = sluice.Rate{Jobs: 1, Per: time.Hour}, 9, 10_000
	})
	w.addMany(60)
}

// claimTelling claims for a holder that will tell when the jobs begin.
func (w *world) claimTelling(limit int) sluice.Claimed {
	w.Helper()
	if w.Refresh != nil {
		w.Refresh()
	}
	request := claimOf(1, limit)
	request.ReportsBegun = true
	claimed, err := w.Store.Claim(w.ctx, request)
	w.ok(err)
	return claimed
}

// tell tells what became of a claim.
func (w *world) tell(begun sluice.Begun) {
	w.Helper()
	request := claimOf(1, 0)
	request.ReportsBegun, request.Begun = true, []sluice.Begun{begun}
	w.claimNoneBy(request)
}

func (w *world) claimNoneBy(request sluice.ClaimRequest) {
	w.Helper()
	claimed, err := w.Store.Claim(w.ctx, request)
	w.ok(err)
	if len(claimed.Jobs) > 0 || claimed.Unheard {
		w.Errorf("a claim that only tells gave %d jobs, unheard %t", len(claimed.Jobs), claimed.Unheard)
	}
}

// someLate is how late the jobs of a claim begin at the most.
const someLate = 150 * time.Millisecond

// startByMany lets holders claim, begin what they got up to late later, tell of it with the next claim, or die with it, until so
// many jobs have begun. Each holder claims from one of the queues. It gives when each began.
func (w *world) startByMany(holders, jobs int, late time.Duration, queues ...string) []time.Time {
	var mu sync.Mutex
	var starts []time.Time
	var all sync.WaitGroup
	var inAll atomic.Int64
	deadline := time.Now().Add(10 * time.Minute)
	for n := range holders {
		store := w.Store
		if n%2 == 1 {
			store = w.Other
		}
		all.Go(func() {
			var told []sluice.Begun
			var last []time.Time
			for inAll.Load() < int64(jobs) {
				if time.Now().After(deadline) {
					w.Errorf("in ten minutes fewer than %d jobs started", jobs)
					return
				}
				request := claimOf(n, 1+rand.IntN(8))
				request.ReportsBegun, request.Lease, request.Queue = true, 300*time.Millisecond, queues[n/2%len(queues)]
				for i := range told {
					told[i].Ago = time.Since(last[i])
				}
				request.Begun = told
				claimed, err := store.Claim(w.ctx, request)
				if err != nil {
					w.Errorf("claim: %v", err)
					return
				}
				if !claimed.Unheard {
					told, last = nil, nil
				}
				if wait := max(late, time.Millisecond); late > 0 || len(claimed.Jobs) == 0 {
					time.Sleep(rand.N(wait))
				}
				began := 0
				for range claimed.Jobs {
					if rand.IntN(10) > 0 {
						began++
					}
				}
				mu.Lock()
				for range began {
					starts = append(starts, time.Now())
				}
				mu.Unlock()
				inAll.Add(int64(began))
				if len(claimed.Jobs) > 0 && rand.IntN(8) > 0 { // else the holder died
					told = append(told, sluice.Begun{Token: request.Token, Jobs: began, Gone: len(claimed.Jobs) - began})
					last = append(last, time.Now())
				}
			}
		})
	}
	all.Wait()
	return starts
}
