package service

import (
	"context"
	"errors"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/sluice-queue/sluice/apps/payments/domain"
	"github.com/sluice-queue/sluice/dispatcher"
)

// dispatchWork is the worker of the cycles that a schedule begins.
func (s *Service) dispatchWork() domain.Work {
	return domain.Work{
		Workflow: "DispatcherWorkflow", TaskQueue: "dispatch-task-queue", Workflows: 5, Activities: 10,
		Register: func(r domain.Registry) {
			r.RegisterWorkflowWithOptions(DispatcherWorkflow, workflow.RegisterOptions{Name: "DispatcherWorkflow"})
			r.RegisterActivityWithOptions(s.dispatcher.Once, activity.RegisterOptions{Name: "Dispatch"})
		},
	}
}

// DispatcherWorkflow is one cycle of a queue: what is due is claimed, and its workflows are started. No payload passes
// through its history. A cycle that fails is not repeated: the next one goes on.
func DispatcherWorkflow(ctx workflow.Context, queue string) (dispatcher.Cycle, error) {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: time.Minute, RetryPolicy: &temporal.RetryPolicy{MaximumAttempts: 1},
	})
	var done dispatcher.Cycle
	err := workflow.ExecuteActivity(ctx, "Dispatch", queue).Get(ctx, &done)
	return done, err
}

// installSchedules makes a schedule per domain that begins a cycle in each interval, and none while one is under way. A
// schedule that is there is left as it is.
func (s *Service) installSchedules(ctx context.Context) error {
	work := s.dispatchWork()
	for _, d := range s.Domains {
		_, err := s.Temporal.ScheduleClient().Create(ctx, client.ScheduleOptions{
			ID:      "dispatch-" + d.Queue,
			Spec:    client.ScheduleSpec{Intervals: []client.ScheduleIntervalSpec{{Every: d.Preset.Interval}}},
			Overlap: enumspb.SCHEDULE_OVERLAP_POLICY_SKIP,
			Action: &client.ScheduleWorkflowAction{
				ID: "dispatch-" + d.Queue, Workflow: work.Workflow, TaskQueue: work.TaskQueue, Args: []any{d.Queue},
			},
		})
		if err != nil && !errors.Is(err, temporal.ErrScheduleAlreadyRunning) {
			return fmt.Errorf("make the schedule of queue %q: %w", d.Queue, err)
		}
	}
	return nil
}
