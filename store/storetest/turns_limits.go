package storetest

import (
	"errors"
	"time"

	"pgregory.net/rapid"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/tenancy"
)

// perHour is a rate that is slow beside what a claim takes.
func perHour(n int) sluice.Rate { return sluice.RatePerSecond(float64(n) / 3600) }

func (m *turnsMachine) changeSettings(t *rapid.T) {
	byTenant := m.byTenant()
	s := &m.settings
	switch rapid.SampledFrom([]string{"fair", "tenant concurrency", "tenant rate", "rate", "in flight", "paused"}).Draw(t, "setting") {
	case "fair":
		s.Fair = !s.Fair
	case "tenant concurrency":
		s.TenantConcurrency = rapid.SampledFrom([]int{0, 1, 3}).Draw(t, "concurrency")
	case "tenant rate":
		s.TenantRate = perHour(rapid.SampledFrom([]int{0, 3, 120}).Draw(t, "an hour"))
		s.TenantBurst = rapid.IntRange(0, 3).Draw(t, "burst")
	case "rate":
		s.Rate = perHour(rapid.SampledFrom([]int{0, 30, 360}).Draw(t, "an hour"))
		s.Burst = rapid.IntRange(0, 6).Draw(t, "burst")
	case "in flight":
		s.Concurrency = rapid.SampledFrom([]int{0, 2, 5}).Draw(t, "in flight")
	case "paused":
		s.Paused = !s.Paused
	}
	m.saveSettings()
	m.changed(byTenant)
}

func (m *turnsMachine) changeLimits(t *rapid.T) {
	byTenant := m.byTenant()
	l := tenancy.Limits{Queue: rapid.SampledFrom([]string{"", m.queue}).Draw(t, "in the queue")}
	if rapid.Bool().Draw(t, "of a tier") {
		l.Tier = rapid.SampledFrom(m.tierNames).Draw(t, "tier")
	} else {
		l.Tenant = rapid.SampledFrom(m.tenants).Draw(t, "tenant")
		if minutes := rapid.SampledFrom([]int{0, 0, 4}).Draw(t, "for minutes"); minutes > 0 {
			l.Until = m.bench.Now().Add(time.Duration(minutes) * minute)
		}
		if l.Paused = rapid.IntRange(0, 3).Draw(t, "paused") == 0; l.Paused && rapid.Bool().Draw(t, "for a while") {
			l.PausedUntil = m.bench.Now().Add(5 * minute)
		}
	}
	if n := rapid.IntRange(-2, 4).Draw(t, "concurrency"); n >= 0 {
		l.Concurrency = &n
	}
	if n := rapid.SampledFrom([]int{-1, -1, 0, 3, 60, 180}).Draw(t, "rate, an hour"); n >= 0 {
		l.Rate = new(perHour(n))
	}
	if n := rapid.IntRange(-2, 3).Draw(t, "burst"); n >= 0 {
		l.Burst = &n
	}
	if n := rapid.IntRange(-1, 3).Draw(t, "weight"); n > 0 {
		l.Weight = &n
	}
	m.saveLimits(l)
	m.changed(byTenant)
}

func (m *turnsMachine) saveLimits(l tenancy.Limits) {
	key := limitsKey{l.Queue, l.Tier, l.Tenant}
	l.Version = m.limits[key].Version
	stored, err := tenancy.Given(m.bench.Store).SaveTenantLimits(m.ctx, l, m.act())
	m.must(err)
	// The machine's instants are of its own clock.
	stored.Until, stored.PausedUntil = m.virtual(l.Until), m.virtual(l.PausedUntil)
	m.limits[key] = stored
}

// virtual gives an instant as the machine's clock counts.
func (m *turnsMachine) virtual(at time.Time) time.Time {
	if at.IsZero() {
		return at
	}
	return m.at(m.clock() + at.Sub(m.bench.Now()))
}

// at is an instant of the machine's clock.
func (m *turnsMachine) at(clock time.Duration) time.Time { return m.begun.Add(clock) }

func (m *turnsMachine) changeTier(t *rapid.T) {
	byTenant := m.byTenant()
	tenant := rapid.SampledFrom(m.tenants).Draw(t, "tenant")
	m.putIntoTier(tenant, rapid.SampledFrom(append([]string{""}, m.tierNames...)).Draw(t, "tier"))
	m.changed(byTenant)
}

func (m *turnsMachine) putIntoTier(tenant, tier string) {
	stored, err := tenancy.Given(m.bench.Store).Tenant(m.ctx, tenant)
	if !errors.Is(err, sluice.ErrNotFound) {
		m.must(err)
	}
	stored.Name, stored.Tier = tenant, tier
	_, err = tenancy.Given(m.bench.Store).SaveTenant(m.ctx, stored, m.act())
	m.must(err)
	m.tiers[tenant] = tier
}

// forget deletes a tenant.
func (m *turnsMachine) forget(t *rapid.T) {
	byTenant := m.byTenant()
	tenant := rapid.SampledFrom(m.tenants).Draw(t, "tenant")
	m.delete(tenant)
	m.changed(byTenant)
}

// delete forgets a tenant, if it is stored, and its limits.
func (m *turnsMachine) delete(tenant string) {
	if _, stored := m.tiers[tenant]; !stored {
		m.putIntoTier(tenant, "")
	}
	m.must(tenancy.Given(m.bench.Store).Delete(m.ctx, audit.ObjectTenant, tenant, m.act()))
	delete(m.tiers, tenant)
	for key := range m.limits {
		if key.tenant == tenant {
			delete(m.limits, key)
		}
	}
}

// forgetAll deletes everything that is said of tenants and tiers.
func (m *turnsMachine) forgetAll() {
	byTenant := m.byTenant()
	for _, tenant := range m.tenants {
		m.delete(tenant)
	}
	for _, tier := range m.tierNames {
		m.must(tenancy.Given(m.bench.Store).Delete(m.ctx, audit.ObjectTier, tier, m.act()))
	}
	clear(m.tiers)
	clear(m.limits)
	m.makeTiers()
	m.changed(byTenant)
}

func (m *turnsMachine) makeTiers() {
	for _, tier := range m.tierNames {
		_, err := tenancy.Given(m.bench.Store).SaveTier(m.ctx, tenancy.Tier{Name: tier}, m.act())
		m.must(err)
	}
}

// openUp ends all pauses, and takes the limits away if asked to; else each lets some through.
func (m *turnsMachine) openUp(withoutLimits bool) {
	byTenant := m.byTenant()
	m.settings.Paused = false
	for _, l := range m.limits {
		if l.Paused {
			l.Paused, l.PausedUntil, l.Until = false, time.Time{}, time.Time{}
			m.saveLimits(l)
		}
	}
	if withoutLimits {
		s := sluice.DefaultSettings()
		s.Fair, s.MaxRecoveries = m.settings.Fair, m.settings.MaxRecoveries
		m.settings = s
		m.forgetAll()
	}
	m.saveSettings()
	m.changed(byTenant)
}

// byTenant reports whether the queue tells its tenants apart.
func (m *turnsMachine) byTenant() bool {
	for _, l := range m.limits {
		if l.Say() {
			return true
		}
	}
	return m.settings.Fair || m.settings.TenantConcurrency > 0 || !m.settings.TenantRate.IsZero()
}

// terms finds the limits that count for a tenant at an instant.
func (m *turnsMachine) terms(tenant string, clock time.Duration) sluice.EffectiveLimits {
	terms := sluice.EffectiveLimits{Weight: 1}
	if tenant == "" {
		return terms
	}
	now := m.at(clock)
	terms.Concurrency, terms.Rate, terms.Burst = m.settings.TenantConcurrency, m.settings.TenantRate, m.settings.TenantBurst
	tier := m.tiers[tenant]
	for _, key := range []limitsKey{{"", tier, ""}, {m.queue, tier, ""}, {"", "", tenant}, {m.queue, "", tenant}} {
		l := m.limits[key]
		terms.Paused = terms.Paused || l.PausedAt(now)
		if !l.Until.IsZero() && !l.Until.After(now) {
			continue
		}
		for figure, said := range map[*int]*int{&terms.Concurrency: l.Concurrency, &terms.Burst: l.Burst, &terms.Weight: l.Weight} {
			if said != nil {
				*figure = *said
			}
		}
		if l.Rate != nil {
			terms.Rate = *l.Rate
		}
	}
	return terms
}

// upkeep lets upkeep forget lines and take in what was told of them.
func (m *turnsMachine) upkeep(t *rapid.T) {
	store := m.store(t)
	if rapid.IntRange(0, 3).Draw(t, "mend") == 0 {
		byTenant := m.byTenant()
		_, err := store.Repair(m.ctx, "upkeep")
		m.must(err)
		m.readEnded()
		m.changed(byTenant)
		return
	}
	_, err := store.Prune(m.ctx, "", 1000)
	m.must(err)
}

// readEnded reads the limits whose time is over, and which upkeep has ended.
func (m *turnsMachine) readEnded() {
	for key, l := range m.limits {
		all, err := tenancy.Given(m.bench.Store).TenantLimits(m.ctx, key.tier, key.tenant)
		m.must(err)
		for _, stored := range all {
			if stored.Queue == key.queue && stored.Version != l.Version {
				stored.Until, stored.PausedUntil = m.virtual(stored.Until), m.virtual(stored.PausedUntil)
				m.limits[key] = stored
			}
		}
	}
}
