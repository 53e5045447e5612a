package temporal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
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
	// cycleSilence is how long a cycle may be without a sign of life before it counts as lost with its process. A cycle
	// gives one every cycleBeat.
	cycleSilence = 30 * time.Second
	cycleBeat    = 5 * time.Second
	// scheduleLook is how often to check for changed intervals, and scheduleAgain the wait after an error. scheduleCheck is
	// how often to check that the schedules are there.
	scheduleLook  = time.Second
	scheduleAgain = 10 * time.Second
	scheduleCheck = 30 * time.Second
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
	// TaskQueue is the task queue of the cycles, and the beginning of the ids of their schedules. It has no default:
	// stores that share a namespace need a task queue each, because a process does the cycles of its task queue on its
	// own store.
	TaskQueue string
	// Workflows and Activities are the most workflows of cycles, and cycles, that this process runs at once.
	// Defaults: 5 and 10.
	Workflows, Activities int
	// Failed receives the errors of schedules and of the connection for cycles, which are retried. Default: errors are
	// dropped.
	Failed func(err error)
}

// RunSchedules makes a Temporal Schedule for each queue, and does the cycles that the schedules begin, until ctx ends.
// The schedules stay when the process ends; their cycles wait for the next process. While the process runs, a schedule
// that somebody deletes is made again. A schedule that exists for another task queue stays as it is, and RunSchedules
// returns a [sluice.ErrNotAllowed].
func (e *Engine) RunSchedules(ctx context.Context, s Schedules) error {
	if s.Failed == nil {
		s.Failed = func(error) {}
	}
	missing, _ := e.client.(missingClient)
	if err := cmp.Or(missing.err, s.check()); err != nil {
		return fmt.Errorf("keep schedules: %w", err)
	}
	known := make(map[string]kept)
	switch err := e.keepSchedules(ctx, s, known); {
	case ctx.Err() != nil:
		return nil
	case err != nil:
		return err
	}
	ended := make(chan error, 1)
	w, err := e.startCycles(s, ended)
	if err != nil {
		return err
	}
	defer func() { w.Stop() }()
	wait := time.NewTimer(scheduleLook)
	defer wait.Stop()
	for broken := false; ; {
		select {
		case <-ctx.Done():
			return nil
		case err := <-ended: // for good: the SDK gives up when the namespace was missing for minutes
			broken = true
			s.Failed(fmt.Errorf("do the cycles of task queue %q: %w", s.TaskQueue, err))
			continue
		case <-wait.C:
		}
		err := e.keepSchedules(ctx, s, known)
		if err == nil && broken {
			var next worker.Worker
			if next, err = e.startCycles(s, ended); err == nil {
				w, broken = next, false
			}
		}
		if err != nil && ctx.Err() == nil {
			s.Failed(err)
			wait.Reset(scheduleAgain)
			continue
		}
		wait.Reset(scheduleLook)
	}
}

// check returns the first value that makes no sense.
func (s Schedules) check() error {
	if rule := misnamed(s.TaskQueue); rule != "" {
		return &sluice.InvalidError{Field: "task_queue", Rule: rule + "; give the cycles of this store a task queue of their own"}
	}
	return cmp.Or(sluice.CheckGiven("interval", s.Interval), sluice.CheckGiven("cycle", s.Cycle))
}

// startCycles begins to do the cycles of a task queue. Ended gets the error for which the SDK ends that by itself.
func (e *Engine) startCycles(s Schedules, ended chan<- error) (worker.Worker, error) {
	w := worker.New(e.client, s.TaskQueue, worker.Options{
		MaxConcurrentWorkflowTaskExecutionSize: cmp.Or(s.Workflows, DefaultCycleWorkflows),
		MaxConcurrentActivityExecutionSize:     cmp.Or(s.Activities, DefaultCycleActivities),
		WorkerStopTimeout:                      cycleStop,
		OnFatalError:                           func(err error) { ended <- err },
	})
	w.RegisterWorkflowWithOptions(cycleWorkflow, workflow.RegisterOptions{Name: cycleType})
	w.RegisterActivityWithOptions(s.cycle, activity.RegisterOptions{Name: cycleActivity})
	if err := w.Start(); err != nil {
		return nil, fault(fmt.Sprintf("do the cycles of task queue %q", s.TaskQueue), err)
	}
	return w, nil
}

// cycleWorkflow is one cycle of a queue. A failed cycle is not repeated: the next one goes on.
func cycleWorkflow(ctx workflow.Context, queue string) error {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: cycleTimeout, HeartbeatTimeout: cycleSilence, RetryPolicy: &temporal.RetryPolicy{MaximumAttempts: 1},
	})
	return workflow.ExecuteActivity(ctx, cycleActivity, queue).Get(ctx, nil)
}

// cycle does a cycle, and tells Temporal meanwhile that it goes on. Otherwise a process that was killed during a cycle
// would keep the queue from its next cycle for cycleTimeout.
func (s Schedules) cycle(ctx context.Context, queue string) (any, error) {
	done := make(chan struct{})
	defer close(done)
	go func() {
		beats := time.NewTicker(cycleBeat)
		defer beats.Stop()
		for {
			select {
			case <-done:
				return
			case <-ctx.Done():
				return
			case <-beats.C:
				activity.RecordHeartbeat(ctx)
			}
		}
	}()
	return s.Cycle(ctx, queue)
}

// kept is a schedule as it was last checked.
type kept struct {
	every time.Duration
	at    time.Time
}

// keepSchedules gives each queue a schedule with the interval from its current settings.
func (e *Engine) keepSchedules(ctx context.Context, s Schedules, known map[string]kept) error {
	var failed []error
	for _, queue := range s.Queues {
		every, err := s.Interval(ctx, queue)
		if err != nil {
			failed = append(failed, fmt.Errorf("interval of queue %q: %w", queue, err))
			continue
		}
		if every > 0 {
			every = max(every.Round(time.Second), time.Second)
		} else {
			every = DefaultCycleInterval
		}
		if known[queue].every == every && time.Since(known[queue].at) < scheduleCheck {
			continue
		}
		if err := e.keepSchedule(ctx, s, queue, every); err != nil {
			failed = append(failed, err)
			continue
		}
		known[queue] = kept{every, time.Now()}
	}
	return errors.Join(failed...)
}

// keepSchedule makes the schedule of a queue, or gives it the interval. It tries twice, because another process may make
// or delete the schedule meanwhile.
func (e *Engine) keepSchedule(ctx context.Context, s Schedules, queue string, every time.Duration) (err error) {
	call, cancel := e.limited(ctx)
	defer cancel()
	id := s.TaskQueue + "-" + queue
	spec := client.ScheduleSpec{Intervals: []client.ScheduleIntervalSpec{{Every: every}}}
	for range 2 {
		if err = e.changeSchedule(call, id, s.TaskQueue, spec); !lacksRun(err) {
			break
		}
		_, err = e.client.ScheduleClient().Create(call, client.ScheduleOptions{
			ID: id, Spec: spec, Overlap: enumspb.SCHEDULE_OVERLAP_POLICY_SKIP,
			Action: &client.ScheduleWorkflowAction{ID: id, Workflow: cycleType, TaskQueue: s.TaskQueue, Args: []any{queue}},
		})
		if !errors.Is(err, temporal.ErrScheduleAlreadyRunning) {
			break
		}
	}
	switch {
	case errors.Is(err, sluice.ErrNotAllowed):
		return fmt.Errorf("keep the schedule %q: %w", id, err)
	case err != nil:
		return fault(fmt.Sprintf("keep the schedule %q", id), err)
	}
	return nil
}

// changeSchedule gives a schedule that exists its interval.
func (e *Engine) changeSchedule(ctx context.Context, id, taskQueue string, spec client.ScheduleSpec) error {
	return e.client.ScheduleClient().GetHandle(ctx, id).Update(ctx, client.ScheduleUpdateOptions{
		DoUpdate: func(input client.ScheduleUpdateInput) (*client.ScheduleUpdate, error) {
			schedule := input.Description.Schedule
			if err := serves(schedule, taskQueue); err != nil {
				return nil, err
			}
			if schedule.Spec != nil && slices.Equal(schedule.Spec.Intervals, spec.Intervals) {
				return nil, temporal.ErrSkipScheduleUpdate
			}
			schedule.Spec = &spec
			return &client.ScheduleUpdate{Schedule: &schedule}, nil
		},
	})
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
