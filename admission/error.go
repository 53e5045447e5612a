package admission

import (
	"fmt"

	"github.com/sluice-queue/sluice"
)

// MaxMaxQueues is the highest MaxQueues of a [Policy].
const MaxMaxQueues = 1_000_000

// UnknownQueueError says that the store refused a job because nobody has declared its queue; see [Policy].
// Nothing was stored. It is a [sluice.ErrNotFound].
type UnknownQueueError struct{ Queue string }

// Error names the queue, and the command that declares it.
func (e *UnknownQueueError) Error() string {
	return fmt.Sprintf("queue %q is not declared, and this store takes jobs for declared queues only; look at the name, or declare it with `sluice settings set %s lease=1m --reason …`", e.Queue, e.Queue)
}

// Is makes an UnknownQueueError a [sluice.ErrNotFound].
func (e *UnknownQueueError) Is(target error) bool { return target == sluice.ErrNotFound }

// QueueLimitError says that the store refused a new queue because it has as many queues as it may have; see package
// admission. Nothing was stored. It is a [sluice.ErrNotAllowed].
type QueueLimitError struct {
	// Queue is the name of the refused queue.
	Queue string
	// Stored is how many queues the store has, and MaxQueues how many it may have.
	Stored    int
	MaxQueues int
}

// Error returns both numbers, and the commands that make room.
func (e *QueueLimitError) Error() string {
	return fmt.Sprintf("queue %q is not made: the store has %d queues, and at most %d are allowed; delete some with `sluice queues rm`, or raise the bound with `sluice queues policy --max %d --reason …`",
		e.Queue, e.Stored, e.MaxQueues, min(2*max(e.MaxQueues, e.Stored), MaxMaxQueues))
}

// Is makes a QueueLimitError a [sluice.ErrNotAllowed].
func (e *QueueLimitError) Is(target error) bool { return target == sluice.ErrNotAllowed }
