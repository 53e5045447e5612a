package observe

import (
	"context"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/schedule"
)

func (s *store) Schedule(ctx context.Context, name string) (schedule.Schedule, error) {
	return do(ctx, s, "schedule", "", func(ctx context.Context) (schedule.Schedule, error) { return s.schedules.Schedule(ctx, name) })
}

func (s *store) Schedules(ctx context.Context, filter schedule.Filter) ([]schedule.Schedule, error) {
	return do(ctx, s, "schedules", filter.Queue, func(ctx context.Context) ([]schedule.Schedule, error) { return s.schedules.Schedules(ctx, filter) })
}

func (s *store) SaveSchedule(ctx context.Context, one schedule.Schedule, act sluice.Act) (schedule.Schedule, error) {
	return do(ctx, s, "save_schedule", one.Queue, func(ctx context.Context) (schedule.Schedule, error) {
		return s.schedules.SaveSchedule(ctx, one, act)
	})
}

func (s *store) DeleteSchedule(ctx context.Context, name string, act sluice.Act) error {
	_, err := do(ctx, s, "delete_schedule", "", func(ctx context.Context) (none, error) {
		return none{}, s.schedules.DeleteSchedule(ctx, name, act)
	})
	return err
}

func (s *store) FireSchedules(ctx context.Context, limit int, checker sluice.PayloadChecker) (schedule.Fired, error) {
	c := &Call{Kind: KindStore, Name: "fire_schedules"}
	return observed(ctx, s.observers, c, func(ctx context.Context) (schedule.Fired, error) {
		fired, err := s.schedules.FireSchedules(ctx, limit, checker)
		c.Jobs = fired.Jobs
		return fired, err
	})
}

func (s *store) FireSchedule(ctx context.Context, name string, instants []time.Time, act sluice.Act, checker sluice.PayloadChecker) ([]schedule.Fire, error) {
	c := &Call{Kind: KindStore, Name: "fire_schedule"}
	return observed(ctx, s.observers, c, func(ctx context.Context) ([]schedule.Fire, error) {
		fires, err := s.schedules.FireSchedule(ctx, name, instants, act, checker)
		c.Jobs = len(fires)
		return fires, err
	})
}
