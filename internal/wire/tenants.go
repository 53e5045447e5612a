package wire

import (
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/tenancy"
)

// TenantLimitsList lists limits of tenants and tiers.
type TenantLimitsList struct {
	// Limits are sorted by tier and queue.
	Limits []TenantLimitsView `json:"limits"`
}

// TenantLimitsView is the limits of a tenant or a tier, with their version.
type TenantLimitsView struct {
	tenancy.Limits
	// Version counts the changes. ChangedAt, ChangedBy and Reason describe the last one.
	Version   int64     `json:"version"`
	ChangedAt time.Time `json:"changed_at"`
	ChangedBy string    `json:"changed_by"`
	Reason    string    `json:"reason"`
}

// TenantLimitsViewOf shows limits.
func TenantLimitsViewOf(l tenancy.Limits) TenantLimitsView {
	return TenantLimitsView{l, l.Version, l.ChangedAt, l.ChangedBy, l.Reason}
}

// Read reads the view.
func (v TenantLimitsView) Read() tenancy.Limits {
	l := v.Limits
	l.Version, l.ChangedAt, l.ChangedBy, l.Reason = v.Version, v.ChangedAt, v.ChangedBy, v.Reason
	return l
}

// SaveTenantLimitsBody is limits to store.
type SaveTenantLimitsBody struct {
	tenancy.Limits
	// Version is that of the limits as the caller read them. 0: the limits are new.
	Version int64 `json:"version,omitempty"`
	// Reason says why, for the audit.
	Reason string `json:"reason,omitempty" maxLength:"1000"`
}

// SaveTenantBody is a tenant to store.
type SaveTenantBody struct {
	// Tier is the tenant's tier. Missing: none.
	Tier string `json:"tier,omitempty" maxLength:"255"`
	SaveTierBody
}

// SaveTierBody is a tier to store.
type SaveTierBody struct {
	// Version is that which the caller read. 0: it is new.
	Version int64 `json:"version,omitempty"`
	ReasonBody
}

// EffectiveLimitsBody asks which limits count for tenants in a queue.
type EffectiveLimitsBody struct {
	// Settings are the queue's settings by name, with values as people write them. A missing one has its default.
	Settings map[string]string `json:"settings,omitempty" maxProperties:"100"`
	// Tenants are the tenants.
	Tenants []string `json:"tenants" minItems:"1" maxItems:"1000"`
	// At is the instant for which to tell.
	At time.Time `json:"at"`
}

// EffectiveLimitsList tells which limits count for tenants.
type EffectiveLimitsList struct {
	// Limits has the limits by tenant.
	Limits map[string]sluice.EffectiveLimits `json:"limits"`
}
