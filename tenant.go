package sluice

import "time"

// Tenant is somebody whom jobs belong to. A job may name a tenant that was never stored; a stored
// one has a tier.
type Tenant struct {
	Name string
	// Tier names the tenant's class; empty: none.
	Tier    string
	Version int64
	// ChangedAt, ChangedBy and Reason tell of the last change.
	ChangedAt time.Time
	ChangedBy string
	Reason    string
}

// Tier is a class of tenants, such as FREE or PRO.
type Tier struct {
	Name    string
	Version int64
	// ChangedAt, ChangedBy and Reason tell of the last change.
	ChangedAt time.Time
	ChangedBy string
	Reason    string
}

// Holder is a process that claims jobs or tends them, as it last told the store.
type Holder struct {
	// ID is host:pid:nonce.
	ID string `json:"id"`
	// Role is worker or upkeep.
	Role    string    `json:"role"`
	Queues  []string  `json:"queues,omitempty"`
	Slots   int       `json:"slots,omitempty"`
	Busy    int       `json:"busy"`
	Version string    `json:"version"`
	Started time.Time `json:"started"`
	Seen    time.Time `json:"seen"`
}
