package service_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/contrib/opentelemetry"
	"go.temporal.io/sdk/interceptor"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/cmd/trace"
	"github.com/sluice-queue/sluice/dispatcher"
	"github.com/sluice-queue/sluice/engine"
	adapter "github.com/sluice-queue/sluice/engine/temporal"
	"github.com/sluice-queue/sluice/observe"
	"github.com/sluice-queue/sluice/store/memory"
	"github.com/sluice-queue/sluice/upkeep"
)

// provider returns a provider of spans for one process, and the place where the spans go.
func provider() (*sdktrace.TracerProvider, *tracetest.InMemoryExporter) {
	spans := tracetest.NewInMemoryExporter()
	return sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans)), spans
}

func named(t *testing.T, spans *tracetest.InMemoryExporter, name string) tracetest.SpanStub {
	t.Helper()
	for _, span := range spans.GetSpans() {
		if span.Name == name {
			return span
		}
	}
	t.Fatalf("there is no span %q among %d", name, len(spans.GetSpans()))
	return tracetest.SpanStub{}
}

// onTemporal runs a workflow worker with Temporal's interceptor for OpenTelemetry, and returns an engine.
func onTemporal(t *testing.T, by *sdktrace.TracerProvider) *adapter.Engine {
	t.Helper()
	tracing, err := opentelemetry.NewTracingInterceptor(opentelemetry.TracerOptions{Tracer: by.Tracer("workflows")})
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.DialContext(t.Context(), client.Options{
		HostPort: temporal(t), Interceptors: []interceptor.ClientInterceptor{tracing},
		Logger: sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler)),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	w := worker.New(c, "traced", worker.Options{})
	w.RegisterWorkflowWithOptions(func(workflow.Context, any) error { return nil }, workflow.RegisterOptions{Name: "Pay"})
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
	return adapter.New(c, adapter.Options{})
}

func TestAWorkflowsSpansAreInTheTraceOfWhoEnqueuedItsJob(t *testing.T) {
	if testing.Short() {
		t.Skip("it needs a Temporal server")
	}
	t.Parallel()
	produces, enqueued := provider()
	dispatches, dispatched := provider()
	executes, executed := provider()
	store := memory.New(memory.Options{})
	client := sluice.NewClient(observe.Store(store, trace.New(trace.Options{TracerProvider: produces})), sluice.ClientOptions{})
	settings := sluice.DefaultSettings()
	settings.Engine, settings.RunType, settings.RunTaskQueue = "temporal", "Pay", "traced"
	if _, err := client.EnsureQueue(t.Context(), "pay", settings, sluice.Act{By: "test"}); err != nil {
		t.Fatal(err)
	}
	receipt, err := client.Enqueue(t.Context(), sluice.NewJob{Queue: "pay", Payload: []byte(`{}`)})
	if err != nil {
		t.Fatal(err)
	}

	observer := trace.New(trace.Options{TracerProvider: dispatches})
	engines := map[string]engine.Engine{"temporal": observe.Engine(onTemporal(t, executes), "temporal", observer)}
	quiet := slog.New(slog.DiscardHandler)
	seen := observe.Store(store, observer)
	if _, err := dispatcher.New(seen, dispatcher.Options{Engines: engines, Logger: quiet}).Once(t.Context(), "pay"); err != nil {
		t.Fatal(err)
	}
	untilCompleted(t, client, upkeep.New(seen, upkeep.Options{Engines: engines, Logger: quiet}), receipt.ID)

	producer, dispatch := named(t, enqueued, "enqueue pay"), named(t, dispatched, "dispatch pay")
	run := named(t, executed, "RunWorkflow:Pay")
	if run.Parent.SpanID() != dispatch.SpanContext.SpanID() || dispatch.Parent.SpanID() != producer.SpanContext.SpanID() {
		t.Error("enqueue, dispatch and workflow are not each other's children")
	}
	ended := named(t, dispatched, "run pay")
	for _, span := range []tracetest.SpanStub{dispatch, run, ended} {
		if span.SpanContext.TraceID() != producer.SpanContext.TraceID() {
			t.Errorf("span %q is in another trace", span.Name)
		}
	}
}

// untilCompleted runs upkeep until a job has completed.
func untilCompleted(t *testing.T, client *sluice.Client, tends *upkeep.Upkeep, id sluice.ID) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), 10*time.Minute) // the machine may be busy
	defer stop()
	look := time.NewTicker(50 * time.Millisecond)
	defer look.Stop()
	for {
		if _, err := tends.Once(ctx, true); err != nil {
			t.Fatal(err)
		}
		job, err := client.Job(ctx, id)
		if err != nil {
			t.Fatal(err)
		}
		if job.State == sluice.StateCompleted {
			return
		}
		<-look.C
	}
}
