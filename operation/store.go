package operation

import (
	"context"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/feature"
)

// Store is the port of operations. SQLite, PostgreSQL and memory implement it beside sluice.Store.
type Store interface {
	// SaveOperation stores an operation, by the rule of SaveQueue of [sluice.Store]. It adds an audit entry if the
	// state or the terms have changed, not for each step. If an act is sent again, SaveOperation returns the
	// version that the act stored.
	SaveOperation(ctx context.Context, operation Operation, act sluice.Act) (Operation, error)
	// Operation returns an operation. An unknown ID is an ErrNotFound.
	Operation(ctx context.Context, id sluice.ID) (Operation, error)
	// Operations lists operations, the newest first.
	Operations(ctx context.Context, filter Filter) ([]Operation, error)
}

// Given returns the port of a store, through decorators too. For nil, every method of the returned Store returns a
// [sluice.ErrInvalid]. For a store without operations, every method returns a [sluice.ErrNotFound].
func Given(store sluice.Store) Store {
	port, err := feature.Port[Store](store, "keeps no operations")
	if err != nil {
		return missing{err}
	}
	return port
}

// missing is the port of a store without operations. Every method returns the reason.
type missing struct{ err error }

func (m missing) SaveOperation(context.Context, Operation, sluice.Act) (Operation, error) {
	return Operation{}, m.err
}

func (m missing) Operation(context.Context, sluice.ID) (Operation, error) { return Operation{}, m.err }

func (m missing) Operations(context.Context, Filter) ([]Operation, error) { return nil, m.err }
