package upkeep

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/changes"
	"github.com/sluice-queue/sluice/internal/storing"
)

// tendSettings records settings that were changed by plain SQL in the audit, and applies the scheduled changes that are
// due by the store's clock. It returns the queues afterwards and the number of changes. Two upkeeps at the same time do
// no harm. Each scheduled change that cannot be applied is a [changes.Error] within the error.
func (u *Upkeep) tendSettings(ctx context.Context) (queues []sluice.Queue, done int, err error) {
	queues, err = u.client.Queues(ctx, sluice.QueueFilter{Groups: true})
	if err != nil {
		return nil, 0, fmt.Errorf("tend settings: %w", err)
	}
	var failed []error
	for i, q := range queues {
		tended, n, err := u.tendQueue(ctx, q)
		done += n
		if err == nil {
			queues[i] = tended
		}
		var plan *changes.Error
		switch {
		case err == nil, errors.Is(err, sluice.ErrConflict): // somebody else was quicker; the next look sees it
		case errors.As(err, &plan):
			failed = append(failed, err)
		default:
			failed = append(failed, fmt.Errorf("tend settings of queue %q: %w", q.Name, err))
		}
	}
	queues = slices.DeleteFunc(queues, func(q sluice.Queue) bool { return sluice.IsGroup(q.Name) })
	return queues, done, errors.Join(failed...)
}

func (u *Upkeep) tendQueue(ctx context.Context, q sluice.Queue) (tended sluice.Queue, done int, err error) {
	if q.Unrecorded() {
		told, err := u.store.RecordQueueChange(ctx, q, storing.SQLAct())
		if err != nil {
			return q, 0, err
		}
		told.Wrong = q.Wrong
		q, done = told, 1
	}
	tended, applied, err := changes.Apply(ctx, u.store, q, u.holder.ID)
	return tended, done + applied, err
}
