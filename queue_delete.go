package sluice

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// QueueHoldsLimit is the highest count in [QueueHolds]: it means that many or more.
const QueueHoldsLimit = 1000

// ErrQueueGone: somebody deleted a queue after the client read its settings, and nothing was stored. A [Client]
// then makes the queue anew and sends the jobs again, 5 times in all.
var ErrQueueGone = errors.New("the queue was deleted meanwhile")

// QueueHolds counts what prevents the deletion of a queue. Each count is at most [QueueHoldsLimit].
type QueueHolds struct {
	// Unfinished counts jobs that wait, run, or are uncertain.
	Unfinished int
	// Finished counts jobs in the history. Upkeep deletes them as the keep_ settings of the queue say.
	Finished int
	// OpenRuns counts orphan runs: runs of cancelled jobs that go on at their engine; see engine.OrphanRun.
	OpenRuns int
	// Operations are the operations on jobs of the queue that are not done yet. Schedules are those that make jobs in
	// the queue, paused ones too.
	Operations []ID
	Schedules  []string
}

// Empty reports whether nothing prevents the deletion.
func (h QueueHolds) Empty() bool {
	return h.Unfinished == 0 && h.Finished == 0 && h.OpenRuns == 0 && len(h.Operations)+len(h.Schedules) == 0
}

// QueueNotEmptyError says why [Client.DeleteQueue] did not delete a queue. It is an [ErrNotAllowed].
type QueueNotEmptyError struct {
	Queue string
	Holds QueueHolds
}

// Error lists the remaining jobs, runs and operations, and says how to end each.
func (e *QueueNotEmptyError) Error() string {
	var parts []string
	add := func(n int, what, todo string) {
		if n > 0 {
			if n >= QueueHoldsLimit {
				what = "or more " + what
			}
			parts = append(parts, fmt.Sprintf("%d %s (%s)", n, what, fmt.Sprintf(todo, e.Queue)))
		}
	}
	add(e.Holds.Unfinished, "unfinished jobs", "wait for them, or `sluice cancel --queue %s`")
	add(e.Holds.Finished, "finished jobs", "upkeep deletes them in time; `sluice settings set %s keep_completed=…` makes that sooner")
	add(e.Holds.OpenRuns, "open runs of cancelled jobs", "`sluice runs %s` lists them")
	for _, id := range e.Holds.Operations {
		parts = append(parts, fmt.Sprintf("the operation %s (`sluice operations stop %s`)", id, id))
	}
	if all := e.Holds.Schedules; len(all) > 0 {
		add(len(all), fmt.Sprintf("schedules such as %s", all[0]), "`sluice schedules ls --queue %s`, then `delete` them or `set` another queue")
	}
	return fmt.Sprintf("queue %q is not empty: it holds %s", e.Queue, strings.Join(parts, ", "))
}

// Is makes a QueueNotEmptyError an [ErrNotAllowed].
func (e *QueueNotEmptyError) Is(target error) bool { return target == ErrNotAllowed }

// DeleteQueue deletes an empty queue. It deletes the settings and scheduled changes, the limits of tenants and
// tiers in the queue, its alert rules, and its counts. The act needs a reason.
//
// If the queue holds anything, the error is a [*QueueNotEmptyError]. An unknown queue is an [ErrNotFound].
//
// The audit, the statistics, the grants of SQL roles and the keys with the scope [ForEver] or [ForWindow] stay.
// They apply again if the queue is made anew. The next job that names the queue makes it, with the settings of its
// group or the defaults.
func (c *Client) DeleteQueue(ctx context.Context, name string, act Act) error {
	if err := act.Check(); err != nil {
		return err
	}
	if act.Reason == "" {
		return invalid("reason", "deleting a queue needs a reason; the audit keeps it")
	}
	if err := CheckQueueName(name); err != nil && !IsGroup(name) {
		return err
	}
	if err := c.store.DeleteQueue(ctx, name, act); err != nil {
		return fmt.Errorf("delete queue %q: %w", name, err)
	}
	c.settings.Forget()
	return nil
}
