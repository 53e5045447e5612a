// Package trace makes OpenTelemetry spans of the calls that package observe sees. There are spans for each
// enqueue, for each job until its end, and for the cycles in which dispatchers and upkeep work on many jobs.
//
// Begin with [New], and give the [Observer] to [observe.Store] and [observe.Engine]. The trace context travels
// in the job's labels and in its run's headers, so one trace covers all processes that touch a job. Code
// outside of a worker continues a trace with [Observer.Context].
//
// Besides Sluice, the package imports only OpenTelemetry's API. Without a TracerProvider that samples, it
// records nothing. Next, read docs/guide/traces.md.
package trace

import (
	"context"
	"sync"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/sluice-queue/sluice/internal/scrubbed"
	"github.com/sluice-queue/sluice/observe"
)

// scope is the instrumentation scope of the spans.
const scope = "github.com/sluice-queue/sluice/cmd/trace"

// DefaultLinks is the most links to jobs that a span of many jobs has.
const DefaultLinks = 32

// Options adjust an [Observer]. The zero value traces with the global TracerProvider.
type Options struct {
	// TracerProvider makes the spans. Default: the global one.
	TracerProvider trace.TracerProvider
	// Propagator writes the trace context into a job's labels and a run's headers, and reads it there. Default:
	// propagation.TraceContext, with the labels traceparent and tracestate.
	Propagator propagation.TextMapPropagator
	// Database is the store's product by the conventions' names, such as "postgresql" or "sqlite"
	// (db.system.name). Default: omitted.
	Database string
	// Scrub removes secrets and personal data from the text of every error and reason before a span gets it. A
	// scrub.Scrubber may keep some families; scrub.Nothing keeps all. Default: scrub.Text.
	Scrub func(string) string
	// Links is the most links to jobs that a span of many jobs has, such as a claim's. Default [DefaultLinks].
	Links int
}

// Observer is an [observe.Observer] that makes spans. Give the same one to the store and to its engines.
type Observer struct {
	tracer     trace.Tracer
	propagator propagation.TextMapPropagator
	database   string
	scrub      func(string) string
	links      int
	prepared   sync.Map // an operation by its operationKey
}

var _ observe.Observer = (*Observer)(nil)

// New makes an observer.
func New(options Options) *Observer {
	if options.TracerProvider == nil {
		options.TracerProvider = otel.GetTracerProvider()
	}
	if options.Propagator == nil {
		options.Propagator = propagation.TraceContext{}
	}
	if options.Links <= 0 {
		options.Links = DefaultLinks
	}
	return &Observer{
		tracer:     options.TracerProvider.Tracer(scope, trace.WithSchemaURL(semconv.SchemaURL)),
		propagator: options.Propagator, database: options.Database, scrub: scrubbed.Text(options.Scrub), links: options.Links,
	}
}

// Begin starts spans that other spans nest in or continue.
func (o *Observer) Begin(ctx context.Context, c *observe.Call) context.Context {
	switch {
	case c.Kind == observe.KindStep && isHandle(c):
		return o.beginHandle(ctx, c)
	case c.Kind == observe.KindStep:
		return o.beginStep(ctx, c)
	case c.Kind == observe.KindStore && c.Inserts != nil:
		return o.beginEnqueue(ctx, c)
	case c.Kind == observe.KindEngine && c.Runs != nil:
		return o.beginStart(ctx, c)
	}
	return ctx
}

// End ends the spans that Begin started, and makes the spans of other calls worth one.
func (o *Observer) End(ctx context.Context, c *observe.Call) {
	switch {
	case c.Kind == observe.KindStep && isHandle(c):
		o.endHandle(ctx, c)
	case c.Kind == observe.KindStep:
		o.endStep(ctx, c)
	case c.Kind == observe.KindStore && c.Inserts != nil:
		o.endEnqueue(ctx, c)
	case c.Kind == observe.KindEngine && c.Runs != nil:
		o.endStart(ctx, c)
	default:
		o.called(ctx, c)
	}
}
