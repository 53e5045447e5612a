package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/pause"
)

// RateLimited says that a service refuses more calls for d, such as by HTTP 429 with Retry-After. The job goes back for d
// and no attempt is counted, as by [Snooze]. Until then, no process claims the jobs that would meet the same answer:
//
//   - If the job has a limit key, and its queue shares limits per key, the worker closes the key in these limits.
//   - Otherwise, if the queue shares limits that are not per key, the worker closes these limits.
//   - Otherwise, if the job has a tenant, the worker pauses the tenant in the queue.
//   - Otherwise, only the job waits.
//
// RateLimited never shortens a longer closure or pause. If d is 0 or less, RateLimited is Snooze.
func RateLimited(d time.Duration) error { return &rateLimited{snooze{max(d, 0)}} }

type rateLimited struct{ snooze }

func (r *rateLimited) Error() string { return fmt.Sprintf("rate limited for %s", r.delay) }
func (r *rateLimited) Unwrap() error { return &r.snooze }

// closeTime is how long the worker tries to close the limits of a job.
const closeTime = 10 * time.Second

// closeShared closes the limits, or pauses the tenant, of a rate-limited job, as [RateLimited] says. The result is the
// reason of the job's release; empty: the job is not rate-limited. If the store cannot be reached, only the job waits.
func (w *Worker) closeShared(ctx context.Context, r *run, err error) (reason string) {
	var limited *rateLimited
	if !errors.As(err, &limited) || limited.delay == 0 {
		return ""
	}
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
	defer stop()
	act := sluice.Act{By: w.holder.ID, Reason: fmt.Sprintf("job %s was rate limited for %s", r.claim.ID, limited.delay)}
	if err := pause.Shared(ctx, w.store, r.claim, r.queue.Settings, limited.delay, act); err != nil {
		return fmt.Sprintf("rate limited; only this job waits: %s", sluice.Brief(textOf(err)))
	}
	return "rate limited"
}
