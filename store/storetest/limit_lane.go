package storetest

import (
	"slices"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/edit"
	"github.com/sluice-queue/sluice/hold"
	"github.com/sluice-queue/sluice/limit"
	"github.com/sluice-queue/sluice/tenancy"
)

// laneRules are about jobs that a limit keeps waiting: what wakes them, and what may overtake them.
func laneRules() []Rule {
	return []Rule{
		{"R-1047", "When the first of the jobs that wait for a limit key is cancelled, put off or held, the one behind it that fits gets in with the next claim.", "I-13, C-35", func(w *world) {
			w.share(limit.Limit{Name: "host", Concurrency: 2, PerKey: true, ByCost: true}, "host")
			w.add(sluice.EnqueueOptions{LimitKey: "a"})
			equal(w, "claimed", len(w.claimOnce(5).Jobs), 1)
			for what, leave := range map[string]func(id sluice.ID){
				"cancelled": func(id sluice.ID) { w.cancel(person("too much"), id) },
				"put off": func(id sluice.ID) {
					w.ok(w.only(w.Store.Reschedule(w.ctx, []sluice.ID{id}, time.Now().Add(30*24*time.Hour), person("later"))))
				},
				"held": func(id sluice.ID) { w.ok(hold.Hold(w.ctx, w.Store, []sluice.ID{id}, person("why"))) },
			} {
				big := w.add(sluice.EnqueueOptions{LimitKey: "a", Cost: 2, Priority: 3})
				small := w.add(sluice.EnqueueOptions{LimitKey: "a"})
				equal(w, "beside one in flight", len(w.claimOnce(5).Jobs), 0)
				leave(big)
				claimed := w.claimOnce(5)
				if len(claimed.Jobs) != 1 || claimed.Jobs[0].ID != small {
					w.Fatalf("when the first is %s, a claim gets %d jobs, and the next look is in %s", what, len(claimed.Jobs), claimed.NextDue)
				}
				w.done(by(sluice.EventComplete, claimed.Jobs[0]))
			}
		}},
		{"R-1048", "A job that comes before all those that wait for its limit key, or is moved there, gets in if it fits; one that comes after them does not overtake.", "I-10, I-13, C-35", func(w *world) {
			w.share(limit.Limit{Name: "host", Concurrency: 2, PerKey: true, ByCost: true}, "host")
			w.add(sluice.EnqueueOptions{LimitKey: "a"})
			equal(w, "claimed", len(w.claimOnce(5).Jobs), 1)
			w.add(sluice.EnqueueOptions{LimitKey: "a", Cost: 2})
			if claimed := w.claimOnce(5); len(claimed.Jobs) > 0 || claimed.NextDue == 0 {
				w.Fatalf("no job fits, but a claim gets %d, and the next look is in %s", len(claimed.Jobs), claimed.NextDue)
			}
			moved := w.add(sluice.EnqueueOptions{LimitKey: "a"})
			for _, options := range []sluice.EnqueueOptions{{Priority: 1}, {DueAt: w.Now().Add(-time.Hour)}, {Tenant: "other", Priority: 1}} {
				options.LimitKey = "a"
				equal(w, "a cheap one behind the dear one", len(w.claimOnce(5).Jobs), 0)
				first := w.add(options)
				claimed := w.claimOnce(5)
				if len(claimed.Jobs) != 1 || claimed.Jobs[0].ID != first {
					w.Fatalf("of a first job with priority %d, a claim gets %d, and the next look is in %s", options.Priority, len(claimed.Jobs), claimed.NextDue)
				}
				w.done(by(sluice.EventComplete, claimed.Jobs[0]))
			}
			w.ok(w.edit(w.job(moved), edit.Change{Priority: 1}, person("urgent")))
			claimed := w.claimOnce(5)
			if len(claimed.Jobs) != 1 || claimed.Jobs[0].ID != moved {
				w.Fatalf("of a job moved to the front, a claim gets %d, and the next look is in %s", len(claimed.Jobs), claimed.NextDue)
			}
		}},
		{"R-1049", "When a queue stops sharing a limit per key, jobs of the other queues that waited for its jobs get in with the next claim.", "I-13, C-35", func(w *world) {
			w.share(limit.Limit{Name: "host", Concurrency: 1, PerKey: true}, "host")
			w.addKeyed(refunds, "a")
			equal(w, "of the other queue", len(w.claimShared(9).Jobs), 1)
			w.addKeyed(queue, "a")
			equal(w, "while the key is full", len(w.claimOnce(9).Jobs), 0)
			w.saveNamed(refunds, func(s *sluice.Settings) { s.Limits = "" })
			equal(w, "when the other queue has its own way", len(w.claimOnce(9).Jobs), 1)
		}},
		{"R-1060", "A job that waits for its limit key and expires keeps a cheaper one out no longer: a claim says when that is, and the next one then gets it.", "I-13, C-35", func(w *world) {
			w.share(limit.Limit{Name: "host", Concurrency: 2, PerKey: true, ByCost: true}, "host")
			w.add(sluice.EnqueueOptions{LimitKey: "a"})
			equal(w, "claimed", len(w.claimOnce(5).Jobs), 1)
			w.add(sluice.EnqueueOptions{LimitKey: "a", Cost: 2, ExpiresAt: w.Now().Add(5 * time.Minute)})
			cheap := w.add(sluice.EnqueueOptions{LimitKey: "a"})
			for range 2 {
				claimed := w.claimOnce(5)
				if len(claimed.Jobs) > 0 || claimed.NextDue <= 4*time.Minute || claimed.NextDue > 5*time.Minute {
					w.Fatalf("behind a dear job that expires in 5m, a claim gets %d jobs, and the next look is in %s", len(claimed.Jobs), claimed.NextDue)
				}
			}
			w.Advance(5*time.Minute + time.Second)
			claimed := w.claimOnce(5)
			if len(claimed.Jobs) != 1 || claimed.Jobs[0].ID != cheap {
				w.Fatalf("when it has expired, a claim gets %d jobs, and the next look is in %s", len(claimed.Jobs), claimed.NextDue)
			}
		}},
		{"R-1061", "A dear job that waits for its limit key and is not due, set aside by a claim that takes jobs ahead, keeps a cheaper one from other claims for a second at most.", "I-13, C-35", func(w *world) {
			w.share(limit.Limit{Name: "host", Concurrency: 2, PerKey: true, ByCost: true}, "host")
			w.add(sluice.EnqueueOptions{LimitKey: "a"})
			equal(w, "claimed", len(w.claimOnce(5).Jobs), 1)
			w.add(sluice.EnqueueOptions{LimitKey: "a", Cost: 2, Priority: 1, Delay: time.Minute})
			cheap := w.add(sluice.EnqueueOptions{LimitKey: "a"})
			ahead := claimOf(1, 5)
			ahead.ClaimAhead = 5 * time.Minute
			claimed, err := w.Store.Claim(w.ctx, ahead)
			w.ok(err)
			if len(claimed.Jobs) > 0 || claimed.NextDue == 0 {
				w.Fatalf("ahead, a claim gets %d jobs, and the next look is in %s", len(claimed.Jobs), claimed.NextDue)
			}
			w.Advance(1001 * time.Millisecond)
			plain := w.claimOnce(5)
			if len(plain.Jobs) == 0 && plain.NextDue == 0 {
				plain = w.claimOnce(5)
			}
			if len(plain.Jobs) != 1 || plain.Jobs[0].ID != cheap {
				w.Fatalf("not ahead, a claim gets %d jobs, and the next look is in %s", len(plain.Jobs), plain.NextDue)
			}
		}},
	}
}

// lookedForRules are about jobs that a limit keeps waiting, and the looks of workers.
func lookedForRules() []Rule {
	return []Rule{
		{"R-1160", "A look tells of a queue whose jobs all wait for their limit keys, as of one with due jobs.", "[limits](guide/limits.md)", func(w *world) {
			w.share(limit.Limit{Name: "host", Concurrency: 1, PerKey: true}, "host")
			ids := w.addKeyed(queue, "a", "a")
			equal(w, "claimed", len(w.claimOnce(9).Jobs), 1)
			look := func() (time.Duration, bool) {
				found, err := w.Other.NextDue(w.ctx, []string{queue, refunds})
				w.ok(err)
				wait, waits := found[queue]
				return wait, waits
			}
			if wait, waits := look(); !waits || wait > 0 {
				w.Fatalf("a job waits for its limit key: a look tells of %s (%t), want a due job", wait, waits)
			}
			w.cancel(person("not needed"), ids[1])
			if wait, waits := look(); waits {
				w.Fatalf("no job waits: a look tells of one in %s", wait)
			}
		}},
		{"R-1161", "The rate of a limit per key, and of one by cost, goes on if the clock was set back after its last token was taken.", "[clocks](guide/clocks.md)", func(w *world) {
			for _, of := range []limit.Limit{{Name: "host", PerKey: true}, {Name: "llm", ByCost: true}} {
				of.Rate = sluice.Rate{Jobs: 1, Per: time.Minute}
				w.share(of, of.Name)
				w.addKeyed(queue, "a")
				equal(w, "the first", len(w.claimOnce(9).Jobs), 1)
				w.Advance(-24 * time.Hour)
				w.addKeyed(queue, "a")
				equal(w, "at once, by "+of.Name, len(w.claimOnce(9).Jobs), 0)
				w.Advance(61 * time.Second)
				equal(w, "a minute later, by "+of.Name, len(w.claimOnce(9).Jobs), 1)
			}
		}},
		{"R-1162", "In no window have a limit key, or a limit by cost, more claims than its rate and burst, however often holders claim.", "[limits](guide/limits.md)", func(w *world) {
			for _, of := range []limit.Limit{{Name: "host", PerKey: true}, {Name: "llm", ByCost: true}} {
				of.Rate = sluice.Rate{Jobs: 100, Per: 10 * time.Hour}
				w.share(of, of.Name)
				w.addKeyed(queue, slices.Repeat([]string{"a"}, 110)...)
				claimed := len(w.claimOnce(110).Jobs)
				for range 49 {
					w.Advance(12 * time.Minute)
					claimed += len(w.claimOnce(110).Jobs)
				}
				w.Advance(11*time.Minute + 30*time.Second)
				if claimed += len(w.claimOnce(110).Jobs); claimed > 100 {
					w.Fatalf("%d claims within 10h by %s, want 100 at most", claimed, of.Name)
				}
				w.Advance(20 * time.Hour)
			}
		}},
	}
}

// overtakingRules are about what keeps its place although something else changes.
func overtakingRules() []Rule {
	return []Rule{
		{"R-1050", "Upkeep does not forget what claims took of a key's rate when the rate is lowered.", "I-12, C-35", func(w *world) {
			w.share(limit.Limit{Name: "host", Rate: sluice.Rate{Jobs: 10, Per: time.Minute}, Burst: 10, PerKey: true}, "host")
			w.addKeyed(queue, slices.Repeat([]string{"a"}, 40)...)
			equal(w, "of the burst", len(w.claimOnce(100).Jobs), 10)
			w.saveLimit("host", func(l *limit.Limit) { l.Rate = sluice.Rate{Jobs: 10, Per: 24 * time.Hour} })
			w.Advance(10 * time.Minute)
			equal(w, "before upkeep", len(w.claimOnce(100).Jobs), 0)
			w.prune()
			w.addKeyed(queue, slices.Repeat([]string{"a"}, 12)...)
			equal(w, "after upkeep", len(w.claimOnce(100).Jobs), 0)
		}},
		{"R-1051", "Where tenants take turns, cheaper jobs of others do not overtake the next job under a limit by cost.", "I-10, C-35", func(w *world) {
			w.share(limit.Limit{Name: "gpu", Concurrency: 4, ByCost: true}, "gpu")
			w.save(func(s *sluice.Settings) { s.Fair = true })
			for range 40 {
				w.add(sluice.EnqueueOptions{Tenant: "globex", Cost: 2})
			}
			flying := w.claimOnce(2).Jobs
			dear := w.add(sluice.EnqueueOptions{Tenant: "acme", Cost: 4})
			for range 30 {
				if len(flying) > 0 {
					w.done(by(sluice.EventComplete, flying[0]))
					flying = flying[1:]
				}
				w.Advance(time.Second) // a tenant that was stopped rests for a moment
				for _, c := range w.claimOnce(1).Jobs {
					if c.ID == dear {
						return
					}
					flying = append(flying, c)
				}
			}
			w.Fatalf("the dear job of the other tenant never starts")
		}},
	}
}

// aheadRules are about claims that take jobs before they are due, where tenants take turns.
func aheadRules() []Rule {
	return []Rule{
		{"R-1052", "Claims ahead of the due time do not follow each other at once while a tenant is paused, or waits for its rate.", "I-14", func(w *world) {
			w.save(func(s *sluice.Settings) {
				s.Fair, s.ClaimAhead, s.TenantRate = true, time.Hour, sluice.Rate{Jobs: 1, Per: 10 * time.Minute}
			})
			w.limit(tenancy.Limits{Tenant: "acme", Paused: true, PausedUntil: w.Now().Add(10 * time.Minute)})
			request := sluice.ClaimRequest{Queue: queue, Limit: 9, Holder: holder(1), Lease: time.Minute, ClaimAhead: time.Hour}
			for _, tenant := range []string{"acme", "bolt"} {
				w.addOf(tenant, 3)
				var claimed sluice.Claimed
				for range 5 { // a store may sort jobs into their tenant queues first, or soon look for jobs that came late
					request.Token = sluice.NewToken()
					var err error
					claimed, err = w.Store.Claim(w.ctx, request)
					w.ok(err)
					if len(claimed.Jobs) > 0 {
						continue
					}
					if claimed.NextDue >= time.Second/2 {
						break
					}
					time.Sleep(claimed.NextDue)
				}
				if len(claimed.Jobs) > 0 || claimed.NextDue < time.Second/2 || claimed.NextDue > 10*time.Minute {
					w.Fatalf("of %s: %d are claimed, and the next look is in %s", tenant, len(claimed.Jobs), claimed.NextDue)
				}
			}
		}},
		{"R-1057", "A claim ahead of the due time that finds a queue with turns at its limit says so, or when to come again, in time for the next job.", "I-14", func(w *world) {
			w.share(limit.Limit{Name: "gpu", Concurrency: 1, ByCost: true}, "")
			for what, set := range map[string]func(s *sluice.Settings){
				"of the queue": func(s *sluice.Settings) { s.Concurrency = 1 },
				"by cost":      func(s *sluice.Settings) { s.Concurrency, s.Limits = 0, "gpu" },
			} {
				w.save(func(s *sluice.Settings) { s.Fair, s.ClaimAhead = true, time.Hour; set(s) })
				w.addOf("acme", 3)
				request := sluice.ClaimRequest{Queue: queue, Limit: 9, Holder: holder(1), Lease: time.Minute, ClaimAhead: time.Hour}
				var first *sluice.Claim
				for range 5 { // a store may sort jobs into their tenant queues first
					request.Token = sluice.NewToken()
					claimed, err := w.Store.Claim(w.ctx, request)
					w.ok(err)
					if len(claimed.Jobs) > 0 {
						first = claimed.Jobs[0]
					} else if first != nil && !claimed.Limited && !claimed.Full || claimed.NextDue > time.Hour {
						w.Fatalf("at a limit %s: limited %v, full %v, and the next look is in %s", what, claimed.Limited, claimed.Full, claimed.NextDue)
					}
				}
				w.done(by(sluice.EventComplete, first))
			}
		}},
	}
}
