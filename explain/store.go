package explain

import (
	"context"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/feature"
)

// Store is the port of explanations: SQLite, PostgreSQL and memory implement it beside their sluice.Store.
type Store interface {
	// Outlook tells what is known of a job's turn, by a bounded number of rows. For one that is not
	// queued, nothing comes before it. An unknown id is an ErrNotFound.
	Outlook(ctx context.Context, id sluice.ID) (Outlook, error)
}

// Given returns the port of a store, also where decorators stand before it. Where there is none, its method gives the
// reason: a [sluice.ErrInvalid] for nil, a [sluice.ErrNotFound] for a store that explains nothing.
func Given(store sluice.Store) Store {
	port, err := feature.Port[Store](store, "explains nothing")
	if err != nil {
		return missing{err}
	}
	return port
}

// missing is the port of a store that has none.
type missing struct{ err error }

func (m missing) Outlook(context.Context, sluice.ID) (Outlook, error) { return Outlook{}, m.err }
