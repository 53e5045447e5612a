package trace

import (
	"context"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/sluice-queue/sluice/observe"
	"github.com/sluice-queue/sluice/step"
)

// openStep is a cycle, or a round of upkeep. A step gets a span as soon as it does something, because most steps
// find nothing to do.
type openStep struct {
	mu    sync.Mutex
	began observe.Call // only the facts known at its beginning
	base  context.Context
	ctx   context.Context // in its span
	span  trace.Span      // nil: it has none yet
	held  []observe.Call  // summaries of calls before it had a span
	over  bool
	links int // to jobs
}

// maxHeld is the most calls kept of a step that has done nothing so far.
const maxHeld = 16

type stepKey struct{}

func stepOf(ctx context.Context) *openStep {
	s, _ := ctx.Value(stepKey{}).(*openStep)
	return s
}

func withoutStep(ctx context.Context) context.Context {
	if stepOf(ctx) == nil {
		return ctx
	}
	return context.WithValue(ctx, stepKey{}, (*openStep)(nil))
}

func (o *Observer) beginStep(ctx context.Context, c *observe.Call) context.Context {
	s := &openStep{base: withoutStep(ctx), began: summary(c)}
	return context.WithValue(ctx, stepKey{}, s)
}

// summary returns the parts of a call to keep: not the jobs.
func summary(c *observe.Call) observe.Call {
	return observe.Call{Kind: c.Kind, Name: c.Name, Queue: c.Queue, Engine: c.Engine, Began: c.Began, Took: c.Took, Err: c.Err, Jobs: c.Jobs}
}

// open gives a step its span, if it has none yet, and returns the context within that span.
func (s *openStep) open(ctx context.Context, o *Observer) context.Context {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opened(o)
	return trace.ContextWithSpan(ctx, s.span)
}

func (s *openStep) opened(o *Observer) context.Context {
	if s.span != nil {
		return s.ctx
	}
	name := s.began.Name
	if name == step.Forward {
		name = step.Cycle
	}
	attrs := append(messaging(name, s.began.Queue, attribute.KeyValue{}), keyStep.String(s.began.Name))
	options := append(during(&s.began, trace.SpanKindInternal, attrs), trace.WithNewRoot())
	if caller := trace.SpanContextFromContext(s.base); caller.IsSampled() {
		options = append(options, trace.WithLinks(trace.Link{SpanContext: caller}))
	}
	s.ctx, s.span = o.tracer.Start(s.base, named(name, s.began.Queue), options...)
	for i := range s.held {
		o.child(s.ctx, &s.held[i])
	}
	s.held = nil
	return s.ctx
}

// endStep ends the span of a step. A step that did nothing has none, unless it failed for another reason than
// the end of its context.
func (o *Observer) endStep(ctx context.Context, c *observe.Call) {
	s := stepOf(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.span == nil && c.Jobs == 0 && (c.Err == nil || ctx.Err() != nil) {
		s.over, s.held = true, nil
		return
	}
	s.opened(o)
	s.over = true
	s.span.SetAttributes(keyJobs.Int(c.Jobs))
	o.finish(s.span, c)
}

// called makes the span of a call that has ended, within its step or within the caller's span. A call without
// either gets a span only if it is a worker's claim or settle, which serve many jobs at once.
func (o *Observer) called(ctx context.Context, c *observe.Call) {
	s := stepOf(ctx)
	switch {
	case s != nil:
		s.called(o, c)
	case isClaim(c) || isSettle(c):
		o.alone(ctx, c)
	case !isTending(c) && trace.SpanFromContext(ctx).IsRecording():
		o.child(ctx, c)
	}
	if isSettle(c) && c.Err == nil {
		o.runsEnded(ctx, c)
	}
}

// alone makes the span of a worker's claim or settle, which belongs to many jobs and so to no job's trace.
func (o *Observer) alone(ctx context.Context, c *observe.Call) {
	if c.Jobs == 0 {
		return
	}
	span := o.startChild(ctx, c, trace.WithNewRoot())
	if span.IsRecording() {
		jobs := claimed(c)
		if isSettle(c) {
			jobs = settled(c)
		}
		o.link(span, o.links, jobs)
	}
	o.finish(span, c)
}

// isTending reports whether a call only keeps processes alive and informed. There are many of these, even
// without work.
func isTending(c *observe.Call) bool {
	switch c.Name {
	case "renew", "heartbeat", "deregister", "elect", "next_due", "queues":
		return c.Kind == observe.KindStore
	}
	return false
}

func isClaim(c *observe.Call) bool  { return c.Kind == observe.KindStore && c.Name == "claim" }
func isSettle(c *observe.Call) bool { return c.Kind == observe.KindStore && c.Name == "settle" }

// called takes in a call of a step, unless the call found nothing to do.
func (s *openStep) called(o *Observer, c *observe.Call) {
	if c.Jobs == 0 && c.Err == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return
	}
	if s.span == nil && !moves(c) {
		if len(s.held) < maxHeld {
			s.held = append(s.held, summary(c))
		}
		return
	}
	ctx := s.opened(o)
	if !s.span.IsRecording() {
		return
	}
	if isClaim(c) {
		s.links += o.link(s.span, o.links-s.links, claimed(c))
	}
	o.child(ctx, c)
}

// moves reports whether a call has moved a job, so that its step is worth a span.
func moves(c *observe.Call) bool {
	if c.Kind != observe.KindStore || c.Jobs == 0 {
		return false
	}
	switch c.Name {
	case "claim", "settle", "recover", "expire", "cancel":
		return true
	}
	return false
}

// child makes the span of a call that has ended.
func (o *Observer) child(ctx context.Context, c *observe.Call) { o.finish(o.startChild(ctx, c), c) }

func (o *Observer) startChild(ctx context.Context, c *observe.Call, options ...trace.SpanStartOption) trace.Span {
	var attrs []attribute.KeyValue
	switch {
	case c.Kind == observe.KindEngine:
		attrs = append(messaging(c.Name, c.Queue, attribute.KeyValue{}), keyEngine.String(c.Engine))
	case isClaim(c):
		attrs = o.ofDatabase(messaging(c.Name, c.Queue, semconv.MessagingOperationTypeReceive), c.Name)
	case isSettle(c):
		attrs = o.ofDatabase(messaging(c.Name, c.Queue, semconv.MessagingOperationTypeSettle), c.Name)
	default:
		attrs = o.ofDatabase(messaging(c.Name, c.Queue, attribute.KeyValue{}), c.Name)
	}
	if c.Jobs > 0 {
		attrs = append(attrs, semconv.MessagingBatchMessageCountKey.Int(c.Jobs))
	}
	if refused := refusals(c.Errs); refused > 0 {
		attrs = append(attrs, keyRefused.Int(refused))
	}
	_, span := o.tracer.Start(ctx, named(c.Name, c.Queue), append(during(c, trace.SpanKindClient, attrs), options...)...)
	return span
}

func refusals(errs []error) (count int) {
	for _, err := range errs {
		if err != nil {
			count++
		}
	}
	return count
}
