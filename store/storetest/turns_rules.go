package storetest

import (
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/tenancy"
)

// turnsRules are what random sequences have found.
func turnsRules() []Rule {
	return []Rule{
		{"R-231", "A tenant that waits for its tokens waits no longer than the rate counts: when its own limits end, it goes on by what remains said.", "I-11, I-15", func(w *world) {
			w.save(func(s *sluice.Settings) { s.Fair = true })
			w.limit(tenancy.Limits{Tenant: "acme", Rate: new(sluice.RatePerSecond(0.001)), Burst: new(1), Until: w.Now().Add(10 * time.Minute)})
			w.addOf("acme", 5)
			equal(w, "the burst", w.claimAll()["acme"], 1)
			claimed := w.claimOnce(10)
			if claimed.NextDue <= 0 || claimed.NextDue > 10*time.Minute {
				w.Fatalf("the next in %s, want at most 10m", claimed.NextDue)
			}
			w.Advance(11 * time.Minute)
			equal(w, "when the rate has ended", w.claimAll()["acme"], 4)
		}},
		{"R-232", "A tenant that took all that there was in one claim, alone, is not behind those who come next.", "I-14", func(w *world) {
			w.save(func(s *sluice.Settings) { s.Fair = true })
			w.addOf("first", 60)
			equal(w, "alone", len(w.claimOnce(100).Jobs), 60)
			w.addOf("first", 30)
			w.addOf("next", 30)
			got := make(map[string]int)
			for range 4 {
				for tenant, n := range w.tenantsOf(w.claimOnce(5).Jobs) {
					got[tenant] += n
				}
			}
			if got["first"] < 9 || got["first"] > 11 {
				w.Fatalf("it got %d of 20 jobs, want about 10: %v", got["first"], got)
			}
		}},
		{"R-235", "Upkeep may forget a tenant that has nothing to do: its rate goes on where it was, and its next job finds its turn.", "I-11, I-12", func(w *world) {
			w.limit(tenancy.Limits{Tenant: "acme", Rate: new(sluice.RatePerSecond(0.01)), Burst: new(3)})
			w.addOf("acme", 2)
			w.addOf("other", 1)
			for _, c := range w.claimOnce(10).Jobs {
				w.done(by(sluice.EventComplete, c))
			}
			equal(w, "left", w.claimAll()["acme"], 0)
			for range 3 {
				w.prune()
			}
			w.addOf("acme", 3)
			w.addOf("other", 1)
			got := w.claimAll()
			equal(w, "of the burst", got["acme"], 1)
			equal(w, "of the one who had nothing to do", got["other"], 1)
			w.Advance(time.Hour)
			equal(w, "by the rate", w.claimAll()["acme"], 2)
			w.Advance(time.Hour)
			w.prune()
			w.addOf("acme", 5)
			equal(w, "the burst", w.claimAll()["acme"], 3)
		}},
	}
}
