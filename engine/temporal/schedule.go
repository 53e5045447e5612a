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
	// DefaultCycleInterval is how often a cycle begins where the queue's settings say nothing.
	DefaultCycleInterval = 5 * time.Second
	// DefaultScheduleTaskQueue is where the cycles run.
	DefaultScheduleTaskQueue = "sluice-dispatch"
	// DefaultCycleWorkflows is how many of the cycles' workflows one process works on at once.
	DefaultCycleWorkflows = 5
	// DefaultCycleActivities is how many cycles it does at once.
	DefaultCycleActivities = 10
	// cycleStop is how long a cycle that is under way may take to its end when the process ends.
	cycleStop = 10 * time.Second
	// cycleType and cycleActivity name a cycle's workflow and what it does.
	cycleType     = "SluiceDispatch"
	cycleActivity = "SluiceDispatchCycle"
	// cycleTimeout ends a cycle that takes longer; the next one goes on.
	cycleTimeout = 5 * time.Minute
	// scheduleLook is how often it is looked whether an interval has changed.
	scheduleLook = time.Second
)

// Schedules has Temporal Schedules begin the cycles in which jobs are dispatched, instead of a loop of the process.
type Schedules struct {
	// Queues are those whose jobs are dispatched.
	Queues []string
	// Interval says how often cycles of a queue begin now; 0: every five seconds. Temporal knows whole seconds alone.
	Interval func(ctx context.Context, queue string) (time.Duration, error)
	// Cycle does one cycle of a queue, and tells of it what is to stand in the workflow's history: no payloads.
	Cycle func(ctx context.Context, queue string) (any, error)
	// TaskQueue is where the cycles run. Default: sluice-dispatch.
	TaskQueue string
	// Workflows and Activities are how many of the cycles' workflows and of the cycles themselves this process works on at
	// once. Defaults: 5 and 10.
	Workflows, Activities int
	// Failed is told of an interval that could not be kept up to date. It is tried again. Default: nobody is.
	Failed func(err error)
}

// RunSchedules installs a Temporal Schedule for each queue, keeps its interval up to date, and does the cycles that it
// begins, until ctx ends; it returns nil then. No cycle of a queue begins while one is under way, in whichever process.
// The schedules stay when it ends: without a process that does their cycles they wait for one.
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

// cycleWorkflow is one cycle of a queue. One that fails is not repeated: the next one goes on.
func cycleWorkflow(ctx workflow.Context, queue string) error {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: cycleTimeout, RetryPolicy: &temporal.RetryPolicy{MaximumAttempts: 1},
	})
	return workflow.ExecuteActivity(ctx, cycleActivity, queue).Get(ctx, nil)
}

// keepSchedules gives each queue a schedule with the interval that its settings have now.
func (e *Engine) keepSchedules(ctx context.Context, s Schedules, known map[string]time.Duration) error {
	for _, queue := range s.Queues {
		every, err := s.Interval(ctx, queue)
		if err != nil {
			return fmt.Errorf("interval of queue %q: %w", queue, err)
		}
		if every = every.Round(time.Second); every < time.Second {
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
	id := "sluice-dispatch-" + queue
	spec := client.ScheduleSpec{Intervals: []client.ScheduleIntervalSpec{{Every: every}}}
	_, err := e.client.ScheduleClient().Create(call, client.ScheduleOptions{
		ID: id, Spec: spec, Overlap: enumspb.SCHEDULE_OVERLAP_POLICY_SKIP,
		Action: &client.ScheduleWorkflowAction{ID: id, Workflow: cycleType, TaskQueue: s.TaskQueue, Args: []any{queue}},
	})
	if errors.Is(err, temporal.ErrScheduleAlreadyRunning) {
		err = e.client.ScheduleClient().GetHandle(call, id).Update(call, client.ScheduleUpdateOptions{
			DoUpdate: func(input client.ScheduleUpdateInput) (*client.ScheduleUpdate, error) {
				schedule := input.Description.Schedule
				schedule.Spec = &spec
				return &client.ScheduleUpdate{Schedule: &schedule}, nil
			},
		})
	}
	if err != nil {
		return fault(fmt.Sprintf("keep the schedule %q", id), err)
	}
	return nil
}
