package remote

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/feature"
	"github.com/sluice-queue/sluice/internal/wire"
	"github.com/sluice-queue/sluice/schedule"
)

// schedulePath is the path of a schedule.
func schedulePath(name, rest string) string { return "/schedules/" + url.PathEscape(name) + rest }

// Schedule returns a schedule, without its payload if the token may not read it.
func (s *Store) Schedule(ctx context.Context, name string) (schedule.Schedule, error) {
	var answer wire.ScheduleDetail
	err := s.call(ctx, request{verb: "read a schedule", path: schedulePath(name, ""), query: params{"next": {"0"}}.values(), out: &answer})
	answer.Schedule.Now = answer.Now
	return answer.Schedule, err
}

// Schedules lists schedules by name. A bounded token gets those within its bounds.
func (s *Store) Schedules(ctx context.Context, filter schedule.Filter) (all []schedule.Schedule, err error) {
	size, err := feature.PageSize(filter.Limit)
	if err != nil {
		return nil, err
	}
	q := params{}
	q.text("queue", filter.Queue)
	q.text("after", filter.After)
	for {
		q["limit"] = []string{strconv.Itoa(min(size-len(all), maxPage))}
		var answer wire.ScheduleList
		if err := s.call(ctx, request{verb: "list schedules", path: "/schedules", query: q.values(), out: &answer}); err != nil {
			return nil, err
		}
		for _, one := range answer.Schedules {
			one.Now = answer.Now
			all = append(all, one)
		}
		if answer.Next == "" || len(all) == size {
			return all, nil
		}
		q["after"] = []string{answer.Next}
	}
}

// SaveSchedule stores a schedule, but for its progress.
func (s *Store) SaveSchedule(ctx context.Context, one schedule.Schedule, act sluice.Act) (schedule.Schedule, error) {
	var answer wire.ScheduleDetail
	body := wire.SaveScheduleBody{Schedule: one, ReasonBody: why(act)}
	err := s.call(ctx, saving("save a schedule", schedulePath(one.Name, ""), &act, body, &answer))
	answer.Schedule.Now = answer.Now
	return answer.Schedule, err
}

// DeleteSchedule deletes a schedule.
func (s *Store) DeleteSchedule(ctx context.Context, name string, act sluice.Act) error {
	return s.call(ctx, deleting("delete a schedule", schedulePath(name, ""), &act))
}

// FireSchedule fires a schedule for instants, or now. The server checks the payloads.
func (s *Store) FireSchedule(ctx context.Context, name string, instants []time.Time, act sluice.Act, _ sluice.PayloadChecker) ([]schedule.Fire, error) {
	if act.ID.IsZero() {
		act.ID = sluice.NewID()
	}
	var answer wire.FireList
	err := s.call(ctx, request{
		verb: "fire a schedule", method: http.MethodPost, path: schedulePath(name, "/fire"), act: &act, out: &answer,
		body: asJSON(wire.FireBody{At: instants, ReasonBody: why(act)}),
	})
	return answer.Fires, err
}

// FireSchedules is an [*UnsupportedError]: the server does the upkeep.
func (s *Store) FireSchedules(context.Context, int, sluice.PayloadChecker) (schedule.Fired, error) {
	return schedule.Fired{}, s.theServer("To fire what is due")
}
