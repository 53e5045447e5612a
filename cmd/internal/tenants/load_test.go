package tenants

import (
	"fmt"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/forecast"
)

// TestLoadOfATenantSaysHowMuchOfItIsKnown adds up figures of several queues, some of which list only their busiest
// tenants.
func TestLoadOfATenantSaysHowMuchOfItIsKnown(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 21, 16, 0, 0, 0, time.UTC)
	mail := func(tenants ...sluice.TenantFlow) sluice.Flow { return sluice.Flow{Queue: "mail", Tenants: tenants} }
	sms := sluice.Flow{Queue: "sms", Tenants: []sluice.TenantFlow{{Tenant: "acme", InFlight: 2}}}
	crowd := make([]sluice.TenantFlow, mostTenants)
	for i := range crowd {
		crowd[i] = sluice.TenantFlow{Tenant: fmt.Sprint("tenant-", i), InFlight: 1}
	}
	tally := func(jobs, acme int) forecast.Tally {
		return forecast.Tally{Jobs: jobs, Tenants: map[string]int{"acme": acme}}
	}
	count := func(queue string, ago time.Duration, due, blocked, ahead, later forecast.Tally) forecast.QueueCounts {
		return forecast.QueueCounts{Queue: queue, CountedAt: now.Add(-ago), Due: due, Blocked: blocked, Ahead: []forecast.Wave{{Tally: ahead}}, Later: later}
	}
	none := forecast.Tally{}
	all := count("mail", time.Second, tally(3, 3), tally(1, 1), tally(4, 4), tally(10, 10))
	some := count("mail", time.Second, tally(30, 3), none, none, none)
	others := count("sms", time.Second, forecast.Tally{Jobs: 7}, none, none, none)
	old := count("mail", time.Hour, tally(3, 3), none, none, none)
	waiting := func(flows []sluice.Flow, counted ...forecast.QueueCounts) load {
		return loadWaiting(flows, forecast.Counts{Now: now, Queues: counted})
	}
	for name, c := range map[string]struct {
		load        load
		acme, other string
	}{
		"no queue":                         {loadInFlight(nil), "0", "0"},
		"in flight, in all queues":         {loadInFlight([]sluice.Flow{mail(sluice.TenantFlow{Tenant: "acme", InFlight: 1300}), sms}), "1 302", "0"},
		"counting stopped":                 {loadInFlight([]sluice.Flow{mail(sluice.TenantFlow{Tenant: "acme", InFlight: sluice.DepthLimit}), sms}), "100 002+", "-"},
		"more tenants than are asked for":  {loadInFlight([]sluice.Flow{mail(crowd...), sms}), "2+", "-"},
		"one of many":                      {loadInFlight([]sluice.Flow{mail(append(crowd[1:], sluice.TenantFlow{Tenant: "acme", InFlight: 1})...), sms}), "3", "-"},
		"waiting, whenever it is due":      {waiting([]sluice.Flow{mail()}, all), "18", "0"},
		"among the largest tenants":        {waiting([]sluice.Flow{mail()}, some), "3", "-"},
		"elsewhere not among the largest":  {waiting([]sluice.Flow{mail(), sms}, some, others), "3+", "-"},
		"counted long ago":                 {waiting([]sluice.Flow{mail()}, old), "-", "-"},
		"a queue that nobody has counted":  {waiting([]sluice.Flow{mail(), sms}, all), "18+", "-"},
		"of a queue that is there no more": {waiting([]sluice.Flow{sms}, all, count("sms", 0, none, none, none, none)), "0", "0"},
	} {
		if acme, other := LoadText(c.load.of("acme")), LoadText(c.load.of("other")); acme != c.acme || other != c.other {
			t.Errorf("%s: acme has %s and another %s, want %s and %s", name, acme, other, c.acme, c.other)
		}
	}
}
