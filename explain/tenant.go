package explain

import (
	"fmt"
	"strings"
	"time"

	"github.com/sluice-queue/sluice"
)

// tenantGates returns the gates of a job whose queue serves its tenants in turns.
func tenantGates(j sluice.Job, o Outlook) []Gate {
	if !o.ByTenant {
		return nil
	}
	return []Gate{tenantGate(j, o), capacityGate(j, o), tenantRateGate(j, o)}
}

func tenantName(j sluice.Job) string {
	if j.Tenant == "" {
		return "jobs without a tenant"
	}
	return fmt.Sprintf("tenant %q", j.Tenant)
}

func tenantGate(j sluice.Job, o Outlook) Gate {
	if !o.EffectiveLimits.Paused {
		return Gate{Name: "tenant", Open: true, Says: fmt.Sprintf("%s takes turns with the others, with a weight of %d", tenantName(j), o.EffectiveLimits.Weight)}
	}
	g := Gate{Name: "tenant", Says: tenantName(j) + " is paused", Until: o.EffectiveLimits.PausedUntil, Repair: fmt.Sprintf("sluice resume %s --tenant %s", j.Queue, j.Tenant)}
	if !g.Until.IsZero() {
		g.Says += " until " + moment(g.Until)
	}
	g.Says += fmt.Sprintf("; `sluice tenants` says where: `sluice resume %s --tenant %s` opens it there, or without the queue in every one", j.Queue, j.Tenant)
	return g
}

// capacityGate names the jobs that fill the tenant's concurrency.
func capacityGate(j sluice.Job, o Outlook) Gate {
	most := o.EffectiveLimits.Concurrency
	switch {
	case most == 0:
		return Gate{Name: "concurrency", Open: true, Says: fmt.Sprintf("%s of %s in flight, without a limit", counted(o.Held), tenantName(j))}
	case o.Held < most:
		return Gate{Name: "concurrency", Open: true, Says: fmt.Sprintf("%d of %d of %s in flight", o.Held, most, tenantName(j))}
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
	return Gate{Name: "concurrency", Says: says, Until: o.EffectiveLimits.Until, Repair: fmt.Sprintf("sluice tenants set %s concurrency=N --queue %s --reason WHY; or let one of them end", j.Tenant, j.Queue)}
}

func tenantRateGate(j sluice.Job, o Outlook) Gate {
	switch {
	case o.EffectiveLimits.Rate.IsZero():
		return Gate{Name: "tenant_rate", Open: true, Says: tenantName(j) + " has no rate"}
	case o.TenantTokenWait <= 0:
		return Gate{Name: "tenant_rate", Open: true, Says: fmt.Sprintf("the rate of %s of %s has a token", o.EffectiveLimits.Rate, tenantName(j))}
	}
	until := o.Now.Add(o.TenantTokenWait)
	return Gate{
		Name: "tenant_rate", Says: fmt.Sprintf("the rate of %s of %s has its next token at %s", o.EffectiveLimits.Rate, tenantName(j), until.UTC().Format(time.RFC3339Nano)), Until: until,
		Repair: fmt.Sprintf("sluice tenants set %s rate=N/s --queue %s --reason WHY", j.Tenant, j.Queue),
	}
}
