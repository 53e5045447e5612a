package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/limit"
	"github.com/sluice-queue/sluice/tenancy"
)

// RateLimited says that a service refuses more calls for d, such as by HTTP 429 with Retry-After. The job goes back for d
// and no attempt is counted, as by [Snooze]. Until then, no process claims the jobs that would meet the same answer:
//
//   - of a job with a limit key, in a queue that shares limits per key, the worker closes this key of them
//   - of another job in a queue that shares limits, the worker closes those that are not per key
//   - of another queue, the worker pauses the tenant of the job in this queue
//   - of another queue and a job without a tenant, only the job waits
//
// A limit or tenant that is closed for longer stays so. If d is 0 or less, RateLimited is Snooze.
func RateLimited(d time.Duration) error { return &rateLimited{snooze{max(d, 0)}} }

type rateLimited struct{ snooze }

func (r *rateLimited) Error() string { return fmt.Sprintf("rate limited for %s", r.delay) }
func (r *rateLimited) Unwrap() error { return &r.snooze }

const (
	// closeTime is how long the worker tries to close the limits of a job.
	closeTime = 10 * time.Second
	// closeSlack is how much earlier a pause may end without a write that prolongs it. So a hundred handlers with the same
	// answer write once.
	closeSlack = time.Second
)

// closeShared closes for a while what a rate-limited job shares with other jobs, and returns the reason of its release. The
// job waits also if the store cannot be reached.
func (w *Worker) closeShared(ctx context.Context, r *run, err error) (reason string) {
	var limited *rateLimited
	if !errors.As(err, &limited) || limited.delay == 0 {
		return ""
	}
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), closeTime)
	defer stop()
	act := sluice.Act{By: w.holder.ID, Reason: fmt.Sprintf("job %s was rate limited for %s", r.claim.ID, limited.delay)}
	if err := closeFor(ctx, w.store, r.claim, limit.Names(r.queue.Settings.Limits), limited.delay, act); err != nil {
		return fmt.Sprintf("rate limited; only this job waits: %s", sluice.Brief(textOf(err)))
	}
	return "rate limited"
}

// closeLimits closes the limits of a queue: for a job with a limit key, the key of those that are per key, if there are any.
// Closed is false if there was nothing to close.
func closeLimits(ctx context.Context, store sluice.Store, c *sluice.Claim, names []string, d time.Duration, act sluice.Act) (closed bool, err error) {
	if len(names) == 0 {
		return false, nil
	}
	found, err := limit.Given(store).Limits(ctx, names)
	if err != nil {
		return false, err
	}
	perKey := func(l limit.Limit) bool { return l.PerKey }
	byKey := c.LimitKey != "" && slices.ContainsFunc(found, perKey)
	for _, l := range found {
		if l.PerKey != byKey {
			continue
		}
		act.ID, closed = sluice.NewID(), true
		if byKey {
			err = limit.CloseKey(ctx, store, l.Name, c.LimitKey, d, act)
		} else {
			_, err = limit.Close(ctx, store, l.Name, d, act)
		}
		if err != nil && !errors.Is(err, sluice.ErrNotFound) {
			return closed, err
		}
	}
	return closed, nil
}

// closeFor closes the limits of a queue, or pauses the tenant of a job in a queue without limits.
func closeFor(ctx context.Context, store sluice.Store, c *sluice.Claim, limits []string, d time.Duration, act sluice.Act) error {
	closed, err := closeLimits(ctx, store, c, limits, d, act)
	if err != nil || closed || c.Tenant == "" {
		return err
	}
	now, err := store.Now(ctx)
	if err != nil {
		return err
	}
	found, err := tenancy.LimitsOf(ctx, store, "", c.Tenant)
	if err != nil {
		return err
	}
	for _, l := range found {
		if l.Queue == c.Queue && l.PausedAt(now.Add(d-closeSlack)) {
			return nil
		}
	}
	act.ID = sluice.NewID()
	_, err = tenancy.Pause(ctx, store, c.Queue, c.Tenant, d, act)
	return err
}
