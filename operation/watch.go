package operation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-queue/sluice"
)

// The bounds of watching.
const (
	watchLooks  = 50  // jobs that watch looks up at once
	watchedLast = 100 // how many verdicts count
	watchedLess = 10  // fewer verdicts have no effect, except for the canary
)

// watch looks up some of the requeued jobs, once a second, and notes how they ended.
func watch(ctx context.Context, store sluice.Store, o *Operation) error {
	if len(o.course.Watched) == 0 || !o.lookedAt.IsZero() && time.Since(o.lookedAt) < restTime {
		return nil
	}
	o.lookedAt = time.Now()
	n := min(len(o.course.Watched), watchLooks)
	looked, rest := o.course.Watched[:n], slices.Clone(o.course.Watched[n:])
	verdicts := o.course.Verdicts
	ended, failed := 0, 0
	for _, id := range looked {
		job, err := store.Job(ctx, id)
		switch {
		case errors.Is(err, sluice.ErrNotFound): // completed or cancelled, and not kept
			ended, verdicts = ended+1, verdicts+"."
		case err != nil:
			return fmt.Errorf("watch a job of operation %s: %w", o.ID, err)
		case job.State == sluice.StateDead, job.State == sluice.StateUncertain:
			ended, failed, verdicts = ended+1, failed+1, verdicts+"x"
		case job.State.Finished():
			ended, verdicts = ended+1, verdicts+"."
		default:
			rest = append(rest, id)
		}
	}
	o.course.Watched, o.Watching = rest, len(rest)
	o.WatchedEnded, o.WatchedFailed = o.WatchedEnded+ended, o.WatchedFailed+failed
	o.course.Verdicts = verdicts[max(0, len(verdicts)-max(watchedLast, o.Canary)):]
	return nil
}

// judge stops the operation if too many watched jobs failed again, and ends the canary when each job of it has
// ended.
func (o *Operation) judge() {
	if o.StopIfFailed <= 0 {
		return
	}
	failed := strings.Count(o.course.Verdicts, "x")
	if o.OnProbation() {
		size := o.Canary
		if o.full() || o.course.Place.End && len(o.course.Found) == 0 {
			size = min(size, o.watched()) // there are no more
		}
		switch {
		case tooMany(failed, size, o.StopIfFailed):
			o.stop(failed, fmt.Sprintf("of the %d of the canary", size))
		case o.watched() >= size && len(o.course.Watched) == 0:
			o.course.Proved = true
		}
		return
	}
	if ended := len(o.course.Verdicts); ended >= watchedLess && tooMany(failed, ended, o.StopIfFailed) {
		o.stop(failed, fmt.Sprintf("of the last %d that were watched", ended))
	}
}

// watched counts all jobs that the operation has watched.
func (o *Operation) watched() int { return o.WatchedEnded + len(o.course.Watched) }

// tooMany reports whether more than a share of jobs failed.
func tooMany(failed, of int, share float64) bool {
	return failed > 0 && float64(failed) > share*float64(of)+1e-9
}

// stop stops the operation because too many jobs failed again.
func (o *Operation) stop(failed int, of string) {
	o.State = StateStopped
	o.Why = fmt.Sprintf("%d %s failed again, more than %s %%", failed, of, trimFloat(100*o.StopIfFailed))
}

func trimFloat(f float64) string { return strconv.FormatFloat(f, 'g', 6, 64) }
