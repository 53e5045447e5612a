package trace

import (
	"context"
	"maps"
	"unicode/utf8"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/sluice-queue/sluice"
)

// Context gives a context that continues the trace of a job, or of a run, by its labels or headers. If they tell of none,
// it is the context as it was.
func (o *Observer) Context(ctx context.Context, labels map[string]string) context.Context {
	if len(labels) == 0 {
		return ctx
	}
	return o.propagator.Extract(ctx, propagation.MapCarrier(labels))
}

// contextOf is the span that a job was enqueued in.
func (o *Observer) contextOf(labels map[string]string) trace.SpanContext {
	return trace.SpanContextFromContext(o.Context(context.Background(), labels))
}

// carried is what a propagator writes of a context; empty: it is in no trace.
func (o *Observer) carried(ctx context.Context) propagation.MapCarrier {
	carrier := propagation.MapCarrier{}
	o.propagator.Inject(ctx, carrier)
	return carrier
}

// labelled adds the context of a trace to labels, if they do not tell of one and have room. It never changes the map.
func (o *Observer) labelled(labels map[string]string, carried propagation.MapCarrier) map[string]string {
	for _, name := range o.propagator.Fields() {
		if _, theirs := labels[name]; theirs {
			return labels
		}
	}
	more := make(map[string]string, len(labels)+len(carried))
	maps.Copy(more, labels)
	for _, name := range o.propagator.Fields() { // the first matters most
		value, has := carried[name]
		if has && len(more) < sluice.MaxLabels && fits(name) && fits(value) {
			more[name] = value
		}
	}
	return more
}

// fits reports whether a store takes a text as a label's name or value. A tracestate that is longer is left out, as
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
