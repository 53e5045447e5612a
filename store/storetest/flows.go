package storetest

import (
	"math"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/tenancy"
)

// flowsRules are about what lets jobs through, as it is told to people who watch.
func flowsRules() []Rule {
	return []Rule{
		{"R-380", "Flows tells of every stored queue, by name, and of no other.", "A-73, B-25", func(w *world) {
			w.save(func(*sluice.Settings) {})
			_, err := w.Store.SaveQueue(w.ctx, sluice.Queue{Name: "a-first", Settings: sluice.DefaultSettings()}, person("test"))
			w.ok(err)
			stray := insertOf(sluice.EnqueueOptions{})
			stray.Queue = "without-settings"
			w.receipts(stray)
			flows := w.flows(5)
			equal(w, "flows", len(flows), 2)
			equal(w, "the first", flows[0].Queue, "a-first")
			equal(w, "the second", flows[1].Queue, queue)
			equal(w, "tokens without a rate", flows[1].Tokens, 0)
		}},
		{"R-381", "What a claim takes of a queue's tokens is told as gone, and comes back by the rate, up to the burst.", "D-36, H-10", func(w *world) {
			w.save(func(s *sluice.Settings) { s.Rate, s.Burst = sluice.RatePerSecond(0.01), 10 })
			w.tokens(10)
			w.addMany(20)
			equal(w, "claimed", len(w.claimOnce(4).Jobs), 4)
			w.tokens(6)
			w.Advance(200 * time.Second)
			w.tokens(8)
			w.Advance(time.Hour)
			w.tokens(10)
		}},
		{"R-382", "The tenants with the most in flight are told, the most first, at most as many as asked, with the limits that count for them; jobs without a tenant are nobody's.", "B-26, A-25", func(w *world) {
			w.save(func(*sluice.Settings) {})
			for tenant, n := range map[string]int{"a": 1, "b": 3, "c": 2, "": 5} {
				w.addOf(tenant, n)
			}
			var claims []*sluice.Claim
			for len(claims) < 11 { // they may be put in line first, and out of it
				claims = append(claims, w.claimOnce(20).Jobs...)
			}
			got := w.flowOf(2)
			equal(w, "tenants", len(got.Tenants), 2)
			equal(w, "the first", got.Tenants[0], sluice.TenantFlow{Tenant: "b", InFlight: 3})
			equal(w, "the second", got.Tenants[1], sluice.TenantFlow{Tenant: "c", InFlight: 2})
			w.limit(tenancy.Limits{Tenant: "c", Concurrency: new(7), Weight: new(2)})
			equal(w, "its limits", w.flowOf(2).Tenants[1].EffectiveLimits, sluice.EffectiveLimits{Concurrency: 7, Weight: 2})
			equal(w, "those of one without", w.flowOf(2).Tenants[0].EffectiveLimits, sluice.EffectiveLimits{Weight: 1})
			for _, c := range claims {
				if c.Tenant == "b" {
					w.done(by(sluice.EventComplete, c))
				}
			}
			got = w.flowOf(5)
			equal(w, "tenants that are left", len(got.Tenants), 2)
			equal(w, "the first of them", got.Tenants[0].Tenant, "c")
		}},
		{"R-383", "A tenant is told to be at its limit from the claim that gave it as much as it may have in flight, until a claim finds room again.", "A-76, B-26", func(w *world) {
			w.save(func(s *sluice.Settings) { s.TenantConcurrency = 2 })
			w.addOf("busy", 2)
			w.addOf("idle", 1)
			equal(w, "before the first claim", w.flowOf(5).AtLimit, 0)
			claims := w.claim(10)
			equal(w, "claimed", len(claims), 3)
			equal(w, "at its limit", w.flowOf(5).AtLimit, 1)
			for _, c := range claims {
				w.done(by(sluice.EventComplete, c))
			}
			w.claimNone("all have ended")
			equal(w, "when there is room", w.flowOf(5).AtLimit, 0)
		}},
		{"R-384", "Jobs that wait for an earlier one of their order key are told apart from those that run after others.", "I-14", func(w *world) {
			w.save(func(*sluice.Settings) {})
			first := w.add(sluice.EnqueueOptions{OrderKey: "account-1"})
			w.add(sluice.EnqueueOptions{OrderKey: "account-1"})
			w.add(sluice.EnqueueOptions{OrderKey: "account-1"})
			w.add(sluice.EnqueueOptions{After: []sluice.ID{first}})
			got := w.flowOf(5)
			equal(w, "by order key", got.Ordered, 2)
			equal(w, "after another", got.After, 1)
			w.done(by(sluice.EventComplete, w.claimOne()))
			got = w.flowOf(5)
			equal(w, "by order key, when the first has ended", got.Ordered, 1)
			equal(w, "after another, when that has ended", got.After, 0)
		}},
	}
}

func (w *world) flows(topTenants int) []sluice.Flow {
	w.Helper()
	flows, err := w.Store.Flows(w.ctx, topTenants)
	w.ok(err)
	return flows
}

// flowOf is that of the usual queue.
func (w *world) flowOf(topTenants int) sluice.Flow {
	w.Helper()
	for _, f := range w.flows(topTenants) {
		if f.Queue == queue {
			return f
		}
	}
	w.Fatalf("no flow of queue %s is told", queue)
	return sluice.Flow{}
}

// tokens makes sure that the queue's rate has so many, but for what comes back while the rule is checked.
func (w *world) tokens(want float64) {
	w.Helper()
	if got := w.flowOf(0).Tokens; math.Abs(got-want) > 0.5 {
		w.Fatalf("%g tokens are told, want %g", got, want)
	}
}
