package hold

import (
	"context"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/feature"
)

// Store is the port of holds. SQLite, PostgreSQL and memory implement it beside sluice.Store.
type Store interface {
	// Hold holds queued jobs, with an audit entry of each. An unknown job is an ErrNotFound; a job that is not queued
	// or is held already is an ErrNotAllowed.
	//
	// A held job is blocked by itself. The hold goes before everything else for which the job may wait, and it ends
	// with the job's life.
	Hold(ctx context.Context, ids []sluice.ID, act sluice.Act) ([]error, error)
	// Release ends the holds of jobs, with an audit entry of each, and works out anew for which jobs they wait. An
	// unknown job is an ErrNotFound, a job that is not held an ErrNotAllowed.
	Release(ctx context.Context, ids []sluice.ID, act sluice.Act) ([]error, error)
	// Holds lists holds, the newest job first.
	Holds(ctx context.Context, filter Filter) ([]Held, error)
}

// Given returns the port of a store, through decorators too. For nil, every method of the returned Store returns a
// [sluice.ErrInvalid]. For a store without holds, every method returns a [sluice.ErrNotFound].
func Given(store sluice.Store) Store {
	port, err := feature.Port[Store](store, "holds no jobs")
	if err != nil {
		return missing{err}
	}
	return port
}

// missing is the port of a store without holds. Every method returns the reason.
type missing struct{ err error }

func (m missing) Hold(context.Context, []sluice.ID, sluice.Act) ([]error, error) { return nil, m.err }

func (m missing) Release(context.Context, []sluice.ID, sluice.Act) ([]error, error) {
	return nil, m.err
}

func (m missing) Holds(context.Context, Filter) ([]Held, error) { return nil, m.err }
