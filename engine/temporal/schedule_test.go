package temporal_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	schedulepb "go.temporal.io/api/schedule/v1"
	"go.temporal.io/api/serviceerror"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/engine"
	adapter "github.com/sluice-queue/sluice/engine/temporal"
)

// TestSchedulesBeginCyclesAndKeepToTheInterval lets a schedule begin cycles of a queue. It checks that no two cycles
// overlap, and then changes the interval.
func TestSchedulesBeginCyclesAndKeepToTheInterval(t *testing.T) {
	t.Parallel()
	b := newBench(t, adapter.Options{}, client.Options{})
	queue := b.target.Queue
	id := queue + "-" + queue // the task queue's name and the queue's
	var every atomic.Int64
	every.Store(int64(time.Second))
	cycles := make(chan string, 100)
	var under atomic.Int32
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- b.engine.RunSchedules(ctx, adapter.Schedules{
			Queues: []string{queue}, TaskQueue: queue,
			Interval: func(context.Context, string) (time.Duration, error) { return time.Duration(every.Load()), nil },
			Cycle: func(_ context.Context, queue string) (any, error) {
				if under.Add(1) > 1 {
					t.Error("a cycle began beside another")
				}
				time.Sleep(1500 * time.Millisecond) // longer than the interval, so an overlap would show
				under.Add(-1)
				cycles <- queue
				return map[string]int{"claimed": 3}, nil
			},
		})
	}()
	for range 2 {
		select {
		case got := <-cycles:
			if got != queue {
				t.Errorf("a cycle of %q", got)
			}
		case <-time.After(10 * time.Minute):
			t.Fatal("no cycle began")
		}
	}
	handle := b.client.ScheduleClient().GetHandle(t.Context(), id)
	if err := handle.Delete(t.Context()); err != nil { // it is made again
		t.Error(err)
	}
	every.Store(int64(7 * time.Second))
	for deadline := time.Now().Add(10 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		shown, err := handle.Describe(t.Context())
		if err == nil && len(shown.Schedule.Spec.Intervals) == 1 && shown.Schedule.Spec.Intervals[0].Every == 7*time.Second {
			break
		}
		if time.Now().After(deadline) { // a busy server may have left a call without an answer
			t.Fatalf("the schedule is %+v, %v", shown, err)
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if err := handle.Delete(t.Context()); err != nil {
		t.Error(err)
	}
}

// book is a fake Temporal server that has one schedule at most, under the id of the first request.
type book struct {
	fake
	ids       []string // of the requests
	taskQueue string   // of the cycles of the schedule
	updates   int
	every     []time.Duration // of the requests
}

func (b *book) CreateSchedule(_ context.Context, r *workflowservice.CreateScheduleRequest) (*workflowservice.CreateScheduleResponse, error) {
	b.ids, b.every = append(b.ids, r.GetScheduleId()), append(b.every, r.GetSchedule().GetSpec().GetInterval()[0].GetInterval().AsDuration())
	if b.taskQueue == "" {
		return nil, told(serviceerror.NewPermissionDenied("no", ""))
	}
	return nil, told(serviceerror.NewWorkflowExecutionAlreadyStarted("exists", "other", "run"))
}

func (b *book) DescribeSchedule(context.Context, *workflowservice.DescribeScheduleRequest) (*workflowservice.DescribeScheduleResponse, error) {
	if b.taskQueue == "" {
		return nil, told(serviceerror.NewNotFound("no schedule"))
	}
	start := &workflowpb.NewWorkflowExecutionInfo{TaskQueue: &taskqueuepb.TaskQueue{Name: b.taskQueue}}
	return &workflowservice.DescribeScheduleResponse{Info: &schedulepb.ScheduleInfo{}, Schedule: &schedulepb.Schedule{
		Spec: &schedulepb.ScheduleSpec{}, Policies: &schedulepb.SchedulePolicies{}, State: &schedulepb.ScheduleState{},
		Action: &schedulepb.ScheduleAction{Action: &schedulepb.ScheduleAction_StartWorkflow{StartWorkflow: start}},
	}}, nil
}

func (b *book) UpdateSchedule(context.Context, *workflowservice.UpdateScheduleRequest) (*workflowservice.UpdateScheduleResponse, error) {
	b.updates++
	return &workflowservice.UpdateScheduleResponse{}, nil
}

// schedules runs the cycles of a queue on the server until its first error.
func (b *book) schedules(t *testing.T, queue, taskQueue string) error {
	t.Helper()
	e, _ := serve(t, b, adapter.Options{})
	return e.RunSchedules(t.Context(), adapter.Schedules{
		Queues: []string{queue}, TaskQueue: taskQueue,
		Interval: func(context.Context, string) (time.Duration, error) { return time.Second, nil },
		Cycle:    func(context.Context, string) (any, error) { return nil, nil },
	})
}

func TestStoresWithTaskQueuesOfTheirOwnShareNoSchedule(t *testing.T) {
	t.Parallel()
	b := &book{}
	for _, taskQueue := range []string{"sales", "books"} {
		if err := b.schedules(t, "payment", taskQueue); !errors.Is(err, engine.ErrTarget) {
			t.Errorf("task queue %q: %v, want %v", taskQueue, err, engine.ErrTarget)
		}
	}
	if err := b.schedules(t, "payment", ""); !errors.Is(err, sluice.ErrInvalid) {
		t.Errorf("without a task queue: %v, want %v", err, sluice.ErrInvalid)
	}
	if want := []string{"sales-payment", "books-payment"}; !slices.Equal(b.ids, want) {
		t.Errorf("the schedules are %q, want %q", b.ids, want)
	}
}

func TestScheduleOfAnotherTaskQueueIsNotTakenOver(t *testing.T) {
	t.Parallel()
	b := &book{taskQueue: "a"}
	err := b.schedules(t, "c", "a-b") // the schedule of queue b-c and task queue a has this id too
	if !errors.Is(err, sluice.ErrNotAllowed) || !strings.Contains(err.Error(), `schedule "a-b-c"`) || !strings.Contains(err.Error(), `task queue "a"`) {
		t.Errorf("the error is %v", err)
	}
	if b.updates > 0 {
		t.Error("the schedule was changed")
	}
}

func TestIntervalsAreWholeSecondsAndAtLeastOne(t *testing.T) {
	t.Parallel()
	b := &book{}
	e, _ := serve(t, b, adapter.Options{})
	for _, every := range []time.Duration{0, 200 * time.Millisecond, 1400 * time.Millisecond, 1600 * time.Millisecond, 7 * time.Second} {
		err := e.RunSchedules(t.Context(), adapter.Schedules{
			Queues: []string{"payment"}, TaskQueue: "books",
			Interval: func(context.Context, string) (time.Duration, error) { return every, nil },
			Cycle:    func(context.Context, string) (any, error) { return nil, nil },
		})
		if !errors.Is(err, engine.ErrTarget) {
			t.Errorf("every %s: %v, want %v", every, err, engine.ErrTarget)
		}
	}
	if want := []time.Duration{5 * time.Second, time.Second, time.Second, 2 * time.Second, 7 * time.Second}; !slices.Equal(b.every, want) {
		t.Errorf("the intervals are %v, want %v", b.every, want)
	}
}

func TestInterruptWhileSchedulesAreMadeIsNoFault(t *testing.T) {
	t.Parallel()
	e, _ := serve(t, &book{taskQueue: "books"}, adapter.Options{})
	ctx, interrupt := context.WithCancel(t.Context())
	err := e.RunSchedules(ctx, adapter.Schedules{
		Queues: []string{"payment"}, TaskQueue: "books",
		Interval: func(context.Context, string) (time.Duration, error) { interrupt(); return time.Second, nil },
		Cycle:    func(context.Context, string) (any, error) { return nil, nil },
	})
	if err != nil {
		t.Errorf("the error is %v", err)
	}
}
