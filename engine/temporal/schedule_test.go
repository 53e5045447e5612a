package temporal_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"go.temporal.io/sdk/client"

	adapter "github.com/sluice-queue/sluice/engine/temporal"
)

// TestSchedulesBeginCyclesAndKeepToTheInterval lets a schedule begin cycles of a queue. It checks that no two cycles
// overlap, and then changes the interval.
func TestSchedulesBeginCyclesAndKeepToTheInterval(t *testing.T) {
	t.Parallel()
	b := newBench(t, adapter.Options{}, client.Options{})
	queue := b.target.Queue
	id := "sluice-dispatch-" + queue
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
	every.Store(int64(7 * time.Second))
	handle := b.client.ScheduleClient().GetHandle(t.Context(), id)
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
