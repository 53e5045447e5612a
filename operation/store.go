package operation

import (
	"context"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/feature"
)

// Store is the port of operations: SQLite, PostgreSQL and memory implement it beside their sluice.Store.
type Store interface {
	// SaveOperation stores an operation, by the rule of SaveQueue. The audit is told if its state or its terms have changed,
	// not of each step. The same act sent again gives what it stored before.
	SaveOperation(ctx context.Context, operation Operation, act sluice.Act) (Operation, error)
	// Operation looks an operation up. An unknown one is an ErrNotFound.
	Operation(ctx context.Context, id sluice.ID) (Operation, error)
	// Operations lists operations, the newest first.
	Operations(ctx context.Context, filter Filter) ([]Operation, error)
}

// Given returns the port of a store, also where decorators stand before it. Where there is none, every method of
// the returned Store gives the reason: a [sluice.ErrInvalid] for nil, a [sluice.ErrNotFound] for a store without operations.
func Given(store sluice.Store) Store {
	port, err := feature.Port[Store](store, "keeps no operations")
	if err != nil {
		return missing{err}
	}
	return port
}

// missing is the port of a store that has none: every method gives the reason.
type missing struct{ err error }

func (m missing) SaveOperation(context.Context, Operation, sluice.Act) (Operation, error) {
	return Operation{}, m.err
}

func (m missing) Operation(context.Context, sluice.ID) (Operation, error) { return Operation{}, m.err }

func (m missing) Operations(context.Context, Filter) ([]Operation, error) { return nil, m.err }
