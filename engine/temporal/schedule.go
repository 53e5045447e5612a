package temporal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/sluice-queue/sluice"
)

const (
	// DefaultCycleInterval is the time between cycles if the queue's settings have none.
	DefaultCycleInterval = 5 * time.Second
	// DefaultScheduleTaskQueue is the task queue of the cycles.
	DefaultScheduleTaskQueue = "sluice-dispatch"
	// DefaultCycleWorkflows is the most workflows of cycles that one process runs at once.
	DefaultCycleWorkflows = 5
	// DefaultCycleActivities is the most cycles that one process runs at once.
	DefaultCycleActivities = 10
	// cycleStop is how long a current cycle may go on when the process ends.
	cycleStop = 10 * time.Second
	// cycleType and cycleActivity name a cycle's workflow and its activity.
	cycleType     = "SluiceDispatch"
	cycleActivity = "SluiceDispatchCycle"
	// cycleTimeout ends a longer cycle; the next one goes on.
	cycleTimeout = 5 * time.Minute
	// scheduleLook is how often to check for changed intervals.
	scheduleLook = time.Second
)

// Schedules describes dispatch cycles that Temporal Schedules begin, instead of a loop in the process.
type Schedules struct {
	// Queues are the queues whose jobs are dispatched.
	Queues []string
	// Interval returns the current time between cycles of a queue; 0: 5 s. Temporal takes whole seconds only,
	// so Interval is rounded, to at least 1 s.
	Interval func(ctx context.Context, queue string) (time.Duration, error)
	// Cycle does one cycle of a queue. Its result is stored in the workflow's history, so it must hold no
	// payloads.
	Cycle func(ctx context.Context, queue string) (any, error)
	// TaskQueue is the task queue of the cycles, and the beginning of the ids of their schedules. Stores that share a
	// namespace need a task queue each: a process does the cycles of its task queue on its own store. Default:
	// sluice-dispatch.
	TaskQueue string
	// Workflows and Activities are the most workflows of cycles, and cycles, that this process runs at once.
	// Defaults: 5 and 10.
	Workflows, Activities int
	// Failed receives the errors of interval updates, which are retried. Default: errors are dropped.
	Failed func(err error)
}

// RunSchedules installs a Temporal Schedule for each queue, keeps its interval up to date, and runs its cycles.
// RunSchedules returns nil when ctx ends. Over all processes, no cycle of a queue begins while another is under
// way. The schedules remain after RunSchedules returns: their cycles wait for the next process. A schedule that exists
// for another task queue stays as it is, and RunSchedules returns a [sluice.ErrNotAllowed].
func (e *Engine) RunSchedules(ctx context.Context, s Schedules) error {
	if s.TaskQueue == "" {
		s.TaskQueue = DefaultScheduleTaskQueue
	}
	if s.Failed == nil {
		s.Failed = func(error) {}
	}
	missing, _ := e.client.(missingClient)
	if err := cmp.Or(missing.err, sluice.CheckGiven("interval", s.Interval), sluice.CheckGiven("cycle", s.Cycle)); err != nil {
		return fmt.Errorf("keep schedules: %w", err)
	}
	w := worker.New(e.client, s.TaskQueue, worker.Options{
		MaxConcurrentWorkflowTaskExecutionSize: cmp.Or(s.Workflows, DefaultCycleWorkflows),
		MaxConcurrentActivityExecutionSize:     cmp.Or(s.Activities, DefaultCycleActivities),
		WorkerStopTimeout:                      cycleStop,
	})
	w.RegisterWorkflowWithOptions(cycleWorkflow, workflow.RegisterOptions{Name: cycleType})
	w.RegisterActivityWithOptions(s.Cycle, activity.RegisterOptions{Name: cycleActivity})
	known := make(map[string]time.Duration)
	if err := e.keepSchedules(ctx, s, known); err != nil {
		return err
	}
	if err := w.Start(); err != nil {
		return fmt.Errorf("do the cycles of task queue %q: %w", s.TaskQueue, err)
	}
	defer w.Stop()
	ticker := time.NewTicker(scheduleLook)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			if err := e.keepSchedules(ctx, s, known); err != nil && ctx.Err() == nil {
				s.Failed(err)
			}
		}
	}
}

// cycleWorkflow is one cycle of a queue. A failed cycle is not repeated: the next one goes on.
func cycleWorkflow(ctx workflow.Context, queue string) error {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: cycleTimeout, RetryPolicy: &temporal.RetryPolicy{MaximumAttempts: 1},
	})
	return workflow.ExecuteActivity(ctx, cycleActivity, queue).Get(ctx, nil)
}

// keepSchedules gives each queue a schedule with the interval from its current settings.
func (e *Engine) keepSchedules(ctx context.Context, s Schedules, known map[string]time.Duration) error {
	for _, queue := range s.Queues {
		every, err := s.Interval(ctx, queue)
		if err != nil {
			return fmt.Errorf("interval of queue %q: %w", queue, err)
		}
		if every > 0 {
			every = max(every.Round(time.Second), time.Second)
		} else {
			every = DefaultCycleInterval
		}
		if known[queue] == every {
			continue
		}
		if err := e.keepSchedule(ctx, s, queue, every); err != nil {
			return err
		}
		known[queue] = every
	}
	return nil
}

func (e *Engine) keepSchedule(ctx context.Context, s Schedules, queue string, every time.Duration) error {
	call, cancel := e.limited(ctx)
	defer cancel()
	id := s.TaskQueue + "-" + queue
	spec := client.ScheduleSpec{Intervals: []client.ScheduleIntervalSpec{{Every: every}}}
	_, err := e.client.ScheduleClient().Create(call, client.ScheduleOptions{
		ID: id, Spec: spec, Overlap: enumspb.SCHEDULE_OVERLAP_POLICY_SKIP,
		Action: &client.ScheduleWorkflowAction{ID: id, Workflow: cycleType, TaskQueue: s.TaskQueue, Args: []any{queue}},
	})
	if errors.Is(err, temporal.ErrScheduleAlreadyRunning) {
		err = e.client.ScheduleClient().GetHandle(call, id).Update(call, client.ScheduleUpdateOptions{
			DoUpdate: func(input client.ScheduleUpdateInput) (*client.ScheduleUpdate, error) {
				schedule := input.Description.Schedule
				if err := serves(schedule, s.TaskQueue); err != nil {
					return nil, err
				}
				schedule.Spec = &spec
				return &client.ScheduleUpdate{Schedule: &schedule}, nil
			},
		})
	}
	switch {
	case errors.Is(err, sluice.ErrNotAllowed):
		return fmt.Errorf("keep the schedule %q: %w", id, err)
	case err != nil:
		return fault(fmt.Sprintf("keep the schedule %q", id), err)
	}
	return nil
}

// serves refuses a schedule whose cycles go to another task queue, where this process would get none of them.
func serves(schedule client.Schedule, taskQueue string) error {
	action, is := schedule.Action.(*client.ScheduleWorkflowAction)
	if !is || action.TaskQueue == taskQueue {
		return nil
	}
	return fmt.Errorf("its cycles go to task queue %q, and this process serves %q; choose another task queue, or delete the schedule in Temporal: %w",
		action.TaskQueue, taskQueue, sluice.ErrNotAllowed)
}
