package storetest

import (
	"fmt"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/tenancy"
)

func termRules() []Rule {
	return []Rule{
		{"R-237", "The limits that count for tenants are told as claims go by them: of the tenant, its tier and the queue, at an instant.", "I-15", func(w *world) {
			w.limit(tenancy.Limits{Tier: "PRO", Concurrency: new(5), Weight: new(2)})
			w.limit(tenancy.Limits{Queue: queue, Tier: "PRO", Rate: new(sluice.RatePerSecond(3)), Burst: new(6)})
			w.limit(tenancy.Limits{Tenant: "acme", Concurrency: new(9), Until: w.Now().Add(time.Hour)})
			w.limit(tenancy.Limits{Queue: queue, Tenant: "shut", Paused: true})
			w.tier("acme", "PRO")
			settings := sluice.DefaultSettings()
			settings.TenantConcurrency = 7
			names := []string{"acme", "nobody's", "shut", ""}
			for wait, want := range map[time.Duration]string{0: "9 3/s 6 2 false", 2 * time.Hour: "5 3/s 6 2 false"} {
				terms, err := tenancy.Given(w.Other).EffectiveLimits(w.ctx, sluice.Queue{Name: queue, Settings: settings}, names, w.Now().Add(wait))
				w.ok(err)
				equal(w, "tenants", len(terms), len(names))
				equal(w, "by the tenant and its tier, in "+wait.String(), termsText(terms["acme"]), want)
				equal(w, "by the queue", termsText(terms["nobody's"]), "7 0 0 1 false")
				equal(w, "paused", termsText(terms["shut"]), "7 0 0 1 true")
				equal(w, "without a tenant", termsText(terms[""]), "0 0 0 1 false")
			}
			terms, err := tenancy.Given(w.Store).EffectiveLimits(w.ctx, sluice.Queue{Name: "other", Settings: settings}, names, w.Now())
			w.ok(err)
			equal(w, "in another queue", termsText(terms["acme"])+", "+termsText(terms["shut"]), "9 0 0 2 false, 7 0 0 1 false")
		}},
	}
}

func termsText(t sluice.EffectiveLimits) string {
	return fmt.Sprint(t.Concurrency, t.Rate, t.Burst, t.Weight, t.Paused)
}
