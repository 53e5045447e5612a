package alert

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/notify"
)

// forgetPage is how many jobs of a forgotten receiver go at once.
const forgetPage = 1000

// forgetReceivers empties and deletes the queues of receivers that the store has forgotten. It reads the receivers
// again after the queues, because a receiver may have come meanwhile.
func (w *Watcher) forgetReceivers(ctx context.Context, queues []sluice.Queue, known []ReceiverStatus) error {
	left := leftQueues(queues, known)
	if len(left) == 0 {
		return nil
	}
	book, err := w.alerts.AlertBook(ctx)
	if err != nil {
		return fmt.Errorf("read receivers: %w", err)
	}
	var failed []error
	for _, q := range leftQueues(left, book.Receivers) {
		if err := w.forgetQueue(ctx, q.Name); err != nil {
			failed = append(failed, fmt.Errorf("forget queue %q: %w", q.Name, err))
		}
	}
	return errors.Join(failed...)
}

// leftQueues returns the queues of unknown receivers.
func leftQueues(queues []sluice.Queue, known []ReceiverStatus) (left []sluice.Queue) {
	for _, q := range queues {
		if notify.IsQueue(q.Name) && !slices.ContainsFunc(known, func(r ReceiverStatus) bool { return r.Queue == q.Name }) {
			left = append(left, q)
		}
	}
	return left
}

// forgetQueue cancels the messages that wait in a queue, and deletes them and the queue. The queue stays until upkeep
// has pruned its delivered messages.
func (w *Watcher) forgetQueue(ctx context.Context, queue string) error {
	act := func() sluice.Act {
		return sluice.Act{By: w.options.Holder, Reason: "no process asks for the receiver any more", ID: sluice.NewID()}
	}
	waiting := []sluice.State{sluice.StateQueued, sluice.StateClaimed}
	if err := w.eachPage(ctx, queue, waiting, func(ids []sluice.ID) ([]error, error) { return w.store.Cancel(ctx, ids, act()) }); err != nil {
		return err
	}
	ended := []sluice.State{sluice.StateDead, sluice.StateCancelled}
	if err := w.eachPage(ctx, queue, ended, func(ids []sluice.ID) ([]error, error) { return w.store.DeleteJobs(ctx, ids, act()) }); err != nil {
		return err
	}
	err := w.store.DeleteQueue(ctx, queue, act())
	var holds *sluice.QueueNotEmptyError
	if errors.As(err, &holds) || errors.Is(err, sluice.ErrNotFound) {
		return nil
	}
	return err
}

// eachPage calls do with the jobs of a queue in some states, page by page. A job that has changed meanwhile is left for
// the next time.
func (w *Watcher) eachPage(ctx context.Context, queue string, states []sluice.State, do func([]sluice.ID) ([]error, error)) error {
	filter := sluice.JobFilter{Queue: queue, States: states, Limit: forgetPage}
	for {
		page, err := w.store.Jobs(ctx, filter)
		if err != nil {
			return err
		}
		ids := make([]sluice.ID, len(page.Jobs))
		for i, j := range page.Jobs {
			ids[i] = j.ID
		}
		if len(ids) > 0 {
			if _, err := do(ids); err != nil {
				return err
			}
		}
		if page.Cursor == "" {
			return nil
		}
		filter.Cursor = page.Cursor
	}
}
