package trace

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/sluice-queue/sluice"
)

// operation holds the common parts of spans of one kind for the jobs of a queue. Each operation is made once,
// because most spans may not be sampled and should then cost little.
type operation struct {
	name string
	base []trace.SpanStartOption // the attributes that a sampler sees
}

type operationKey struct{ name, queue string }

// operationOn returns the operation on a single job, as done by the conventions' consumer.
func (o *Observer) operationOn(name, queue string) *operation {
	key := operationKey{name, queue}
	if made, is := o.prepared.Load(key); is {
		return made.(*operation)
	}
	attrs := messaging(name, queue, semconv.MessagingOperationTypeProcess)
	made, _ := o.prepared.LoadOrStore(key, &operation{name: named(name, queue), base: []trace.SpanStartOption{
		trace.WithSpanKind(trace.SpanKindConsumer), trace.WithAttributes(attrs...),
	}})
	return made.(*operation)
}

// startOn starts a span in the trace of a job. If the job is in no trace, the span starts one.
func (o *Observer) startOn(ctx context.Context, op *operation, labels map[string]string, more ...trace.SpanStartOption) (context.Context, trace.Span) {
	options := make([]trace.SpanStartOption, 0, len(op.base)+len(more)+1)
	options = append(append(options, op.base...), more...)
	if of := o.contextOf(labels); of.IsValid() {
		ctx = trace.ContextWithRemoteSpanContext(ctx, of)
	} else {
		options = append(options, trace.WithNewRoot())
	}
	return o.tracer.Start(ctx, op.name, options...)
}

// ofJob returns the attributes of a job.
func ofJob(id sluice.ID, tenant string, generation, attempt int) []attribute.KeyValue {
	attrs := append(make([]attribute.KeyValue, 0, 8), semconv.MessagingMessageIDKey.String(id.String()), keyAttempt.Int(attempt))
	if tenant != "" {
		attrs = append(attrs, keyTenant.String(tenant))
	}
	if generation > 1 {
		attrs = append(attrs, keyGeneration.Int(generation))
	}
	return attrs
}
