package sluice

import "time"

// Terms are the limits that count for a tenant in a queue, whoever said them.
type Terms struct {
	// Capacity is how many jobs may be in flight at the same time; 0: no limit.
	Capacity int `json:"capacity,omitempty"`
	// Rate and Burst are how many may be claimed per time, and at once after a lull; 0: no limit.
	Rate  Rate `json:"rate,omitzero"`
	Burst int  `json:"burst,omitempty"`
	// Weight is the tenant's share beside the others that have work.
	Weight int `json:"weight"`
	// Until is when others count; zero: never.
	Until time.Time `json:"until,omitzero"`
	// Paused tenants are open again at PausedUntil, if that is set.
	Paused      bool      `json:"paused,omitempty"`
	PausedUntil time.Time `json:"paused_until,omitzero"`
}
