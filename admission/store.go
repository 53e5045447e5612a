package admission

import (
	"context"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/feature"
)

// Store is the port of the policy: SQLite, PostgreSQL and memory implement it beside their sluice.Store.
type Store interface {
	// QueuePolicy reads the policy, and counts the stored queues.
	QueuePolicy(ctx context.Context) (Policy, error)
	// SaveQueuePolicy stores the policy, by the rule of SaveQueue of [sluice.Store].
	SaveQueuePolicy(ctx context.Context, policy Policy, act sluice.Act) (Policy, error)
}

// Given returns the port of a store, or of the store that it decorates. If the store has none, every method of the
// returned Store returns the reason: a [sluice.ErrInvalid] for nil, a [sluice.ErrNotFound] otherwise.
func Given(store sluice.Store) Store {
	port, err := feature.Port[Store](store, "has no policy of queues")
	if err != nil {
		return missing{err}
	}
	return port
}

// missing is the port of a store that has none.
type missing struct{ err error }

func (m missing) QueuePolicy(context.Context) (Policy, error) { return Policy{}, m.err }

func (m missing) SaveQueuePolicy(context.Context, Policy, sluice.Act) (Policy, error) {
	return Policy{}, m.err
}
