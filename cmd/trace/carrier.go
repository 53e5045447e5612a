package trace

import (
	"context"
	"maps"
	"unicode/utf8"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/sluice-queue/sluice"
)

// Context returns a context that continues the trace of a job or a run, by its labels or headers. Without a
// trace in them, Context returns ctx.
func (o *Observer) Context(ctx context.Context, labels map[string]string) context.Context {
	if len(labels) == 0 {
		return ctx
	}
	return o.propagator.Extract(ctx, propagation.MapCarrier(labels))
}

// contextOf returns the span in which a job was enqueued.
func (o *Observer) contextOf(labels map[string]string) trace.SpanContext {
	return trace.SpanContextFromContext(o.Context(context.Background(), labels))
}

// carried returns the propagator's form of a context; empty: the context has no trace.
func (o *Observer) carried(ctx context.Context) propagation.MapCarrier {
	carrier := propagation.MapCarrier{}
	o.propagator.Inject(ctx, carrier)
	return carrier
}

// labelled returns labels with a trace context added, if they have none and there is room. labelled never
// changes the map.
func (o *Observer) labelled(labels map[string]string, carried propagation.MapCarrier) map[string]string {
	for _, name := range o.propagator.Fields() {
		if _, theirs := labels[name]; theirs {
			return labels
		}
	}
	more := make(map[string]string, len(labels)+len(carried))
	maps.Copy(more, labels)
	for _, name := range o.propagator.Fields() { // the first field matters most
		value, has := carried[name]
		if has && len(more) < sluice.MaxLabels && fits(name) && fits(value) {
			more[name] = value
		}
	}
	return more
}

// fits reports whether a store accepts a text as a label's name or value. A longer tracestate is left out, as
// W3C Trace Context allows.
func fits(text string) bool {
	if text == "" || len(text) > sluice.MaxLabelBytes || !utf8.ValidString(text) {
		return false
	}
	for _, r := range text {
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			return false
		}
	}
	return true
}
