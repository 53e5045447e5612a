package storetest

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/explain"
	"github.com/sluice-queue/sluice/tenancy"
)

func tenantRules() []Rule {
	return slices.Concat(capacityRules(), shareRules(), lineRules(), termRules())
}

func capacityRules() []Rule {
	return []Rule{
		{"R-212", "A tenant's concurrency is the nearest that is said: of the tenant in the queue, of the tenant, of its tier in the queue, of its tier, of the queue.", "I-10, A-24, A-25", func(w *world) {
			w.addOf("acme", 30)
			w.save(func(s *sluice.Settings) { s.TenantConcurrency = 1 })
			equal(w, "by the queue", w.claimAll()["acme"], 1)
			w.tier("acme", "PRO")
			w.limit(tenancy.Limits{Tier: "PRO", Concurrency: new(3)})
			equal(w, "by the tier", w.claimAll()["acme"], 2)
			w.limit(tenancy.Limits{Queue: queue, Tier: "PRO", Concurrency: new(6)})
			equal(w, "by the tier in the queue", w.claimAll()["acme"], 3)
			w.limit(tenancy.Limits{Tenant: "acme", Concurrency: new(10)})
			equal(w, "by the tenant", w.claimAll()["acme"], 4)
			w.limit(tenancy.Limits{Queue: queue, Tenant: "acme", Weight: new(2)})
			equal(w, "by limits that say nothing of it", w.claimAll()["acme"], 0)
			w.limit(tenancy.Limits{Queue: queue, Tenant: "acme", Concurrency: new(0)})
			equal(w, "without a limit", w.claimAll()["acme"], 20)
		}},
		{"R-213", "In flight of a tenant never exceeds its concurrency, with many holders in two processes, and every job gets its turn.", "I-10, A-120", func(w *world) {
			concurrency := map[string]int{"a": 1, "b": 2, "c": 5}
			w.save(func(s *sluice.Settings) { s.Audit = sluice.AuditFull })
			for tenant, most := range concurrency {
				w.limit(tenancy.Limits{Tenant: tenant, Concurrency: &most})
				w.addOf(tenant, 40)
			}
			w.addOf("d", 40)
			var holders sync.WaitGroup
			for n := range 8 {
				holders.Go(func() { w.workUntilDone(n, 160) })
			}
			holders.Wait()
			w.keptCapacity(concurrency)
		}},
		{"R-214", "Jobs of a full tenant are not claimed, count no attempt and no release, and do not hold those of another tenant back.", "I-11, I-5, A-54, A-121, H-16", func(w *world) {
			w.limit(tenancy.Limits{Tenant: "full", Concurrency: new(1)})
			blocked := w.addOf("full", 1000)
			equal(w, "of the full one", w.claimAll()["full"], 1)
			w.addOf("other", 1)
			claimed := w.claimOnce(10)
			equal(w, "claimed", len(claimed.Jobs), 1)
			equal(w, "of", claimed.Jobs[0].Tenant, "other")
			for _, id := range blocked[1:] {
				j := w.inState(id, sluice.StateQueued)
				equal(w, "attempts, releases and recoveries", j.Attempts+j.Releases+j.Recoveries, 0)
			}
		}},
		{"R-215", "A tenant's own limits count until their end, if they have one.", "", func(w *world) {
			w.addOf("acme", 20)
			w.save(func(s *sluice.Settings) { s.TenantConcurrency = 2 })
			w.limit(tenancy.Limits{Tenant: "acme", Concurrency: new(5), Until: w.Now().Add(time.Hour)})
			equal(w, "before their end", w.claimAll()["acme"], 5)
			w.Advance(2 * time.Hour)
			equal(w, "beyond the concurrency of the queue", w.claimAll()["acme"], 0)
			w.save(func(s *sluice.Settings) { s.TenantConcurrency = 6 })
			equal(w, "by the queue", w.claimAll()["acme"], 1)
		}},
		{"R-216", "A changed concurrency, tier or limit counts from the next claim on, in every process.", "I-10, I-15", func(w *world) {
			w.addOf("acme", 30)
			w.limit(tenancy.Limits{Tier: "PRO", Concurrency: new(8)})
			w.limit(tenancy.Limits{Tenant: "acme", Concurrency: new(3)})
			equal(w, "at first", w.claimAll()["acme"], 3)
			w.limit(tenancy.Limits{Tenant: "acme", Concurrency: new(1)})
			equal(w, "lowered", w.claimAll()["acme"], 0)
			w.limit(tenancy.Limits{Tenant: "acme", Concurrency: new(4)})
			equal(w, "raised, in the other process", len(w.claimFrom(w.Other, 10).Jobs), 1)
			w.limit(tenancy.Limits{Tenant: "acme"})
			w.tier("acme", "PRO")
			equal(w, "by its new tier", w.claimAll()["acme"], 4)
			w.limit(tenancy.Limits{Tier: "PRO", Concurrency: new(9)})
			equal(w, "by the changed tier", w.claimAll()["acme"], 1)
		}},
		{"R-217", "Every way out of flight makes room for the tenant: completed, retried, released, buried, cancelled, recovered, and doubted; dispatched makes none.", "I-10, H-6", func(w *world) {
			w.limit(tenancy.Limits{Tenant: "acme", Concurrency: new(1)})
			w.addOf("acme", 20)
			for _, event := range []sluice.Event{sluice.EventComplete, sluice.EventRetry, sluice.EventRelease, sluice.EventBury} {
				w.done(by(event, w.claimOne()))
			}
			c := w.claimOne()
			w.ok(w.only(w.Store.Cancel(w.ctx, []sluice.ID{c.ID}, person("test"))))
			c = w.claimOne()
			w.done(by(sluice.EventDispatch, c))
			equal(w, "beside a dispatched one", w.claimAll()["acme"], 0)
			w.done(by(sluice.EventDoubt, c))
			w.claimOne()
			equal(w, "full", w.claimOnce(1).Full, true)
			w.Advance(time.Hour)
			equal(w, "recovered", w.recover().Requeued, 1)
			w.claimOne()
		}},
		{"R-218", "A tenant or tier that is deleted leaves its jobs to what remains said: the tier, then the queue.", "", func(w *world) {
			w.addOf("acme", 20)
			w.save(func(s *sluice.Settings) { s.TenantConcurrency = 1 })
			w.tier("acme", "PRO")
			w.limit(tenancy.Limits{Tier: "PRO", Concurrency: new(3)})
			w.limit(tenancy.Limits{Tenant: "acme", Concurrency: new(2)})
			equal(w, "by the tenant", w.claimAll()["acme"], 2)
			w.ok(tenancy.Given(w.Store).Delete(w.ctx, audit.ObjectTenant, "acme", person("gone")))
			w.is(tenancy.Given(w.Store).Delete(w.ctx, audit.ObjectTenant, "acme", person("gone")), sluice.ErrNotFound)
			equal(w, "by the queue", w.claimAll()["acme"], 0)
			w.tier("acme", "PRO")
			equal(w, "by the tier", w.claimAll()["acme"], 1)
			w.ok(tenancy.Given(w.Store).Delete(w.ctx, audit.ObjectTier, "PRO", person("gone")))
			w.save(func(s *sluice.Settings) { s.TenantConcurrency = 5 })
			equal(w, "by the queue, without its tier", w.claimAll()["acme"], 2)
			was, err := tenancy.Given(w.Store).Tenant(w.ctx, "acme")
			w.ok(err)
			equal(w, "tier", was.Tier, "")
			equal(w, "changes", was.Version, 2)
			_, err = tenancy.Given(w.Store).SaveTier(w.ctx, tenancy.Tier{Name: "PRO"}, person("another"))
			w.ok(err)
			w.limit(tenancy.Limits{Tier: "PRO", Concurrency: new(20)})
			equal(w, "by a new tier with the name of the old one", w.claimAll()["acme"], 0)
		}},
		{"R-219", "Jobs without a tenant have no concurrency and no rate of a tenant's, and take turns like a tenant's.", "", func(w *world) {
			w.save(func(s *sluice.Settings) {
				s.TenantConcurrency, s.TenantRate, s.TenantBurst = 2, sluice.RatePerSecond(0.01), 2
			})
			w.addOf("", 30)
			w.addOf("acme", 30)
			got := w.tenantsOf(w.claimOnce(4).Jobs)
			equal(w, "without a tenant", got[""], 2)
			got = w.claimAll()
			equal(w, "of the tenant beyond its concurrency", got["acme"], 0)
			equal(w, "all the others without one", got[""], 28)
		}},
	}
}

func shareRules() []Rule {
	return []Rule{
		{"R-220", "Tenants that have work get equal shares, however much each has waiting and whatever came first.", "I-14, H-16", func(w *world) {
			w.save(func(s *sluice.Settings) { s.Fair = true })
			w.addOf("noisy", 400)
			w.addOf("a", 60)
			w.addOf("b", 60)
			got := make(map[string]int)
			for range 18 {
				for tenant, n := range w.tenantsOf(w.claimOnce(7).Jobs) {
					got[tenant] += n
				}
			}
			for tenant, n := range got {
				if n < 38 || n > 46 {
					w.Fatalf("tenant %s got %d of 126 jobs, want about 42: %v", tenant, n, got)
				}
			}
		}},
		{"R-221", "Shares are by weight.", "I-14", func(w *world) {
			for tenant, weight := range map[string]int{"one": 1, "two": 2, "five": 5} {
				w.limit(tenancy.Limits{Tenant: tenant, Weight: &weight})
				w.addOf(tenant, 200)
			}
			got := make(map[string]int)
			for range 20 {
				for tenant, n := range w.tenantsOf(w.claimOnce(8).Jobs) {
					got[tenant] += n
				}
			}
			for tenant, want := range map[string]int{"one": 20, "two": 40, "five": 100} {
				if diff := got[tenant] - want; diff < -2 || diff > 2 {
					w.Fatalf("tenant %s got %d of 160 jobs, want about %d: %v", tenant, got[tenant], want, got)
				}
			}
		}},
		{"R-222", "A tenant that had nothing to do gets no credit for it, and one alone may use everything.", "I-14", func(w *world) {
			w.save(func(s *sluice.Settings) { s.Fair = true })
			w.addOf("a", 200)
			w.addOf("b", 1)
			equal(w, "the first two", len(w.claimOnce(2).Jobs), 2)
			for range 10 {
				equal(w, "alone", w.tenantsOf(w.claimOnce(10).Jobs)["a"], 10)
			}
			w.addOf("b", 50)
			got := make(map[string]int)
			for range 4 {
				for tenant, n := range w.tenantsOf(w.claimOnce(5).Jobs) {
					got[tenant] += n
				}
			}
			if got["b"] < 9 || got["b"] > 11 {
				w.Fatalf("the tenant that came back got %d of 20 jobs, want about 10: %v", got["b"], got)
			}
		}},
		{"R-223", "A tenant's rate is kept beside the queue's, by all processes, and nobody waits for its tokens but the tenant.", "I-12", func(w *world) {
			w.limit(tenancy.Limits{Tenant: "slow", Rate: new(sluice.RatePerSecond(0.02)), Burst: new(3)})
			w.addOf("slow", 20)
			w.addOf("fast", 20)
			got := w.claimAll()
			equal(w, "the burst", got["slow"], 3)
			equal(w, "of the other", got["fast"], 20)
			claimed := w.claimOnce(10)
			equal(w, "more", len(claimed.Jobs), 0)
			if claimed.Limited || claimed.NextDue <= 0 || claimed.NextDue > 50*time.Second {
				w.Fatalf("limited %v, the next in %s, want at most 50s", claimed.Limited, claimed.NextDue)
			}
			w.Advance(110 * time.Second)
			equal(w, "after 110s at one in 50s, in the other process", len(w.claimFrom(w.Other, 10).Jobs), 2)
			w.Advance(24 * time.Hour)
			equal(w, "after a day", w.claimAll()["slow"], 3)
		}},
		{"R-224", "Within a tenant the lowest priority figure goes first, then the longest due; tenants take turns whatever their priorities.", "I-14", func(w *world) {
			w.save(func(s *sluice.Settings) { s.Fair = true })
			late := w.addTo("a", 9)
			first := w.addTo("a", 1)
			w.addTo("b", 5)
			w.addTo("b", 5)
			jobs := w.claimOnce(2).Jobs
			equal(w, "of a", w.tenantsOf(jobs)["a"], 1)
			equal(w, "the first of a", slices.ContainsFunc(jobs, func(c *sluice.Claim) bool { return c.ID == first }), true)
			jobs = w.claimOnce(2).Jobs
			equal(w, "the other of a", slices.ContainsFunc(jobs, func(c *sluice.Claim) bool { return c.ID == late }), true)
		}},
		{"R-225", "A paused tenant's jobs are not claimed, in the queue or in every queue as was said, until it is resumed or its time has come; what runs goes on.", "I-13", func(w *world) {
			w.addOf("acme", 20)
			w.addOf("other", 20)
			w.save(func(s *sluice.Settings) { s.Fair = true })
			w.claimOnce(2)
			w.limit(tenancy.Limits{Queue: queue, Tenant: "acme", Paused: true})
			equal(w, "paused in the queue", w.tenantsOf(w.claimOnce(4).Jobs)["acme"], 0)
			w.limit(tenancy.Limits{Queue: queue, Tenant: "acme"})
			equal(w, "resumed", w.tenantsOf(w.claimOnce(4).Jobs)["acme"] > 0, true)
			w.limit(tenancy.Limits{Tenant: "acme", Paused: true, PausedUntil: w.Now().Add(time.Hour)})
			equal(w, "paused everywhere", w.tenantsOf(w.claimOnce(4).Jobs)["acme"], 0)
			w.Advance(2 * time.Hour)
			equal(w, "when its time has come", w.tenantsOf(w.claimOnce(8).Jobs)["acme"] > 0, true)
		}},
	}
}

func lineRules() []Rule {
	return []Rule{
		{"R-226", "Turns can be switched on and off while jobs wait and run; every job is claimed once.", "I-1, I-2, I-15", func(w *world) {
			w.addOf("a", 30)
			w.addOf("b", 30)
			seen := make(map[sluice.ID]int)
			count := func(jobs []*sluice.Claim) {
				for _, c := range jobs {
					seen[c.ID]++
				}
			}
			count(w.claimOnce(5).Jobs)
			w.save(func(s *sluice.Settings) { s.Fair, s.TenantConcurrency = true, 9 })
			for range 5 {
				count(w.claimOnce(5).Jobs)
			}
			equal(w, "with what ran already, up to the concurrency", len(seen), 18)
			w.save(func(s *sluice.Settings) { s.Fair, s.TenantConcurrency = false, 0 })
			w.addOf("c", 10)
			for range 4 {
				count(w.claimOnce(5).Jobs)
			}
			w.save(func(s *sluice.Settings) { s.Fair = true })
			for range 30 {
				count(w.claimOnce(5).Jobs)
			}
			equal(w, "jobs", len(seen), 70)
			for id, times := range seen {
				equal(w, "claims of "+id.String(), times, 1)
			}
		}},
		{"R-234", "Limits that say nothing any more, as after a pause, put no queue in turns.", "", func(w *world) {
			w.save(func(*sluice.Settings) {})
			byTenant := func() bool {
				queues, err := w.Store.Queues(w.ctx, sluice.QueueFilter{})
				w.ok(err)
				return queues[0].ByTenant
			}
			equal(w, "without limits", byTenant(), false)
			w.limit(tenancy.Limits{Tenant: "acme", Paused: true})
			equal(w, "with a paused tenant", byTenant(), true)
			w.limit(tenancy.Limits{Tenant: "acme"})
			equal(w, "resumed", byTenant(), false)
			w.addOf("acme", 3)
			equal(w, "claimed", w.claimAll()["acme"], 3)
		}},
		{"R-227", "Jobs that come back find their tenant's line: retried when they are due, released, requeued, rescheduled, and let go by the one they waited for.", "I-1", func(w *world) {
			w.save(func(s *sluice.Settings) { s.Fair = true })
			w.addOf("acme", 1)
			c := w.claimOne()
			retry := by(sluice.EventRetry, c)
			retry.Delay = time.Hour
			w.done(retry)
			claimed := w.claimOnce(1)
			equal(w, "before it is due", len(claimed.Jobs), 0)
			if claimed.NextDue < 50*time.Minute || claimed.NextDue > time.Hour {
				w.Fatalf("the next in %s, want about an hour", claimed.NextDue)
			}
			w.Advance(time.Hour)
			w.done(by(sluice.EventRelease, w.claimOne()))
			w.done(by(sluice.EventBury, w.claimOne()))
			w.ok(w.only(w.Store.Requeue(w.ctx, []sluice.ID{c.ID}, person("again"))))
			w.done(by(sluice.EventComplete, w.claimOne()))
			later := w.add(sluice.EnqueueOptions{Tenant: "acme", Delay: time.Hour})
			equal(w, "early", len(w.claimOnce(1).Jobs), 0)
			w.ok(w.only(w.Store.Reschedule(w.ctx, []sluice.ID{later}, time.Time{}, person("now"))))
			w.done(by(sluice.EventComplete, w.claimOne()))
			w.add(sluice.EnqueueOptions{Tenant: "acme", Key: "k"})
			c = w.claimOne()
			behind := w.add(sluice.EnqueueOptions{Tenant: "acme", Key: "k", OnDuplicate: sluice.Coalesce})
			equal(w, "behind its twin", len(w.claimOnce(1).Jobs), 0)
			w.done(by(sluice.EventComplete, c))
			equal(w, "let go", w.claimOne().ID, behind)
		}},
		{"R-228", "Limits of a tenant are stored by version and audited with what was before.", "I-4", func(w *world) {
			w.limit(tenancy.Limits{Tenant: "acme", Concurrency: new(3)})
			_, err := tenancy.Given(w.Store).SaveTenantLimits(w.ctx, tenancy.Limits{Tenant: "acme", Concurrency: new(4)}, person("late"))
			w.is(err, sluice.ErrConflict)
			w.limit(tenancy.Limits{Queue: queue, Tenant: "acme", Rate: new(sluice.RatePerSecond(2)), Burst: new(4), Weight: new(7), Until: w.Now().Add(time.Hour)})
			stored, err := tenancy.Given(w.Store).TenantLimits(w.ctx, "", "acme")
			w.ok(err)
			equal(w, "limits", len(stored), 2)
			equal(w, "the queue of the second", stored[1].Queue, queue)
			equal(w, "rate, burst, weight", fmt.Sprint(*stored[1].Rate, *stored[1].Burst, *stored[1].Weight), "2/s 4 7")
			equal(w, "what says nothing", stored[1].Concurrency == nil, true)
			w.near("until", stored[1].Until, w.Now().Add(time.Hour))
			w.limit(tenancy.Limits{Tenant: "acme", Concurrency: new(5)})
			entries, err := w.Store.Audit(w.ctx, sluice.AuditFilter{Object: audit.ObjectTenant, Name: "acme", Limit: 10})
			w.ok(err)
			equal(w, "audit lines", len(entries), 3)
			equal(w, "before", string(entries[0].Before) != "" && string(entries[0].After) != "", true)
			equal(w, "by", entries[0].Actor, "ada")
		}},
		{"R-229", "A queue's limits count beside its tenants'.", "I-10, I-12", func(w *world) {
			w.save(func(s *sluice.Settings) { s.Fair, s.Concurrency = true, 6 })
			w.addOf("a", 20)
			w.addOf("b", 20)
			got := w.claimAll()
			equal(w, "in flight", got["a"]+got["b"], 6)
			equal(w, "of a", got["a"], 3)
			w.save(func(s *sluice.Settings) { s.Concurrency, s.Rate, s.Burst = 0, sluice.RatePerSecond(0.01), 4 })
			got = w.claimAll()
			equal(w, "by the rate", got["a"]+got["b"], 4)
			equal(w, "limited", w.claimOnce(1).Limited, true)
		}},
		{"R-230", "What is known of a job's turn tells of its tenant: what counts for it, what it has in flight and which jobs these are.", "I-1", func(w *world) {
			w.limit(tenancy.Limits{Tenant: "acme", Concurrency: new(2), Rate: new(sluice.RatePerSecond(0.01)), Burst: new(2), Weight: new(3)})
			w.addOf("other", 5)
			ids := w.addOf("acme", 5)
			equal(w, "claimed", w.claimAll()["acme"], 2)
			o, err := explain.Given(w.Store).Position(w.ctx, ids[4])
			w.ok(err)
			equal(w, "by tenant", o.ByTenant, true)
			equal(w, "terms", fmt.Sprint(o.EffectiveLimits.Concurrency, o.EffectiveLimits.Rate, o.EffectiveLimits.Burst, o.EffectiveLimits.Weight), "2 1/1m40s 2 3")
			equal(w, "held", o.Held, 2)
			equal(w, "holding", len(o.Holding), 2)
			equal(w, "ahead of it in its line", o.Ahead, 2)
			if o.TenantTokenWait <= 0 || o.TenantTokenWait > 100*time.Second {
				w.Fatalf("the tenant's next token in %s", o.TenantTokenWait)
			}
		}},
	}
}
