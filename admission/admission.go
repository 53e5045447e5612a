// Package admission decides which new queues a store makes: how many, and whether somebody must declare them first.
//
// Begin with [Of] and [Save]. [Store] is the port that SQLite, PostgreSQL and memory implement.
package admission

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/feature"
)

// DefaultMaxQueues is the default of MaxQueues.
const DefaultMaxQueues = 10_000

// Policy decides which new queues a store makes. It applies to all processes from the next new queue on. Stored queues stay as
// they are.
type Policy struct {
	// MaxQueues is the most queues that the store keeps, 1 to [MaxMaxQueues]. Default: DefaultMaxQueues. If the store has
	// more already, they stay, and it makes no new one.
	MaxQueues int
	// Declared says that somebody must declare a queue by its settings before its first job. Default: the first job makes the
	// queue, with the default settings.
	Declared bool
	// Version counts the changes. 0: nobody has changed the policy.
	Version int64
	// ChangedAt, ChangedBy and Reason describe the last change.
	ChangedAt time.Time
	ChangedBy string
	Reason    string
	// Stored is how many queues the store had when it read the policy. Stores fill it in.
	Stored int
}

// DefaultPolicy returns the policy of a store in which nobody has changed it.
func DefaultPolicy() Policy { return Policy{MaxQueues: DefaultMaxQueues} }

// Check returns the rule that a policy breaks, as a [sluice.ErrInvalid].
func (p Policy) Check() error {
	if p.MaxQueues < 1 || p.MaxQueues > MaxMaxQueues {
		return feature.Invalid("max_queues", fmt.Sprintf("%d must be from 1 to %d", p.MaxQueues, MaxMaxQueues))
	}
	return nil
}

// Used returns Stored as a share of MaxQueues: 0.8 is 80 %.
func (p Policy) Used() float64 { return float64(p.Stored) / float64(max(p.MaxQueues, 1)) }

// Admit returns why the store must not make a queue: a [*QueueLimitError], or a [*UnknownQueueError] if nobody has
// declared the queue. Stores call it with the policy and the count of the transaction that makes the queue.
func (p Policy) Admit(queue string, undeclared bool) error {
	switch {
	case undeclared && p.Declared:
		return &UnknownQueueError{Queue: queue}
	case p.Stored >= p.MaxQueues:
		return &QueueLimitError{Queue: queue, Stored: p.Stored, MaxQueues: p.MaxQueues}
	}
	return nil
}

// AdmitAll returns, for each queue, why a job must not name it, and the queues to make, by name. Stored are the queues that the
// store has.
func (p Policy) AdmitAll(queues, stored []string) (refused []error, fresh []string) {
	refused = make([]error, len(queues))
	known := make(map[string]bool, len(stored))
	for _, name := range stored {
		known[name] = true
	}
	for i, name := range queues {
		if known[name] {
			continue
		}
		if refused[i] = p.Admit(name, true); refused[i] == nil {
			known[name], fresh = true, append(fresh, name)
			p.Stored++
		}
	}
	slices.Sort(fresh)
	return refused, fresh
}

// ForAudit returns the policy as the audit keeps it.
func (p Policy) ForAudit() json.RawMessage {
	return json.RawMessage(fmt.Sprintf(`{"declared": %t, "max_queues": %d}`, p.Declared, p.MaxQueues))
}

// Of reads which new queues the store makes, and how many queues it has.
func Of(ctx context.Context, store sluice.Store) (Policy, error) {
	return Given(store).QueuePolicy(ctx)
}

// Save changes which new queues the store makes. The policy is one that Of returned; if somebody has changed it since, the
// error is an [ErrConflict]. The act needs a reason.
func Save(ctx context.Context, store sluice.Store, policy Policy, act sluice.Act) (Policy, error) {
	if err := act.Check(); err != nil {
		return Policy{}, err
	}
	if act.Reason == "" {
		return Policy{}, feature.Invalid("reason", "a change of the policy needs a reason; the audit keeps it")
	}
	if err := policy.Check(); err != nil {
		return Policy{}, err
	}
	saved, err := Given(store).SaveQueuePolicy(ctx, policy, act)
	if err != nil {
		return Policy{}, fmt.Errorf("save policy of queues: %w", err)
	}
	return saved, nil
}
