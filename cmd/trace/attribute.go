package trace

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/engine"
	"github.com/sluice-queue/sluice/observe"
)

// Attributes without a convention.
const (
	keyTenant     = attribute.Key("sluice.tenant")
	keyAttempt    = attribute.Key("sluice.attempt")
	keyGeneration = attribute.Key("sluice.generation")
	keyEngine     = attribute.Key("sluice.engine")
	keyRef        = attribute.Key("sluice.ref")
	keyEvent      = attribute.Key("sluice.event")
	keyReason     = attribute.Key("sluice.reason")
	keyDuplicates = attribute.Key("sluice.duplicates")
	keyJobs       = attribute.Key("sluice.jobs")
	keyRefused    = attribute.Key("sluice.refused")
	keyStep       = attribute.Key("sluice.step")
)

// named returns the name of a span by the messaging conventions: the operation and its destination.
func named(operation, queue string) string {
	if queue == "" {
		return operation
	}
	return operation + " " + queue
}

// messaging returns the attributes of an operation on jobs of a queue. A zero kind means none of the
// conventions' kinds.
func messaging(operation, queue string, kind attribute.KeyValue) []attribute.KeyValue {
	attrs := make([]attribute.KeyValue, 0, 10)
	attrs = append(attrs, semconv.MessagingSystemKey.String("sluice"), semconv.MessagingOperationNameKey.String(operation))
	if kind.Valid() {
		attrs = append(attrs, kind)
	}
	if queue != "" {
		attrs = append(attrs, semconv.MessagingDestinationNameKey.String(queue))
	}
	return attrs
}

// ofDatabase adds the attributes of a store's call by the database conventions, without statements.
func (o *Observer) ofDatabase(attrs []attribute.KeyValue, name string) []attribute.KeyValue {
	attrs = append(attrs, semconv.DBOperationNameKey.String(name))
	if o.database != "" {
		attrs = append(attrs, semconv.DBSystemNameKey.String(o.database))
	}
	return attrs
}

// fail records an error, if there is one.
func (o *Observer) fail(span trace.Span, err error, at time.Time) {
	if err == nil || !span.IsRecording() {
		return
	}
	text, kind := o.text(err.Error()), kindOf(err)
	span.AddEvent("exception", trace.WithTimestamp(at), trace.WithAttributes(
		semconv.ExceptionTypeKey.String(kind), semconv.ExceptionMessageKey.String(text)))
	span.SetAttributes(semconv.ErrorTypeKey.String(kind))
	span.SetStatus(codes.Error, text)
}

// maxText is the most bytes of a text that a span gets.
const maxText = 1 << 10

func (o *Observer) text(of string) string {
	of = strings.ToValidUTF8(o.scrub(of), "\uFFFD")
	if len(of) <= maxText {
		return of
	}
	return strings.ToValidUTF8(of[:maxText], "") + "…"
}

// kinds are the errors with a name of their own.
var kinds = []struct {
	err  error
	name string
}{
	{context.DeadlineExceeded, "timeout"},
	{context.Canceled, "cancelled"},
	{sluice.ErrLost, "lost"},
	{sluice.ErrCancelled, "cancelled"},
	{sluice.ErrNotAllowed, "not_allowed"},
	{sluice.ErrNotFound, "not_found"},
	{sluice.ErrUnavailable, "unavailable"},
	{sluice.ErrInvalid, "invalid"},
	{engine.ErrRefused, "engine_refused"},
	{engine.ErrRefTaken, "ref_taken"},
	{engine.ErrBusy, "engine_busy"},
	{engine.ErrUnavailable, "engine_unavailable"},
	{engine.ErrTarget, "engine_target"},
}

// kindOf returns an error's kind for error.type. There are few kinds.
func kindOf(err error) string {
	for _, kind := range kinds {
		if errors.Is(err, kind.err) {
			return kind.name
		}
	}
	return fmt.Sprintf("%T", err)
}

// ended returns the instant at which a call ended.
func ended(c *observe.Call) time.Time { return c.Began.Add(c.Took) }

// during returns the options of a span that is made after its call has ended.
func during(c *observe.Call, kind trace.SpanKind, attrs []attribute.KeyValue) []trace.SpanStartOption {
	return []trace.SpanStartOption{trace.WithTimestamp(c.Began), trace.WithSpanKind(kind), trace.WithAttributes(attrs...)}
}

// finish ends a span together with its call.
func (o *Observer) finish(span trace.Span, c *observe.Call) {
	o.fail(span, c.Err, ended(c))
	span.End(trace.WithTimestamp(ended(c)))
}
