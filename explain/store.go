package explain

import (
	"context"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/feature"
)

// Store is the port of explanations. SQLite, PostgreSQL and memory implement it beside sluice.Store.
type Store interface {
	// Position returns the position of a job, by a bounded number of rows. If the job is not queued, no job is ahead
	// of it. An unknown ID is an ErrNotFound.
	Position(ctx context.Context, id sluice.ID) (Position, error)
}

// Given returns the port of a store, through decorators too. For nil, the method of the returned Store returns a
// [sluice.ErrInvalid]. For a store without explanations, it returns a [sluice.ErrNotFound].
func Given(store sluice.Store) Store {
	port, err := feature.Port[Store](store, "explains nothing")
	if err != nil {
		return missing{err}
	}
	return port
}

// missing is the port of a store without explanations.
type missing struct{ err error }

func (m missing) Position(context.Context, sluice.ID) (Position, error) { return Position{}, m.err }
