package trace_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/cmd/trace"
	"github.com/sluice-queue/sluice/scrub"
	"github.com/sluice-queue/sluice/store/sqlite"
)

var quiet = slog.New(slog.DiscardHandler)

// process stands for one process: it has its own provider, and the spans that it exported.
type process struct {
	provider *sdk.TracerProvider
	spans    *tracetest.InMemoryExporter
	observer *trace.Observer
}

func newProcess(options ...sdk.TracerProviderOption) *process {
	spans := tracetest.NewInMemoryExporter()
	provider := sdk.NewTracerProvider(append([]sdk.TracerProviderOption{sdk.WithSyncer(spans)}, options...)...)
	return &process{provider, spans, trace.New(trace.Options{TracerProvider: provider, Database: "sqlite", Scrub: scrub.Text})}
}

func (p *process) named(name string) (found tracetest.SpanStubs) {
	for _, span := range p.spans.GetSpans() {
		if span.Name == name {
			found = append(found, span)
		}
	}
	return found
}

// one returns the only span with a name.
func (p *process) one(t *testing.T, name string) tracetest.SpanStub {
	t.Helper()
	found := p.named(name)
	if len(found) != 1 {
		t.Fatalf("there are %d spans %q, want 1; all: %q", len(found), name, p.names())
	}
	return found[0]
}

func (p *process) names() (names []string) {
	for _, span := range p.spans.GetSpans() {
		names = append(names, span.Name)
	}
	return names
}

// caller returns a context in a span of the program itself.
func (p *process) caller(ctx context.Context) context.Context {
	ctx, span := p.provider.Tracer("test").Start(ctx, "request")
	span.End()
	return ctx
}

func attr(span tracetest.SpanStub, key string) string {
	for _, a := range span.Attributes {
		if string(a.Key) == key {
			return a.Value.String()
		}
	}
	return ""
}

func wantAttrs(t *testing.T, span tracetest.SpanStub, want map[string]string) {
	t.Helper()
	for key, value := range want {
		if got := attr(span, key); got != value {
			t.Errorf("span %q has %s=%q, want %q", span.Name, key, got, value)
		}
	}
}

func wantParent(t *testing.T, span, parent tracetest.SpanStub) {
	t.Helper()
	if span.Parent.SpanID() != parent.SpanContext.SpanID() || span.SpanContext.TraceID() != parent.SpanContext.TraceID() {
		t.Errorf("span %q is not the child of %q", span.Name, parent.Name)
	}
}

func wantLink(t *testing.T, span, to tracetest.SpanStub) {
	t.Helper()
	for _, link := range span.Links {
		if link.SpanContext.SpanID() == to.SpanContext.SpanID() && link.SpanContext.TraceID() == to.SpanContext.TraceID() {
			return
		}
	}
	t.Errorf("span %q has no link to %q", span.Name, to.Name)
}

// opened opens the same file again, as another process would.
func opened(t *testing.T, path string) sluice.Store {
	t.Helper()
	store, err := sqlite.Open(t.Context(), path, sqlite.Options{Migrate: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return store
}

func clientOf(t *testing.T, store sluice.Store, queue string, change func(*sluice.Settings)) *sluice.Client {
	t.Helper()
	client := sluice.NewClient(store, sluice.ClientOptions{Logger: quiet})
	settings := sluice.DefaultSettings()
	if change != nil {
		change(&settings)
	}
	if _, err := client.EnsureQueue(t.Context(), queue, settings, sluice.Act{By: "test"}); err != nil {
		t.Fatal(err)
	}
	return client
}

func enqueue(t *testing.T, ctx context.Context, client *sluice.Client, job sluice.NewJob) sluice.ID {
	t.Helper()
	if job.Payload == nil {
		job.Payload = []byte(`{}`)
	}
	receipt, err := client.Enqueue(ctx, job)
	if err != nil {
		t.Fatal(err)
	}
	return receipt.ID
}

// await waits until a job is in a state.
func await(t *testing.T, client *sluice.Client, id sluice.ID, state sluice.State) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		job, err := client.Job(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if job.State == state {
			return
		}
		select {
		case <-tick.C:
		case <-t.Context().Done():
			t.Fatalf("job %s is %s, want %s", id, job.State, state)
		}
	}
}

// working runs a worker until the test ends, or until stop is called.
func working(t *testing.T, run func(context.Context) error) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(stop)
	return stop
}
