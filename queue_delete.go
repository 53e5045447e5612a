package sluice

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// QueueHoldsLimit is how far DeleteQueue counts what a queue still holds.
const QueueHoldsLimit = 1000

// ErrQueueGone: a queue was deleted since its settings were read; nothing was stored. A Client reads the settings again,
// makes the queue anew, and stores the jobs then.
var ErrQueueGone = errors.New("the queue was deleted meanwhile")

// QueueHolds counts what keeps a queue from being deleted, each figure at most QueueHoldsLimit.
type QueueHolds struct {
	// Unfinished jobs wait or are in flight.
	Unfinished int
	// Finished jobs are in the history. Upkeep deletes them when the queue's keep_ settings say.
	Finished int
	// OpenRuns are runs of cancelled jobs that go on at their engine; see engine.OrphanRun.
	OpenRuns int
	// Operations are those that are not done yet, on jobs of the queue.
	Operations []ID
}

// Empty reports whether nothing keeps the queue from being deleted.
func (h QueueHolds) Empty() bool {
	return h.Unfinished == 0 && h.Finished == 0 && h.OpenRuns == 0 && len(h.Operations) == 0
}

// QueueNotEmptyError says why a queue was not deleted. It is an ErrNotAllowed.
type QueueNotEmptyError struct {
	Queue string
	Holds QueueHolds
}

// Error says what the queue still holds, and what to do with that.
func (e *QueueNotEmptyError) Error() string {
	var parts []string
	add := func(n int, what, todo string) {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%s %s (%s)", atMost(n), what, fmt.Sprintf(todo, e.Queue)))
		}
	}
	add(e.Holds.Unfinished, "unfinished jobs", "wait for them, or «sluice cancel --queue %s»")
	add(e.Holds.Finished, "finished jobs", "upkeep deletes them in time; «sluice settings set %s keep_completed=…» makes that sooner")
	add(e.Holds.OpenRuns, "open runs of cancelled jobs", "«sluice runs %s» lists them")
	for _, id := range e.Holds.Operations {
		parts = append(parts, fmt.Sprintf("the operation %s («sluice operations stop %s»)", id, id))
	}
	return fmt.Sprintf("queue %q is not empty: it holds %s", e.Queue, strings.Join(parts, ", "))
}

// Is makes a QueueNotEmptyError an ErrNotAllowed.
func (e *QueueNotEmptyError) Is(target error) bool { return target == ErrNotAllowed }

func atMost(n int) string {
	if n >= QueueHoldsLimit {
		return fmt.Sprintf("%d or more", QueueHoldsLimit)
	}
	return fmt.Sprint(n)
}

// DeleteQueue deletes an empty queue: its settings and plans, the limits of tenants and tiers in it, its rules of alerts
// and its counts. It needs a reason. A queue that holds anything is a *QueueNotEmptyError, an unknown one an ErrNotFound.
// The audit, the statistics, the grants of SQL roles and the keys that were taken for ever or for a window stay: they count
// again if the queue is made anew. The next job that names the queue makes it, with the default settings.
func (c *Client) DeleteQueue(ctx context.Context, name string, act Act) error {
	if err := act.Check(); err != nil {
		return err
	}
	if act.Reason == "" {
		return invalid("reason", "deleting a queue needs one; it is kept in the audit")
	}
	if err := CheckQueueName(name); err != nil {
		return err
	}
	if err := c.store.DeleteQueue(ctx, name, act); err != nil {
		return fmt.Errorf("delete queue %q: %w", name, err)
	}
	c.settings.Forget()
	return nil
}
