package temporal_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/sluice-queue/sluice/engine"
	adapter "github.com/sluice-queue/sluice/engine/temporal"

	"github.com/sluice-queue/sluice/engine/enginetest"
	"github.com/sluice-queue/sluice/internal/temporaltest"
)

// retention is the retention of the tests' namespace.
const retention = 24 * time.Hour

// address returns the address of a Temporal server.
func address(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a Temporal server")
	}
	return temporaltest.Address(t)
}

// calls counts the calls of a client by method.
type calls struct {
	mu sync.Mutex
	by map[string]int
}

func (c *calls) intercept(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	c.mu.Lock()
	if c.by == nil {
		c.by = make(map[string]int)
	}
	c.by[method[strings.LastIndex(method, "/")+1:]]++
	c.mu.Unlock()
	return invoke(ctx, method, req, reply, conn, opts...)
}

// reset returns the counts so far, and begins anew.
func (c *calls) reset() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	by := c.by
	c.by = nil
	return by
}

// bench is a Temporal server with an engine and a client for workers.
type bench struct {
	client  client.Client
	workers client.Client
	engine  *adapter.Engine
	target  engine.Target
	calls   *calls
}

// dialled returns a client of a namespace, and the counts of its calls.
func dialled(t *testing.T, at, namespace string, options client.Options) (client.Client, *calls) {
	t.Helper()
	counted := &calls{}
	options.HostPort, options.Namespace = at, namespace
	options.ConnectionOptions.DialOptions = []grpc.DialOption{grpc.WithChainUnaryInterceptor(counted.intercept)}
	options.Logger = quiet{}
	c, err := client.NewLazyClient(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c, counted
}

// quiet is a logger that writes nothing, because some rules let workflows panic.
type quiet struct{}

func (quiet) Debug(string, ...any) {}
func (quiet) Info(string, ...any)  {}
func (quiet) Warn(string, ...any)  {}
func (quiet) Error(string, ...any) {}

// made is the namespace that all tests share.
var made struct {
	once sync.Once
	name string
	err  error
}

// namespace returns the namespace that all tests share, and makes it on the first call.
func namespace(at string) (string, error) {
	made.once.Do(func() { made.name, made.err = makeNamespace(at) })
	return made.name, made.err
}

// makeNamespace makes a namespace, and waits until the whole server knows it.
func makeNamespace(at string) (string, error) {
	c, err := client.NewLazyClient(client.Options{HostPort: at, Logger: quiet{}})
	if err != nil {
		return "", err
	}
	defer c.Close()
	ctx, end := context.WithTimeout(context.Background(), 10*time.Minute)
	defer end()
	name := "test-" + strings.ToLower(rand.Text())
	_, err = c.WorkflowService().RegisterNamespace(ctx, &workflowservice.RegisterNamespaceRequest{
		Namespace: name, WorkflowExecutionRetentionPeriod: durationpb.New(retention),
	})
	if err != nil {
		return "", err
	}
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		_, err := c.WorkflowService().ListWorkflowExecutions(ctx, &workflowservice.ListWorkflowExecutionsRequest{Namespace: name})
		if err == nil {
			return name, nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return "", errors.Join(ctx.Err(), err)
		}
	}
}

// newBench opens a bench. No worker listens to its task queue yet.
func newBench(t *testing.T, options adapter.Options, clients client.Options) *bench {
	t.Helper()
	at := address(t)
	name, err := namespace(at)
	if err != nil {
		t.Fatalf("make a namespace on the server at %s: %v", at, err)
	}
	c, counted := dialled(t, at, name, clients)
	workers, _ := dialled(t, at, name, clients)
	options.Namespace = name
	options.DataConverter = clients.DataConverter
	if options.Timeout == 0 {
		options.Timeout = 5 * time.Minute // the machine may be busy with other tests
	}
	queue := "q-" + strings.ToLower(rand.Text())
	return &bench{client: c, workers: workers, engine: adapter.New(c, options), calls: counted, target: engine.Target{Queue: queue, Type: "obey"}}
}

// work starts a worker that runs a function as the target's workflow type.
func (b *bench) work(t *testing.T, run any) {
	t.Helper()
	w := worker.New(b.workers, b.target.Queue, worker.Options{WorkflowPanicPolicy: worker.FailWorkflow})
	w.RegisterWorkflowWithOptions(run, workflow.RegisterOptions{Name: b.target.Type})
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
}

// obey returns the workflow that does what the scripts of the rules say.
func obey(diary *enginetest.Diary) any {
	return func(ctx workflow.Context, payload json.RawMessage) (json.RawMessage, error) {
		run := workflow.GetInfo(ctx).WorkflowExecution
		diary.Begin(run.ID, run.RunID, payload)
		var script enginetest.Script
		if err := json.Unmarshal(payload, &script); err != nil {
			return nil, err
		}
		switch script.Do {
		case enginetest.Complete:
			return script.Result, nil
		case enginetest.Fail:
			return nil, temporal.NewApplicationError(script.Error, "")
		case enginetest.Panic:
			panic(script.Error)
		}
		ctx.Done().Receive(ctx, nil)
		return nil, ctx.Err()
	}
}

func TestTheEngineObeysTheRules(t *testing.T) {
	t.Parallel()
	b := newBench(t, adapter.Options{MaxRef: 255}, client.Options{})
	diary := &enginetest.Diary{}
	b.work(t, obey(diary))
	nobody, _ := dialled(t, "127.0.0.1:1", "default", client.Options{})
	nowhere := b.target
	nowhere.Namespace = "nowhere"
	enginetest.Run(t, func(*testing.T) enginetest.Bench {
		return enginetest.Bench{
			Engine: b.engine, Target: b.target, Diary: diary, Gone: adapter.New(nobody, adapter.Options{}), Nowhere: nowhere,
			MaxPayload: adapter.DefaultMaxPayload, MaxRef: 255, Retention: retention, StartsWithin: 10 * time.Second,
		}
	})
}
