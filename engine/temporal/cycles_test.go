package temporal_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	adapter "github.com/sluice-queue/sluice/engine/temporal"
)

// cycles describes the schedule of one queue, whose cycles send to a channel and then wait for an end.
func cycles(queue string, every time.Duration, begun chan<- time.Time, end <-chan struct{}) adapter.Schedules {
	return adapter.Schedules{
		Queues: []string{queue}, TaskQueue: queue,
		Interval: func(context.Context, string) (time.Duration, error) { return every, nil },
		Cycle: func(context.Context, string) (any, error) {
			begun <- time.Now()
			<-end
			return nil, nil
		},
	}
}

// intercepted returns a client whose calls meet a function of the test first.
func intercepted(t *testing.T, at, namespace string, call grpc.UnaryClientInterceptor) client.Client {
	t.Helper()
	c, err := client.NewLazyClient(client.Options{
		HostPort: at, Namespace: namespace, Logger: quiet{},
		ConnectionOptions: client.ConnectionOptions{DialOptions: []grpc.DialOption{grpc.WithChainUnaryInterceptor(call)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestCycleOfAProcessThatDiedDoesNotHoldUpTheNext lets a process end in the middle of a cycle, so that Temporal never hears of
// that cycle again. Another process then does the next ones.
func TestCycleOfAProcessThatDiedDoesNotHoldUpTheNext(t *testing.T) {
	t.Parallel()
	b := newBench(t, adapter.Options{}, client.Options{})
	var dead atomic.Bool
	doomed := intercepted(t, address(t), namespaceOf(t), func(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		if dead.Load() {
			return status.Error(codes.Unavailable, "the process is dead")
		}
		return invoke(ctx, method, req, reply, conn, opts...)
	})
	t.Cleanup(doomed.Close)
	begun, end, ended := make(chan time.Time, 100), make(chan struct{}), make(chan error, 2)
	t.Cleanup(func() { close(end) })
	dying, die := context.WithCancel(t.Context())
	first := cycles(b.target.Queue, time.Second, begun, end)
	go func() { ended <- adapter.New(doomed, adapter.Options{Timeout: time.Minute}).RunSchedules(dying, first) }()
	<-begun
	dead.Store(true)
	died := time.Now()
	die()
	ctx, stop := context.WithCancel(t.Context())
	at := make(chan struct{})
	close(at)
	go func() { ended <- b.engine.RunSchedules(ctx, cycles(b.target.Queue, time.Second, begun, at)) }()
	if waited := (<-begun).Sub(died); waited > 2*time.Minute {
		t.Errorf("the next cycle began after %s", waited)
	}
	stop()
	for range 2 {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	if err := b.client.ScheduleClient().GetHandle(t.Context(), b.target.Queue+"-"+b.target.Queue).Delete(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestCyclesGoOnAfterTheirNamespaceWasMissing answers polls for longer than the SDK waits for a namespace.
func TestCyclesGoOnAfterTheirNamespaceWasMissing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var missing, polled, failed atomic.Int64
		missing.Store(1)
		c := intercepted(t, "127.0.0.1:1", "default", func(ctx context.Context, method string, _, _ any, _ *grpc.ClientConn, _ grpc.UnaryInvoker, _ ...grpc.CallOption) error {
			switch {
			case strings.HasSuffix(method, "/DescribeSchedule"):
				return told(serviceerror.NewNotFound("no schedule"))
			case !strings.Contains(method, "/Poll"):
				return nil // as good as any answer
			}
			if missing.Load() > 0 {
				return told(serviceerror.NewNamespaceNotFound("default"))
			}
			polled.Add(1)
			select {
			case <-ctx.Done():
				return status.FromContextError(ctx.Err()).Err()
			case <-time.After(time.Minute):
				return nil // there is no task
			}
		})
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		s := cycles("payment", time.Second, nil, nil)
		s.Failed = func(error) { failed.Add(1) }
		go func() { ended <- adapter.New(c, adapter.Options{}).RunSchedules(ctx, s) }()
		time.Sleep(10 * time.Minute)
		if failed.Load() == 0 {
			t.Error("nobody learned that no cycle is done")
		}
		missing.Store(0)
		time.Sleep(time.Minute)
		if polled.Load() == 0 {
			t.Error("the cycles do not go on")
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		c.Close()
	})
}
