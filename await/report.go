package await

import (
	"context"
	"slices"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/progress"
)

// lookForReports tells the callers who follow jobs how far these have come.
func (w *watcher) lookForReports(ctx context.Context, now time.Time) {
	ids, due := w.toFollow(now)
	if !due {
		return
	}
	for some := range slices.Chunk(ids, lookAtOnce) {
		reports, err := w.past.Progress(ctx, some)
		if ctx.Err() != nil {
			return
		}
		if err != nil { // the next look tries again; the end of the job matters more
			break
		}
		w.report(reports)
	}
	w.follow = time.Now().Add(max(followInterval, lookShare*time.Since(now)))
}

// toFollow returns the jobs that somebody follows, if a look at their reports is due.
func (w *watcher) toFollow(now time.Time) (ids []sluice.ID, due bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.followed == 0 || now.Before(w.follow) {
		return nil, false
	}
	for id, one := range w.waiting {
		if len(one.reports) > 0 {
			ids = append(ids, id)
		}
	}
	return ids, true
}

// report gives new reports to those who follow the jobs. A caller who has not taken the report before gets the new one only.
func (w *watcher) report(reports []progress.Report) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range reports {
		one := w.waiting[r.JobID]
		if one == nil || r.At.Equal(one.told) {
			continue
		}
		one.told = r.At
		for _, to := range one.reports {
			select {
			case <-to:
			default:
			}
			to <- r
		}
	}
}
