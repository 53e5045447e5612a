package safe

import (
	"context"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/schedule"
)

func (s store) Schedule(ctx context.Context, name string) (_ schedule.Schedule, err error) {
	defer s.caught(&err)
	return s.schedules.Schedule(ctx, name)
}

func (s store) Schedules(ctx context.Context, filter schedule.Filter) (_ []schedule.Schedule, err error) {
	defer s.caught(&err)
	return s.schedules.Schedules(ctx, filter)
}

func (s store) SaveSchedule(ctx context.Context, one schedule.Schedule, act sluice.Act) (_ schedule.Schedule, err error) {
	defer s.caught(&err)
	return s.schedules.SaveSchedule(ctx, one, act)
}

func (s store) DeleteSchedule(ctx context.Context, name string, act sluice.Act) (err error) {
	defer s.caught(&err)
	return s.schedules.DeleteSchedule(ctx, name, act)
}

func (s store) FireSchedules(ctx context.Context, limit int, checker sluice.PayloadChecker) (_ schedule.Fired, err error) {
	defer s.caught(&err)
	return s.schedules.FireSchedules(ctx, limit, checker)
}

func (s store) FireSchedule(ctx context.Context, name string, instants []time.Time, act sluice.Act, checker sluice.PayloadChecker) (_ []schedule.Fire, err error) {
	defer s.caught(&err)
	return s.schedules.FireSchedule(ctx, name, instants, act, checker)
}
