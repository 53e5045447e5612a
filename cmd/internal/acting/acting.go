// Package acting holds acts on jobs that the command line and the HTTP API share.
package acting

import (
	"context"
	"errors"

	"github.com/sluice-queue/sluice"
)

// Retry makes waiting jobs due now, and requeues finished ones. The jobs that are neither are in a [*sluice.BatchError]. Both are one act: a
// retry that is sent again makes no job due that the first one requeued.
func Retry(ctx context.Context, client *sluice.Client, ids []sluice.ID, act sluice.Act) error {
	err := client.RunNow(ctx, ids, act)
	var batch *sluice.BatchError
	if !errors.As(err, &batch) {
		return err
	}
	var finished []sluice.ID
	var places []int
	for i, id := range ids {
		if errors.Is(batch.Failed[i], sluice.ErrNotAllowed) {
			finished = append(finished, id)
			places = append(places, i)
			delete(batch.Failed, i)
		}
	}
	if len(finished) > 0 {
		if err = client.Requeue(ctx, finished, act); err != nil {
			var again *sluice.BatchError
			if !errors.As(err, &again) {
				return err
			}
			for k, failed := range again.Failed {
				batch.Failed[places[k]] = failed
			}
		}
	}
	if len(batch.Failed) == 0 {
		return nil
	}
	return batch
}
