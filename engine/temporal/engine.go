// Package temporal is an engine, a [engine.Engine], that runs jobs as workflows on a Temporal server.
//
// Begin with [Dial] or, with a client of your own, [New]. Give the [Engine] to a dispatcher, which starts runs,
// and to upkeep, which follows them to their end. [Engine.RunSchedules] replaces the dispatcher's loop by
// Temporal Schedules.
//
// A run is a workflow execution whose id is the run's ref. The workflow gets the job's payload as its single
// argument and needs to know nothing about Sluice. Runs start by the raw service call with a request id made by
// Sluice. The client's ExecuteWorkflow hides both duplicates and throttling, and runs a completed id again.
//
// Next, read docs/guide/temporal.md, and docs/decisions/0014-temporal.md for the reasons.
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
	"github.com/sluice-queue/sluice/engine"
)

// The defaults of [Options] and their units.
const (
	// DefaultParallel is the number of calls in flight at once. With more, a server starts no more runs per
	// second; each call only takes longer.
	DefaultParallel = 8
	// DefaultTimeout is the deadline of one call.
	DefaultTimeout = 10 * time.Second
	// DefaultMaxPayload is Temporal's own limit of one argument, in bytes.
	DefaultMaxPayload = 2 << 20
)

// Options adjust an [Engine]. The zero value works.
type Options struct {
	// Namespace is the namespace of runs whose queue settings name none. Default: "default", like the client's.
	// Give the client's own namespace.
	Namespace string
	// DataConverter turns payloads into arguments, and results into JSON. Give the converter of the client and
	// the workers. Default: the SDK's. The converter must support converter.RawValue, as the SDK's converter
	// and its codecs do.
	//
	// An error of the converter normally means that its codec is unreachable: jobs wait, and results are asked
	// for again. Three kinds of errors blame the payload instead: [engine.ErrRefused], a non-retryable
	// temporal.ApplicationError, and errors of the SDK's own converters about the value.
	DataConverter converter.DataConverter
	// FailureConverter reads the failures of runs. Give the workers' own, if they have one. Default: the SDK's.
	FailureConverter converter.FailureConverter
	// Identity is the name that Temporal shows for starts and cancellations. Default: sluice@ and the host's
	// name.
	Identity string
	// Parallel is the number of calls in flight at once, for starts and again for queries. Default 8. The
	// engine halves it whenever the server is busy, and raises it again slowly.
	Parallel int
	// Timeout is the deadline of one call. Default 10 s.
	Timeout time.Duration
	// MaxPayload is the size limit of an encoded payload, in bytes. The engine refuses a larger one without
	// asking the server. Default 2 MiB, the server's own default.
	MaxPayload int
	// MaxRef is the length limit of a ref, in bytes. The engine refuses a longer one without asking the server.
	// Default and maximum 1,000, the server's own default. A server on PostgreSQL or MySQL takes 255
	// characters, and refuses more itself.
	MaxRef int
	// Logger gets the SDK's messages about a connection that Dial makes. Default: slog.Default.
	Logger *slog.Logger
	// Adjust may change the request for a run before it is sent, for values that queue settings do not cover.
	// Examples: pin a version of the workers' deployment, add a summary or links, or let Temporal retry the
	// workflow. A whole chain of retries is then the job's one run.
	//
	// Adjust cannot change the fields that identify the run: namespace, id, type, task queue, request id,
	// duplicate policies and Sluice's fields of the memo. A cron schedule is removed. Adjust must make the same
	// changes each time for the same run. Default: no changes.
	Adjust func(target engine.Target, run engine.Run, request *workflowservice.StartWorkflowExecutionRequest)
	// SearchAttributes names keyword search attributes that each run gets. Default: none. If the namespace
	// lacks a named attribute, no run can start.
	SearchAttributes SearchAttributes
}

// SearchAttributes are names of search attributes; empty: not set.
type SearchAttributes struct {
	// Job, Queue and Tenant name the attributes for the job's id, its queue and its tenant.
	Job, Queue, Tenant string
}

// Engine is a [engine.Engine] on a Temporal server. Many goroutines may call its methods at once.
type Engine struct {
	client  client.Client
	service workflowservice.WorkflowServiceClient
	options Options
	starts  *gate
	looks   *gate
	codec   chan struct{} // conversions under way
	keeps   sync.Map      // retention of ended runs, a time.Duration by namespace
	close   func()
}

var (
	_ engine.Engine     = (*Engine)(nil)
	_ engine.Terminator = (*Engine)(nil)
)

// New makes an engine on a client. The caller still closes the client. TLS, credentials and the metadata of
// calls are the client's. One client serves all namespaces that its credentials may use. With a nil client,
// every call is a [sluice.ErrInvalid].
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

// Close ends the connection of an engine made by [Dial]. An engine made by [New] has no connection of its own.
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
	engine.Target
}

// String names the place in errors.
func (p place) String() string {
	return fmt.Sprintf("namespace %q, workflow type %q, task queue %q", p.Namespace, p.Type, p.TaskQueue)
}

// placeOf fills in values missing in the queue's settings. placeOf refuses names that no server accepts. The
// server would blame the job for them, or its answer would look like a passing fault.
func (e *Engine) placeOf(target engine.Target) (place, error) {
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
			return p, fmt.Errorf("queue %q, %s %.100q: %s; change the queue's settings: %w", p.Queue, name.is, name.text, name.rule, engine.ErrTarget)
		}
	}
	return p, nil
}
