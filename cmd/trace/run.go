package trace

import (
	"context"
	"maps"
	"slices"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/engine"
	"github.com/sluice-queue/sluice/observe"
	"github.com/sluice-queue/sluice/step"
)

type startKey struct{}

// start is a call that asks an engine to start runs.
type start struct {
	span trace.Span
	jobs []trace.Span // one for each run
}

// beginStart starts a span for the call, in the dispatcher's cycle. Each job also gets one in its own trace,
// which the run continues by its headers.
func (o *Observer) beginStart(ctx context.Context, c *observe.Call) context.Context {
	if len(c.Runs) == 0 {
		return ctx
	}
	if s := stepOf(ctx); s != nil {
		ctx = s.open(ctx, o)
	}
	attrs := append(messaging("start", c.Queue, attribute.KeyValue{}), keyEngine.String(c.Engine), semconv.MessagingBatchMessageCountKey.Int(len(c.Runs)))
	ctx, span := o.tracer.Start(ctx, named("start", c.Queue), during(c, trace.SpanKindClient, attrs)...)
	s := &start{span: span, jobs: make([]trace.Span, len(c.Runs))}
	c.Runs = slices.Clone(c.Runs)
	for i := range c.Runs {
		s.jobs[i] = o.dispatch(ctx, c, &c.Runs[i], span.SpanContext())
	}
	return context.WithValue(ctx, startKey{}, s)
}

// dispatch starts the span of one job that is handed to an engine.
func (o *Observer) dispatch(ctx context.Context, c *observe.Call, run *engine.Run, batch trace.SpanContext) trace.Span {
	ctx, span := o.startOn(ctx, o.operationOn("dispatch", c.Queue), run.Labels, trace.WithTimestamp(c.Began))
	if span.IsRecording() {
		span.SetAttributes(append(ofJob(run.Job, run.Tenant, run.Generation, run.Attempt),
			keyEngine.String(c.Engine), keyRef.String(o.text(run.Ref)))...)
		if batch.IsSampled() {
			span.AddLink(trace.Link{SpanContext: batch})
		}
	}
	headers := o.carried(ctx)
	maps.Copy(headers, run.Headers) // existing headers stay
	if len(headers) > 0 {
		run.Headers = headers
	}
	return span
}

func (o *Observer) endStart(ctx context.Context, c *observe.Call) {
	s, _ := ctx.Value(startKey{}).(*start)
	if s == nil {
		return
	}
	at := ended(c)
	for i, span := range s.jobs {
		if i < len(c.Errs) {
			o.fail(span, c.Errs[i], at)
		}
		span.End(trace.WithTimestamp(at))
	}
	if refused := refusals(c.Errs); refused > 0 {
		s.span.SetAttributes(keyRefused.Int(refused))
	}
	o.finish(s.span, c)
}

// runsEnded makes a span in the trace of each job whose run has ended, or is no longer known, and of each
// forwarded job. For jobs of workers, the handler's span shows the work.
func (o *Observer) runsEnded(ctx context.Context, c *observe.Call) {
	s := stepOf(ctx)
	forwards := s != nil && s.began.Name == step.Forward
	if s != nil && s.began.Name == step.Cycle {
		return // the engine took the job just now
	}
	for i := range c.Settlements {
		settled := &c.Settlements[i]
		if i < len(c.Errs) && c.Errs[i] != nil || settled.Claim == nil || settled.Claim.Ref == "" || settled.Event == sluice.EventDispatch {
			continue
		}
		o.runEnded(ctx, c, settled, forwards)
	}
}

func (o *Observer) runEnded(ctx context.Context, c *observe.Call, settled *sluice.Settlement, forwarded bool) {
	job, at := settled.Claim, ended(c)
	operation := "run"
	if forwarded {
		operation = "forward"
	}
	_, span := o.startOn(ctx, o.operationOn(operation, job.Queue), job.Labels, trace.WithTimestamp(heldSince(job, at)))
	if !span.IsRecording() {
		return
	}
	attrs := append(ofJob(job.ID, job.Tenant, job.Generation, job.Attempts+1), keyEvent.String(string(settled.Event)), keyEngine.String(o.text(job.Engine)))
	if !forwarded {
		attrs = append(attrs, keyRef.String(o.text(job.Ref)))
	}
	if settled.Reason != "" {
		attrs = append(attrs, keyReason.String(o.text(settled.Reason)))
	}
	span.SetAttributes(attrs...)
	if s := stepOf(ctx); s != nil {
		span.AddLink(trace.LinkFromContext(s.open(ctx, o)))
	}
	if settled.Error != "" {
		span.SetStatus(codes.Error, o.text(settled.Error))
	}
	span.End(trace.WithTimestamp(at))
}

// heldSince returns since when a job was held. The claim's time is by the store's clock, which may be ahead of
// this process's.
func heldSince(job *sluice.Claim, until time.Time) time.Time {
	since := job.ReceivedAt
	if since.IsZero() {
		since = job.ClaimedAt
	}
	if since.IsZero() || since.After(until) {
		return until
	}
	return since
}
