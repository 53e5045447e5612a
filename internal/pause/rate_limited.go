package pause

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/limit"
	"github.com/sluice-queue/sluice/tenancy"
)

// closeSlack is how much earlier a pause may end without a write that prolongs it. So a hundred handlers with the same
// answer write once.
const closeSlack = time.Second

// errPausedLonger says that a tenant is paused for longer already.
var errPausedLonger = errors.New("paused for longer")

// closeLimits closes the limits of a queue: for a job with a limit key, the key of those that are per key, if there are any.
// Closed is false if there was nothing to close.
func closeLimits(ctx context.Context, store sluice.Store, job sluice.Job, names []string, d time.Duration, act sluice.Act) (closed bool, err error) {
	if len(names) == 0 {
		return false, nil
	}
	found, err := limit.Given(store).Limits(ctx, names)
	if err != nil {
		return false, err
	}
	perKey := func(l limit.Limit) bool { return l.PerKey }
	byKey := job.LimitKey != "" && slices.ContainsFunc(found, perKey)
	for _, l := range found {
		if l.PerKey != byKey {
			continue
		}
		closed = true
		if byKey {
			err = limit.CloseKey(ctx, store, l.Name, job.LimitKey, d, act)
		} else {
			_, err = limit.Close(ctx, store, l.Name, d, act)
		}
		if err != nil && !errors.Is(err, sluice.ErrNotFound) {
			return closed, err
		}
	}
	return closed, nil
}

// server is a store behind a server, which knows the limits of tenants, and closes what a job shares.
type server interface {
	PausedTenants(ctx context.Context, queue string, tenants []string) (paused []string, err error)
	PauseShared(ctx context.Context, claim *sluice.Claim, d time.Duration, act sluice.Act) error
}

// Shared closes for a while what a rate-limited job shares with others: the limits of its queue, or without limits its
// tenant in the queue. What is closed for longer stays so. An act with an ID that is sent again closes nothing again.
func Shared(ctx context.Context, store sluice.Store, claim *sluice.Claim, settings sluice.Settings, d time.Duration, act sluice.Act) error {
	if act.ID.IsZero() {
		act.ID = sluice.NewID()
	}
	if other, is := sluice.StoreAs[server](store); is {
		return other.PauseShared(ctx, claim, d, act)
	}
	job := claim.Job
	closed, err := closeLimits(ctx, store, job, limit.Names(settings.Limits), d, act)
	if err != nil || closed || job.Tenant == "" {
		return err
	}
	now, err := store.Now(ctx)
	if err != nil {
		return err
	}
	of := tenancy.Limits{Queue: job.Queue, Tenant: job.Tenant}
	_, err = tenancy.ChangeLimits(ctx, store, of, act, func(l *tenancy.Limits) error {
		if l.PausedAt(now.Add(d - closeSlack)) {
			return errPausedLonger // also if somebody has paused it in this moment
		}
		l.Paused, l.PausedUntil = true, now.Add(d)
		return nil
	})
	if errors.Is(err, errPausedLonger) {
		return nil
	}
	return err
}
