package trace

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/sluice-queue/sluice"
)

// operation is what the spans of one kind for the jobs of a queue have in common. It is made once, because most of them
// may not be sampled, and are to cost little then.
type operation struct {
	name string
	base []trace.SpanStartOption // what a sampler gets to know
}

type operationKey struct{ name, queue string }

// operationOn is one that is done to a single job, as the conventions' consumer does.
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

// startOn starts a span in the trace of a job, which begins with it if the job is in none.
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

// ofJob are the attributes of a job.
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
