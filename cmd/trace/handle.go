package trace

import (
	"context"

	"go.opentelemetry.io/otel/trace"

	"github.com/sluice-queue/sluice/observe"
	"github.com/sluice-queue/sluice/step"
)

func isHandle(c *observe.Call) bool { return c.Name == step.Handle && len(c.Claims) == 1 }

// beginHandle starts the consumer's span, in which the handler runs. Its parent is the span that enqueued the
// job. A handler has one job, and the conventions allow the span of one message in its trace.
func (o *Observer) beginHandle(ctx context.Context, c *observe.Call) context.Context {
	job := c.Claims[0]
	ctx, span := o.startOn(withoutStep(ctx), o.operationOn("handle", job.Queue), job.Labels)
	if span.IsRecording() {
		span.SetAttributes(ofJob(job.ID, job.Tenant, job.Generation, job.Attempts+1)...)
	}
	return ctx
}

func (o *Observer) endHandle(ctx context.Context, c *observe.Call) {
	span := trace.SpanFromContext(ctx)
	o.fail(span, c.Err, ended(c))
	span.End()
}
