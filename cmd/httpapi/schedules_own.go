package httpapi

import (
	"context"
	"errors"
	"slices"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/schedule"
)

// schedule reads a schedule that the caller knows.
func (c *call) schedule(ctx context.Context, name string) (schedule.Schedule, error) {
	s, err := schedule.Read(ctx, c.api.store, name)
	if err == nil && !c.mayDefine(s.Definition) {
		return schedule.Schedule{}, sluice.ErrNotFound
	}
	return s, err
}

// mayDefine reports whether the jobs of a definition are within the bounds of the caller.
func (c *call) mayDefine(d schedule.Definition) bool { return c.caller.Job(d.Queue, d.Tenant) }

// foreignSchedule refuses a schedule outside of the caller's bounds.
func foreignSchedule() *Problem {
	return outOfBounds("the token is bounded to other queues or tenants, or the name is taken")
}

// shown removes payloads from a schedule, unless the caller may read them, and what is outside of the caller's bounds: a declaration,
// and the jobs of fires before the last change, which may be in another queue.
func (c *call) shown(s schedule.Schedule) schedule.Schedule {
	if s.Declared != nil && !c.mayDefine(*s.Declared) {
		s.Declared = nil
	}
	if !c.caller.None() {
		s.Progress.Recent = slices.Clone(s.Progress.Recent)
		for i, fire := range s.Progress.Recent {
			foreign := fire.Result == schedule.Duplicate && len(c.caller.Tenants) > 0 // another tenant's job may hold the key
			if foreign || !fire.At.After(s.ChangedAt) {
				s.Progress.Recent[i] = schedule.Fire{At: fire.At, Result: fire.Result}
			}
		}
	}
	if !c.reads() {
		s.Payload = nil
		if s.Declared != nil {
			declared := *s.Declared
			declared.Payload, s.Declared = nil, &declared
		}
	}
	return s
}

// knownFires removes from fires the jobs outside of the caller's bounds, and those that are not in the store any more. It reads them
// only for a caller with bounds.
func (c *call) knownFires(ctx context.Context, fires []schedule.Fire) error {
	if c.caller.None() {
		return nil
	}
	for i := range fires {
		fire := &fires[i]
		if fire.Job.IsZero() {
			continue
		}
		switch _, err := c.job(ctx, fire.Job); {
		case errors.Is(err, sluice.ErrNotFound):
			*fire = schedule.Fire{At: fire.At, Result: fire.Result}
		case err != nil:
			return err
		}
	}
	return nil
}

// ownSchedules returns the store for changes of schedules. It refuses those that begin or end outside of the caller's bounds.
func (c *call) ownSchedules() sluice.Store {
	if c.caller.None() {
		return c.api.store
	}
	return ownSchedules{c.api.store, schedule.Given(c.api.store), c}
}

// ownSchedules is a store whose schedules stay within the bounds of a caller. A change reads and writes one version, so both
// checks are about the same change.
type ownSchedules struct {
	sluice.Store
	schedules
	c *call
}

// schedules gives the port another name than its method Schedule has.
type schedules = schedule.Store

// Admit makes no queue outside of the bounds.
func (o ownSchedules) Admit(ctx context.Context, queues []string, act sluice.Act) ([]error, error) {
	for _, queue := range queues {
		if !o.c.caller.Queue(queue) {
			return nil, foreignSchedule()
		}
	}
	return o.Store.Admit(ctx, queues, act)
}

// Schedule reads what a change begins with.
func (o ownSchedules) Schedule(ctx context.Context, name string) (schedule.Schedule, error) {
	s, err := o.schedules.Schedule(ctx, name)
	if err == nil && !o.c.mayDefine(s.Definition) {
		return schedule.Schedule{}, foreignSchedule()
	}
	return s, err
}

// SaveSchedule writes what a change ends with.
func (o ownSchedules) SaveSchedule(ctx context.Context, s schedule.Schedule, act sluice.Act) (schedule.Schedule, error) {
	if !o.c.mayDefine(s.Definition) {
		return schedule.Schedule{}, foreignSchedule()
	}
	return o.schedules.SaveSchedule(ctx, s, act)
}
