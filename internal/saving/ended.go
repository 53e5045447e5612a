package saving

import (
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/tenancy"
)

// WithoutEnded returns the limits of a tenant without the pause and the figures whose time is over. While a stored row has
// either, claims serve the tenants of its queue in turns, which costs more.
func WithoutEnded(l tenancy.Limits, now time.Time) tenancy.Limits {
	if !l.PausedUntil.IsZero() && !l.PausedUntil.After(now) {
		l.Paused, l.PausedUntil = false, time.Time{}
	}
	if !l.Until.IsZero() && !l.Until.After(now) {
		l.Until, l.Concurrency, l.Rate, l.Burst, l.Weight = time.Time{}, nil, nil, nil, nil
	}
	return l
}

// MostEnded is how many limits one repair ends.
const MostEnded = 200

// EndedBy returns the act by which upkeep stores them.
func EndedBy(by string) sluice.Act {
	return Named(sluice.Act{By: by, Reason: "their time is over"})
}
