package cell

import (
	"context"
	"fmt"
	"time"

	"github.com/sluice-queue/sluice"
	group "github.com/sluice-queue/sluice/batch"
)

// callbacks is the queue of a batch's callback. Nobody works on it.
const callbacks = "callbacks"

// openGroup opens the batch of a Grouped cell.
func (q *sluiceQueue) openGroup(ctx context.Context) error {
	if !q.task.Grouped {
		return nil
	}
	b, err := group.Open(ctx, q.store, group.Batch{Callbacks: group.Callbacks{OnComplete: &group.Callback{Queue: callbacks}}}, sluice.Act{By: "bench"})
	q.group = b.ID
	return err
}

// checkGroup closes the batch after the work, so that its callback is no unfinished job before, and waits for its end. It makes sure
// that the counts are exact and the callback is stored once.
func (q *sluiceQueue) checkGroup(ctx context.Context) error {
	if q.group.IsZero() || q.quit == nil {
		return nil
	}
	limited, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := group.Close(ctx, q.store, q.group, sluice.Act{By: "bench"}); err != nil {
		return err
	}
	var b group.Batch
	err := waitUntil(limited, func() (done bool, err error) {
		b, err = group.Read(ctx, q.store, q.group)
		return !b.SucceededAt.IsZero(), err
	})
	if err != nil {
		return fmt.Errorf("the batch is %+v: %w", b.Counts, err)
	}
	depth, err := q.store.Depth(ctx, callbacks, 10)
	if err == nil && (b.Total != q.task.Jobs || b.Completed != q.task.Jobs || depth.Ready != 1) {
		err = fmt.Errorf("the batch has %+v of %d jobs, and %d callbacks", b.Counts, q.task.Jobs, depth.Ready)
	}
	return err
}
