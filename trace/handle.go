package trace

import (
	"context"

	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/observe"
)

func isHandle(c *observe.Call) bool { return c.Name == sluice.StepHandle && len(c.Claims) == 1 }

// beginHandle starts the consumer's span, in which the handler runs. It is the child of the span that enqueued the job:
// a handler has one job, and the conventions let the span of one message be in its trace.
func (o *Observer) beginHandle(ctx context.Context, c *observe.Call) context.Context {
	job := c.Claims[0]
	attrs := messaging("handle", job.Queue, semconv.MessagingOperationTypeProcess)
	attrs = ofJob(attrs, job.ID, job.Tenant, job.Generation, job.Attempts+1)
	ctx, root := o.jobContext(withoutStep(ctx), job.Labels)
	ctx, _ = o.tracer.Start(ctx, named("handle", job.Queue), append(during(c, trace.SpanKindConsumer, attrs), root...)...)
	return ctx
}

func (o *Observer) endHandle(ctx context.Context, c *observe.Call) {
	o.finish(trace.SpanFromContext(ctx), c)
}
