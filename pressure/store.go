package pressure

import (
	"context"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/feature"
)

// Store is the port of back-pressure: SQLite, PostgreSQL and memory implement it beside their sluice.Store.
type Store interface {
	// WaitingJobs counts the queued jobs of a queue, or of one of its tenants. The count stops at limit. In a queue that
	// does not serve its tenants in turns, the count of a tenant is 0.
	WaitingJobs(ctx context.Context, queue, tenant string, limit int) (int, error)
	// PressureCounts returns what this open store has refused and shed, by queue. It does not read the database.
	PressureCounts() map[string]Counts
}

// Given returns the port of a store, or of the store that it decorates. If the store has none, WaitingJobs returns the
// reason: a [sluice.ErrInvalid] for nil, a [sluice.ErrNotFound] otherwise.
func Given(store sluice.Store) Store {
	port, err := feature.Port[Store](store, "limits no waiting jobs")
	if err != nil {
		return missing{err}
	}
	return port
}

// missing is the port of a store that has none.
type missing struct{ err error }

func (m missing) WaitingJobs(context.Context, string, string, int) (int, error) { return 0, m.err }

func (m missing) PressureCounts() map[string]Counts { return nil }
