package service

import (
	"context"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/engine/temporal"
)

// dispatch hands due jobs to Temporal until ctx ends: at the beat of Temporal Schedules, as the source design does, or of
// Sluice's own.
func (s *Service) dispatch(ctx context.Context) error {
	if !s.options.BySchedule {
		return s.dispatcher.Run(ctx)
	}
	queues := make([]string, len(s.Domains))
	for i, d := range s.Domains {
		queues[i] = d.Queue
	}
	settings := sluice.NewLiveSettings(s.Books.Store, sluice.LiveOptions{Logger: s.options.Logger})
	return s.engine.RunSchedules(ctx, temporal.Schedules{
		Queues: queues, TaskQueue: "dispatch-task-queue", Workflows: 5, Activities: 10,
		Interval: func(ctx context.Context, queue string) (time.Duration, error) {
			q, err := settings.Queue(ctx, queue)
			return q.Settings.Interval, err
		},
		Cycle:  func(ctx context.Context, queue string) (any, error) { return s.dispatcher.Once(ctx, queue) },
		Failed: func(err error) { s.options.Logger.Error("schedules not kept up to date", "error", err) },
	})
}
