package storetest

import (
	"fmt"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/limit"
)

// costRules are those of limits by cost.
func costRules() []Rule {
	return []Rule{
		{"R-856", "Lookups, lists and claims bring the cost of a job, whether it is stored alone, among others, with a key, in an order, or requeued.", "C-35", func(w *world) {
			var batch []sluice.Insert
			for n, o := range []sluice.EnqueueOptions{{}, {Cost: 7}, {Cost: 1_000_000, Key: "k"}, {Cost: 2, OrderKey: "o"}, {Cost: 3, Delay: time.Millisecond}} {
				o.ID = idOf(n + 1)
				batch = append(batch, insertOf(o))
				o.ID, o.Key, o.OrderKey = idOf(n+100), "", ""
				equal(w, "of a job stored alone", w.job(w.add(o)).Cost, o.Cost)
			}
			w.receipts(batch...)
			w.Advance(time.Second)
			page, err := w.Store.Jobs(w.ctx, sluice.JobFilter{Queue: queue, Limit: 100})
			w.ok(err)
			listed := make(map[sluice.ID]int)
			for _, j := range page.Jobs {
				listed[j.ID] = j.Cost
			}
			claims := w.claim(20)
			equal(w, "claimed", len(claims), 10)
			for _, c := range claims {
				equal(w, "in the list and in the claim", listed[c.ID], c.Cost)
				w.done(by(sluice.EventBury, c))
				w.ok(w.only(w.Store.Requeue(w.ctx, []sluice.ID{c.ID}, person("again"))))
				equal(w, "requeued", w.job(c.ID).Cost, c.Cost)
			}
		}},
		{"R-857", "A limit by cost counts the costs of the jobs in flight in all its queues. One that costs more than the whole limit passes alone, and nothing overtakes the next job.", "I-10, C-35", func(w *world) {
			w.share(limit.Limit{Name: "gpu", Concurrency: 10, ByCost: true}, "gpu")
			w.addCosts(queue, 4, 3)
			w.addCosts(refunds, 5, 1, 2)
			first := w.claimOnce(9).Jobs
			equal(w, "of the one queue", costsOf(first), "4 3")
			claimed := w.claimShared(9)
			equal(w, "of the other: 5 more do not fit, and 1 waits behind them", costsOf(claimed.Jobs), "")
			equal(w, "limited", claimed.Limited, true)
			equal(w, "full", claimed.Full, true)
			uses, err := limit.Given(w.Store).LimitUses(w.ctx, []string{"gpu"})
			w.ok(err)
			equal(w, "in use", uses[0].InFlight, 7)
			w.done(by(sluice.EventComplete, first[0]))
			second := w.claimShared(9).Jobs
			equal(w, "when 4 have ended", costsOf(second), "5 1")
			w.done(by(sluice.EventComplete, first[1]))
			third := w.claimShared(9).Jobs
			equal(w, "the rest", costsOf(third), "2")
			w.addCosts(queue, 25, 1)
			equal(w, "more than the whole, beside others", costsOf(w.claimOnce(9).Jobs), "")
			w.done(by(sluice.EventComplete, second[0]))
			w.done(by(sluice.EventComplete, second[1]))
			w.done(by(sluice.EventComplete, third[0]))
			large := w.claimOnce(9).Jobs
			equal(w, "more than the whole, alone", costsOf(large), "25")
			w.done(by(sluice.EventComplete, large[0]))
			equal(w, "after it", costsOf(w.claimOnce(9).Jobs), "1")
		}},
		{"R-858", "The rate of a limit by cost counts the costs of claimed jobs, and a claim says when the next one fits.", "I-12, C-35", func(w *world) {
			w.share(limit.Limit{Name: "tokens", Rate: sluice.Rate{Jobs: 60, Per: time.Hour}, Burst: 100, ByCost: true}, "tokens")
			w.addCosts(queue, 60, 30, 30, 200, 1)
			claimed := w.claimOnce(9)
			equal(w, "of the bucket of 100", costsOf(claimed.Jobs), "60 30")
			claimed = w.claimOnce(9)
			equal(w, "with 10 left", costsOf(claimed.Jobs), "")
			if claimed.NextDue <= 19*time.Minute || claimed.NextDue > 20*time.Minute {
				w.Fatalf("30 fit in %s, want about 20m", claimed.NextDue)
			}
			w.Advance(20*time.Minute + time.Second)
			equal(w, "twenty minutes later", costsOf(w.claimOnce(9).Jobs), "30")
			w.Advance(90 * time.Minute)
			equal(w, "200 with 90 left", costsOf(w.claimOnce(9).Jobs), "")
			w.Advance(11 * time.Minute)
			equal(w, "200 with a full bucket", costsOf(w.claimOnce(9).Jobs), "200")
			w.Advance(90 * time.Minute)
			equal(w, "in debt", costsOf(w.claimOnce(9).Jobs), "")
			w.Advance(12 * time.Minute)
			equal(w, "when the debt is paid", costsOf(w.claimOnce(9).Jobs), "1")
		}},
		{"R-859", "A limit per key and by cost counts costs for each limit key apart, with turns of tenants too; other limits count jobs.", "I-10, I-12, C-35", func(w *world) {
			w.share(limit.Limit{Name: "host", Concurrency: 5, PerKey: true, ByCost: true}, "host")
			w.save(func(s *sluice.Settings) { s.Fair = true })
			for _, cost := range []int{3, 3, 2} {
				for _, key := range []string{"a", "b"} {
					w.add(sluice.EnqueueOptions{Tenant: "acme", LimitKey: key, Cost: cost})
				}
			}
			first := w.claimOnce(9).Jobs
			equal(w, "of each key", keysIn(first), "a:1 b:1")
			w.done(by(sluice.EventComplete, first[0]))
			var second []*sluice.Claim
			for range 3 {
				second = append(second, w.claimOnce(9).Jobs...)
				w.Advance(time.Second)
			}
			equal(w, "of the key that is free", keysIn(second), first[0].LimitKey+":2")
			w.saveLimit("host", func(l *limit.Limit) { l.PerKey = false })
			uses, err := limit.Given(w.Store).LimitUses(w.ctx, []string{"host"})
			w.ok(err)
			equal(w, "in use by all keys", uses[0].InFlight, 8)
			w.saveLimit("host", func(l *limit.Limit) { l.ByCost = false })
			uses, err = limit.Given(w.Store).LimitUses(w.ctx, []string{"host"})
			w.ok(err)
			equal(w, "in jobs", uses[0].InFlight, 3)
		}},
		{"R-943", "Of jobs that wait for a limit key with a limit by cost, those that fit get in one after the other when jobs end and when the key opens, although the next ones have no room yet.", "I-10, I-11, C-35", func(w *world) {
			w.share(limit.Limit{Name: "host", Concurrency: 4, PerKey: true, ByCost: true}, "host")
			running := w.add(sluice.EnqueueOptions{LimitKey: "a", Cost: 4})
			equal(w, "the first", w.claimOnce(9).Jobs[0].ID, running)
			for range 4 {
				w.add(sluice.EnqueueOptions{LimitKey: "a", Cost: 3})
			}
			equal(w, "while the key is full", len(w.claimOnce(9).Jobs), 0)
			w.ok(w.only(w.Store.Cancel(w.ctx, []sluice.ID{running}, person("not needed"))))
			for range 3 {
				claimed := w.claimOnce(9).Jobs
				equal(w, "when one has ended", costsOf(claimed), "3")
				equal(w, "beside it", len(w.claimOnce(9).Jobs), 0)
				w.done(by(sluice.EventComplete, claimed[0]))
			}
			w.ok(limit.CloseKey(w.ctx, w.Store, "host", "a", time.Minute, person("429")))
			w.add(sluice.EnqueueOptions{LimitKey: "a", Cost: 3})
			equal(w, "while it is closed", len(w.claimOnce(9).Jobs), 0)
			w.Advance(61 * time.Second)
			equal(w, "when it opens", costsOf(w.claimOnce(9).Jobs), "3")
		}},
	}
}

// addCosts enqueues a job of each cost in a queue, in this order.
func (w *world) addCosts(queue string, costs ...int) {
	w.Helper()
	for _, cost := range costs {
		in := insertOf(sluice.EnqueueOptions{Cost: cost})
		in.Queue = queue
		w.receipts(in)
	}
}

// costsOf lists the costs of claimed jobs.
func costsOf(claimed []*sluice.Claim) string {
	var costs []int
	for _, c := range claimed {
		costs = append(costs, c.Cost)
	}
	text := fmt.Sprint(costs)
	return text[1 : len(text)-1]
}
