package explain

import (
	"fmt"
	"strings"

	"github.com/sluice-queue/sluice"
)

// tenantReasons returns the reasons of a job whose queue serves its tenants in turns.
func tenantReasons(j sluice.Job, o Position) []Reason {
	if !o.ByTenant {
		return nil
	}
	return []Reason{tenantReason(j, o), capacityReason(j, o), tenantRateReason(j, o)}
}

func tenantName(j sluice.Job) string {
	if j.Tenant == "" {
		return "jobs without a tenant"
	}
	return fmt.Sprintf("tenant %q", j.Tenant)
}

func tenantReason(j sluice.Job, o Position) Reason {
	if !o.EffectiveLimits.Paused {
		return Reason{Name: "tenant", Open: true, Summary: fmt.Sprintf("%s takes turns with the others, with a weight of %d", tenantName(j), o.EffectiveLimits.Weight)}
	}
	g := Reason{Name: "tenant", Summary: tenantName(j) + " is paused", Until: o.EffectiveLimits.PausedUntil, Repair: fmt.Sprintf("sluice resume %s --tenant %s", j.Queue, j.Tenant)}
	if !g.Until.IsZero() {
		g.Summary += " until " + moment(g.Until)
	}
	g.Summary += fmt.Sprintf("; `sluice tenants` says where: `sluice resume %s --tenant %s` opens it there, or without the queue in every one", j.Queue, j.Tenant)
	return g
}

// capacityReason names the jobs that fill the tenant's concurrency.
func capacityReason(j sluice.Job, o Position) Reason {
	most := o.EffectiveLimits.Concurrency
	switch {
	case most == 0:
		return Reason{Name: "concurrency", Open: true, Summary: fmt.Sprintf("%s of %s in flight, without a limit", counted(o.Held), tenantName(j))}
	case o.Held < most:
		return Reason{Name: "concurrency", Open: true, Summary: fmt.Sprintf("%d of %d of %s in flight", o.Held, most, tenantName(j))}
	}
	says := fmt.Sprintf("%s of %s in flight, and %d are allowed; one has to end first", counted(o.Held), tenantName(j), most)
	if len(o.Holding) > 0 {
		ids := make([]string, len(o.Holding))
		for i, id := range o.Holding {
			ids[i] = id.String()
		}
		says += ": " + strings.Join(ids, ", ")
		if o.Held > len(ids) {
			says += ", …"
		}
	}
	return Reason{Name: "concurrency", Summary: says, Until: o.EffectiveLimits.Until, Repair: fmt.Sprintf("sluice tenants set %s concurrency=N --queue %s --reason WHY; or let one of them end", j.Tenant, j.Queue)}
}

func tenantRateReason(j sluice.Job, o Position) Reason {
	switch {
	case o.EffectiveLimits.Rate.IsZero():
		return Reason{Name: "tenant_rate", Open: true, Summary: tenantName(j) + " has no rate"}
	case o.TenantTokenWait <= 0:
		return Reason{Name: "tenant_rate", Open: true, Summary: fmt.Sprintf("the rate of %s of %s has a token", o.EffectiveLimits.Rate, tenantName(j))}
	}
	until := o.Now.Add(o.TenantTokenWait)
	return Reason{
		Name: "tenant_rate", Summary: fmt.Sprintf("the rate of %s of %s has its next token at %s", o.EffectiveLimits.Rate, tenantName(j), tokenAt(until)), Until: until,
		Repair: fmt.Sprintf("sluice tenants set %s rate=N/s --queue %s --reason WHY", j.Tenant, j.Queue),
	}
}
