package trace

import (
	"context"
	"slices"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/observe"
)

// beginEnqueue starts the producer's span, the parent of every job of the call, and writes its context into the
// jobs. A job that already has a trace context keeps it, such as a forwarded job or a run of the local engine.
func (o *Observer) beginEnqueue(ctx context.Context, c *observe.Call) context.Context {
	if len(c.Inserts) == 0 {
		return ctx
	}
	if s := stepOf(ctx); s != nil {
		ctx = s.open(ctx, o)
	}
	queue := queueOf(c.Inserts)
	attrs := messaging("enqueue", queue, semconv.MessagingOperationTypeSend)
	if len(c.Inserts) == 1 {
		in := &c.Inserts[0]
		attrs = append(attrs, semconv.MessagingMessageIDKey.String(in.ID.String()))
		if in.Tenant != "" {
			attrs = append(attrs, keyTenant.String(in.Tenant))
		}
	} else {
		attrs = append(attrs, semconv.MessagingBatchMessageCountKey.Int(len(c.Inserts)))
	}
	attrs = o.ofDatabase(attrs, c.Name)
	ctx, _ = o.tracer.Start(ctx, named("enqueue", queue), during(c, trace.SpanKindProducer, attrs)...)
	if carried := o.carried(ctx); len(carried) > 0 {
		c.Inserts = o.carry(c.Inserts, carried)
	}
	return ctx
}

// queueOf returns the queue of all jobs; empty: several queues.
func queueOf(jobs []sluice.Insert) string {
	for i := range jobs {
		if jobs[i].Queue != jobs[0].Queue {
			return ""
		}
	}
	return jobs[0].Queue
}

// carry gives jobs labels with a trace context. Jobs without labels share one map.
func (o *Observer) carry(jobs []sluice.Insert, carried propagation.MapCarrier) []sluice.Insert {
	jobs = slices.Clone(jobs)
	var alone map[string]string
	for i := range jobs {
		in := &jobs[i]
		if len(in.Labels) > 0 {
			in.Labels = o.labelled(in.Labels, carried)
			continue
		}
		if alone == nil {
			alone = o.labelled(nil, carried)
		}
		in.Labels = alone
	}
	return jobs
}

func (o *Observer) endEnqueue(ctx context.Context, c *observe.Call) {
	if len(c.Inserts) == 0 {
		return
	}
	span := trace.SpanFromContext(ctx)
	if span.IsRecording() {
		span.SetAttributes(o.received(c)...)
	}
	o.finish(span, c)
}

// received returns the attributes of the result of an enqueue.
func (o *Observer) received(c *observe.Call) (attrs []attribute.KeyValue) {
	duplicates := 0
	for _, receipt := range c.Receipts {
		if receipt.Duplicate {
			duplicates++
		}
	}
	if duplicates > 0 {
		attrs = append(attrs, keyDuplicates.Int(duplicates))
	}
	return attrs
}
