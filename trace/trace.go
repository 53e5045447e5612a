// Package trace makes spans of OpenTelemetry out of what package observe sees: of an enqueue, of what happens to each job
// until its end, and of the cycles in which dispatchers and upkeep work on many. The context of a trace travels with the
// job as labels, and with its run as headers, so that one trace goes through all processes that touch a job.
//
// It needs OpenTelemetry's API only. Without a TracerProvider that samples, nothing is recorded.
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

// scope is the name of what makes the spans.
const scope = "github.com/sluice-queue/sluice/trace"

// DefaultLinks is how many links to jobs a span of many has at the most.
const DefaultLinks = 32

// Options adjust the observer. The zero value traces with the global TracerProvider.
type Options struct {
	// TracerProvider makes the spans. Default: the global one.
	TracerProvider trace.TracerProvider
	// Propagator writes the context of a trace into a job's labels and a run's headers, and reads it there. Default:
	// propagation.TraceContext, which are the labels traceparent and tracestate.
	Propagator propagation.TextMapPropagator
	// Database is the store's product, by the conventions' names, such as "postgresql" or "sqlite" (db.system.name).
	// Default: it is left out.
	Database string
	// Scrub removes secrets and personal data from the text of every error and reason before a span gets it. That of a
	// scrub.Scrubber may leave some in, scrub.Nothing leaves all. Default: scrub.Text.
	Scrub func(string) string
	// Links is how many links to jobs a span of many has at the most, such as that of a claim. Default DefaultLinks.
	Links int
}

// Observer is an observe.Observer that makes spans. Give the same one to the store and to its engines.
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

// Begin starts the spans in which others are to be, or that others are to continue.
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

// End ends what Begin has started, and makes the spans of all else that was worth one.
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
