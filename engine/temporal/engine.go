// Package temporal is a sluice.Engine that runs jobs as workflows on a Temporal server.
//
// A run is a workflow execution whose id is the run's ref. It gets the job's payload as its single argument and need
// not know anything of Sluice. Starts go through the raw service call with a request id of our own, because the
// client's ExecuteWorkflow hides both duplicates and throttling, and runs a completed id again (see decision 14).
package temporal

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"

	"github.com/sluice-queue/sluice"
)

// The defaults of Options.
const (
	// DefaultParallel calls are in flight at once: from there on a server starts no more per second, each only waits
	// longer.
	DefaultParallel = 8
	// DefaultTimeout is how long one call may take.
	DefaultTimeout = 10 * time.Second
	// DefaultMaxPayload is Temporal's own limit of one argument, in bytes.
	DefaultMaxPayload = 2 << 20
)

// Options are what an engine can be told. The zero value gives the defaults.
type Options struct {
	// Namespace is where runs of queues go whose settings name none. Default: "default", as the client's. Give the one
	// that the client was made with.
	Namespace string
	// DataConverter turns payloads into arguments, and results into JSON. Give the one that the client and the workers
	// were made with. Default: the SDK's. It must support converter.RawValue, as the SDK's and its codecs do. An error of it
	// means that its codec is away: jobs wait, and results are asked for again. A sluice.ErrEngineRefused, a non-retryable
	// temporal.ApplicationError, or an error of the SDK's own converters about the value means that it is the payload.
	DataConverter converter.DataConverter
	// FailureConverter reads the failures of runs. Give the workers' own, if they have one. Default: the SDK's.
	FailureConverter converter.FailureConverter
	// Identity is how Temporal names who started or cancelled a run. Default: sluice@ and the host's name.
	Identity string
	// Parallel is how many calls are in flight at once, for starts and again for looking. Default 8. It is halved
	// whenever the server says that it is busy, and grows back slowly.
	Parallel int
	// Timeout is how long one call may take. Default 10 s.
	Timeout time.Duration
	// MaxPayload is how many bytes an encoded payload may have: a larger one is refused without asking the server.
	// Default 2 MiB, the server's own default.
	MaxPayload int
	// MaxRef is how many bytes a ref may have: a longer one is refused without asking the server. Default 1,000, the
	// server's own default. One that keeps its data in PostgreSQL or MySQL has room for 255 characters, and says so itself.
	MaxRef int
	// Logger gets what the SDK has to say on a connection that Dial makes. Default: slog.Default.
	Logger *slog.Logger
	// Adjust may change the request for a run before it is sent, for what settings of queues do not say: pin a version of
	// the workers' deployment, let Temporal retry the workflow (the whole chain is the job's one run then), add a summary or
	// links. What names the run, finds it again and follows it stays as it is: namespace, id, type, task queue, request id,
	// the policies against duplicates, our fields of the memo; and it has no cron. It must say the same each time that it
	// is asked for the same run. Default: nothing is changed.
	Adjust func(target sluice.RunTarget, run sluice.Run, request *workflowservice.StartWorkflowExecutionRequest)
	// SearchAttributes names keyword search attributes that each run gets. Default: none. The namespace must have
	// those that are named, or nothing can be started.
	SearchAttributes SearchAttributes
}

// SearchAttributes are the names of search attributes, empty: not set.
type SearchAttributes struct {
	// Job, Queue and Tenant name the attributes that hold the job's id, its queue and its tenant.
	Job, Queue, Tenant string
}

// Engine is a sluice.Engine on a Temporal server. Its methods may be called by many at once.
type Engine struct {
	client  client.Client
	service workflowservice.WorkflowServiceClient
	options Options
	starts  *gate
	looks   *gate
	codec   chan struct{} // conversions under way
	keeps   sync.Map      // how long namespaces keep runs that ended, as time.Duration, by name
	close   func()
}

var (
	_ sluice.Engine     = (*Engine)(nil)
	_ sluice.Terminator = (*Engine)(nil)
)

// New makes an engine on a client, which stays the caller's to close. TLS, credentials and the metadata of calls are the
// client's. One client serves all namespaces that its credentials may use. Without a client (nil) every call is a
// sluice.ErrInvalid.
func New(c client.Client, options Options) *Engine {
	options = withDefaults(options)
	if err := sluice.CheckGiven("client", c); err != nil {
		c = missingClient{err: err}
	}
	return &Engine{
		client:  c,
		service: c.WorkflowService(),
		options: options,
		starts:  newGate(options.Parallel),
		looks:   newGate(options.Parallel),
		codec:   make(chan struct{}, codecCalls*options.Parallel),
		close:   func() {},
	}
}

// Close ends the connection of an engine that Dial made. An engine that New made has none of its own.
func (e *Engine) Close() error {
	e.close()
	return nil
}

// limited gives a call its deadline.
func (e *Engine) limited(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, e.options.Timeout)
}

func withDefaults(o Options) Options {
	if o.Namespace == "" {
		o.Namespace = client.DefaultNamespace
	}
	if o.DataConverter == nil {
		o.DataConverter = converter.GetDefaultDataConverter()
	}
	if o.FailureConverter == nil {
		o.FailureConverter = temporal.GetDefaultFailureConverter()
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Identity == "" {
		o.Identity = "sluice@" + hostname()
	}
	if o.Parallel <= 0 {
		o.Parallel = DefaultParallel
	}
	if o.Timeout <= 0 {
		o.Timeout = DefaultTimeout
	}
	if o.MaxPayload <= 0 {
		o.MaxPayload = DefaultMaxPayload
	}
	if o.MaxRef <= 0 || o.MaxRef > maxName {
		o.MaxRef = maxName
	}
	return o
}

func hostname() string {
	name, err := os.Hostname()
	if err != nil {
		return "unknown"
	}
	return name
}

// place is a target with the engine's defaults filled in.
type place struct {
	sluice.RunTarget
}

// String names the place in errors.
func (p place) String() string {
	return fmt.Sprintf("namespace %q, workflow type %q, task queue %q", p.Namespace, p.Type, p.TaskQueue)
}

// placeOf fills in what the settings of the queue leave open. Names that no server takes are refused here: the server
// would blame the job for them, or take them for a passing fault of the connection.
func (e *Engine) placeOf(target sluice.RunTarget) (place, error) {
	p := place{target}
	if p.Namespace == "" {
		p.Namespace = e.options.Namespace
	}
	if p.Type == "" {
		p.Type = p.Queue
	}
	if p.TaskQueue == "" {
		p.TaskQueue = p.Queue
	}
	for _, name := range []struct{ is, text, rule string }{
		{"namespace", p.Namespace, misnamed(p.Namespace)},
		{"workflow type", p.Type, mistyped(p.Type)},
		{"task queue", p.TaskQueue, misnamed(p.TaskQueue)},
	} {
		if name.rule != "" {
			return p, fmt.Errorf("queue %q, %s %.100q: %s; change the queue's settings: %w", p.Queue, name.is, name.text, name.rule, sluice.ErrEngineTarget)
		}
	}
	return p, nil
}
