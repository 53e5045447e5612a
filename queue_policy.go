package sluice

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

const (
	// DefaultMaxQueues is how many queues a store takes unless somebody changes that.
	DefaultMaxQueues = 10_000
	// MaxMaxQueues is the highest bound that can be set.
	MaxMaxQueues = 1_000_000
)

// QueuePolicy says which new queues a store takes. It counts for all processes from the next new queue on; queues that are
// stored stay as they are.
type QueuePolicy struct {
	// MaxQueues is how many queues may be stored, 1 to MaxMaxQueues. Default: DefaultMaxQueues. If more are stored already,
	// they stay, and no new one is made.
	MaxQueues int
	// Declared says that a job makes no queue: somebody must declare it first, by its settings. Default: the first job that
	// names a queue makes it, with the default settings.
	Declared bool
	// Version counts the changes; 0: nobody has changed anything.
	Version int64
	// ChangedAt, ChangedBy and Reason tell of the last change.
	ChangedAt time.Time
	ChangedBy string
	Reason    string
	// Stored is how many queues there were when the policy was read. Stores fill it in.
	Stored int
}

// DefaultQueuePolicy is the policy of a store in which nobody has changed it.
func DefaultQueuePolicy() QueuePolicy { return QueuePolicy{MaxQueues: DefaultMaxQueues} }

// Check says which rule a policy breaks, as an ErrInvalid.
func (p QueuePolicy) Check() error {
	if p.MaxQueues < 1 || p.MaxQueues > MaxMaxQueues {
		return invalid("max_queues", fmt.Sprintf("%d must be from 1 to %d", p.MaxQueues, MaxMaxQueues))
	}
	return nil
}

// Used is the share of MaxQueues that is stored: 0.8 is 80 %.
func (p QueuePolicy) Used() float64 { return float64(p.Stored) / float64(max(p.MaxQueues, 1)) }

// Admit says why a queue that is not stored may not be made: it is a *QueueLimitError, or an *UnknownQueueError where
// nobody has declared the queue. Stores call it with the policy and the count of the transaction that makes the queue.
func (p QueuePolicy) Admit(queue string, undeclared bool) error {
	switch {
	case undeclared && p.Declared:
		return &UnknownQueueError{Queue: queue}
	case p.Stored >= p.MaxQueues:
		return &QueueLimitError{Queue: queue, Stored: p.Stored, MaxQueues: p.MaxQueues}
	}
	return nil
}

// AdmitAll says of each of some queues why a job may not name it, and which of them are to be made, by name. Stored are
// those that are there.
func (p QueuePolicy) AdmitAll(queues, stored []string) (refused []error, fresh []string) {
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

// ForAudit is what the audit keeps of a policy before and after a change.
func (p QueuePolicy) ForAudit() json.RawMessage {
	return json.RawMessage(fmt.Sprintf(`{"declared": %t, "max_queues": %d}`, p.Declared, p.MaxQueues))
}

// UnknownQueueError says that a job was refused because nobody has declared its queue, and the store takes no others; see
// QueuePolicy. Nothing was stored. It is an ErrNotFound.
type UnknownQueueError struct{ Queue string }

// Error names the queue, and the command that declares it.
func (e *UnknownQueueError) Error() string {
	return fmt.Sprintf("queue %q is not declared, and this store takes jobs for declared queues only; look at the name, or declare it with «sluice settings set %s lease=1m --reason …»", e.Queue, e.Queue)
}

// Is makes an UnknownQueueError an ErrNotFound.
func (e *UnknownQueueError) Is(target error) bool { return target == ErrNotFound }

// QueueLimitError says that a queue was not made because the store has as many as it may; see QueuePolicy. Nothing was
// stored. It is an ErrNotAllowed.
type QueueLimitError struct {
	Queue string
	// Stored is how many queues there are, MaxQueues how many there may be.
	Stored    int
	MaxQueues int
}

// Error says how many queues there are and may be, and which commands make room.
func (e *QueueLimitError) Error() string {
	return fmt.Sprintf("queue %q is not made: the store has %d queues, and at most %d are allowed; delete some with «sluice queues rm», or raise the bound with «sluice queues policy --max %d --reason …»",
		e.Queue, e.Stored, e.MaxQueues, min(2*max(e.MaxQueues, e.Stored), MaxMaxQueues))
}

// Is makes a QueueLimitError an ErrNotAllowed.
func (e *QueueLimitError) Is(target error) bool { return target == ErrNotAllowed }

// QueuePolicy reads which new queues the store takes, and how many queues it has.
func (c *Client) QueuePolicy(ctx context.Context) (QueuePolicy, error) {
	return c.store.QueuePolicy(ctx)
}

// SaveQueuePolicy changes which new queues the store takes. The policy is one that was read before: if somebody else has
// changed it since, it is an ErrConflict. It needs a reason.
func (c *Client) SaveQueuePolicy(ctx context.Context, policy QueuePolicy, act Act) (QueuePolicy, error) {
	if err := act.Check(); err != nil {
		return QueuePolicy{}, err
	}
	if act.Reason == "" {
		return QueuePolicy{}, invalid("reason", "a change of the policy of queues needs one; it is kept in the audit")
	}
	if err := policy.Check(); err != nil {
		return QueuePolicy{}, err
	}
	saved, err := c.store.SaveQueuePolicy(ctx, policy, act)
	if err != nil {
		return QueuePolicy{}, fmt.Errorf("save policy of queues: %w", err)
	}
	c.fresh.forget()
	return saved, nil
}
