package storetest

import (
	"errors"
	"slices"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/tenancy"
)

// addOf enqueues n jobs of a tenant.
func (w *world) addOf(tenant string, n int) []sluice.ID {
	w.Helper()
	inserts, ids := make([]sluice.Insert, n), make([]sluice.ID, n)
	for i := range inserts {
		inserts[i] = insertOf(sluice.EnqueueOptions{Tenant: tenant})
		inserts[i].ByTenant = i%3 > 0 // it need not be right
		ids[i] = inserts[i].ID
	}
	w.receipts(inserts...)
	return ids
}

// addTo enqueues a job of a tenant and a priority.
func (w *world) addTo(tenant string, priority int) sluice.ID {
	w.Helper()
	return w.add(sluice.EnqueueOptions{Tenant: tenant, Priority: priority})
}

// limit stores limits, whatever was stored before.
func (w *world) limit(limits tenancy.Limits) {
	w.Helper()
	stored, err := tenancy.Given(w.Store).TenantLimits(w.ctx, limits.Tier, limits.Tenant)
	w.ok(err)
	for _, s := range stored {
		if s.Queue == limits.Queue {
			limits.Version = s.Version
		}
	}
	_, err = tenancy.Given(w.Store).SaveTenantLimits(w.ctx, limits, person("test"))
	w.ok(err)
}

// tier puts a tenant into a tier.
func (w *world) tier(tenant, tier string) {
	w.Helper()
	stored, err := tenancy.Given(w.Store).Tenant(w.ctx, tenant)
	if !errors.Is(err, sluice.ErrNotFound) {
		w.ok(err)
	}
	stored.Name, stored.Tier = tenant, tier
	_, err = tenancy.Given(w.Store).SaveTenant(w.ctx, stored, person("test"))
	w.ok(err)
	_, err = tenancy.Given(w.Store).SaveTier(w.ctx, tenancy.Tier{Name: tier}, person("test"))
	if !errors.Is(err, sluice.ErrConflict) {
		w.ok(err)
	}
}

func (w *world) claimFrom(store sluice.Store, limit int) sluice.Claimed {
	w.Helper()
	if w.Refresh != nil {
		w.Refresh()
	}
	claimed, err := store.Claim(w.ctx, claimOf(2, limit))
	w.ok(err)
	return claimed
}

func (w *world) tenantsOf(jobs []*sluice.Claim) map[string]int {
	got := make(map[string]int)
	for _, c := range jobs {
		got[c.Tenant]++
	}
	return got
}

// claimAll claims until nothing more may be claimed now, and counts by tenant.
func (w *world) claimAll() map[string]int {
	w.Helper()
	got := make(map[string]int)
	for {
		jobs := w.claimOnce(10).Jobs
		if len(jobs) == 0 {
			return got
		}
		for tenant, n := range w.tenantsOf(jobs) {
			got[tenant] += n
		}
	}
}

// workUntilDone claims and completes until so many jobs have been completed.
func (w *world) workUntilDone(n, jobs int) {
	store := w.Store
	if n%2 == 1 {
		store = w.Other
	}
	for {
		claimed, err := store.Claim(w.ctx, claimOf(n, 1+n%4))
		if err != nil {
			w.Errorf("claim: %v", err)
			return
		}
		var settlements []sluice.Settlement
		for _, c := range claimed.Jobs {
			settlements = append(settlements, by(sluice.EventComplete, c))
		}
		if errs, err := store.Settle(w.ctx, settlements); err != nil || errors.Join(errs...) != nil {
			w.Errorf("settle: %v %v", err, errs)
			return
		}
		if len(claimed.Jobs) > 0 {
			continue
		}
		depth, err := store.Depth(w.ctx, queue, sluice.DepthLimit)
		if err != nil {
			w.Errorf("depth: %v", err)
			return
		}
		if depth.Ready+depth.Claimed == 0 {
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// keptCapacity replays the audit, in its order, and makes sure that no tenant ever had more in flight than
// its concurrency.
func (w *world) keptCapacity(concurrency map[string]int) {
	w.Helper()
	entries, err := w.Store.Audit(w.ctx, sluice.AuditFilter{Object: audit.ObjectJob, Name: queue, Limit: 10_000})
	w.ok(err)
	tenants, held := make(map[sluice.ID]string), make(map[string]int)
	claims := 0
	for _, e := range slices.Backward(entries) {
		tenant, known := tenants[e.JobID]
		if !known {
			tenant = w.job(e.JobID).Tenant
			tenants[e.JobID] = tenant
		}
		switch e.Event {
		case sluice.EventClaim:
			claims++
			held[tenant]++
		case sluice.EventComplete:
			held[tenant]--
		}
		if most, limited := concurrency[tenant]; limited && held[tenant] > most {
			w.Fatalf("tenant %s has %d in flight, and %d are allowed", tenant, held[tenant], most)
		}
	}
	equal(w, "claims", claims, len(tenants))
}
