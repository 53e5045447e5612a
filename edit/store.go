package edit

import (
	"context"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/feature"
)

// Store is the port of edits. SQLite, PostgreSQL and memory implement it beside sluice.Store.
type Store interface {
	// EditJob changes a queued job, with an audit entry. An unknown job is an ErrNotFound, one that is not queued an
	// ErrNotAllowed, and one of another version an ErrConflict. An act that is sent again changes nothing.
	EditJob(ctx context.Context, edit Edit, act sluice.Act) error
}

// Given returns the port of a store, through decorators too. For nil, the method of the returned Store returns a
// [sluice.ErrInvalid]. For a store without edits, it returns a [sluice.ErrNotFound].
func Given(store sluice.Store) Store {
	port, err := feature.Port[Store](store, "edits no jobs")
	if err != nil {
		return missing{err}
	}
	return port
}

// missing is the port of a store without edits. Its method returns the reason.
type missing struct{ err error }

func (m missing) EditJob(context.Context, Edit, sluice.Act) error { return m.err }
