package trace_test

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	api "go.opentelemetry.io/otel/trace"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/cmd/trace"
	"github.com/sluice-queue/sluice/forward"
	"github.com/sluice-queue/sluice/observe"
	"github.com/sluice-queue/sluice/store/memory"
)

func TestLabelsOfTheCallerStayAsTheyAre(t *testing.T) {
	t.Parallel()
	const theirs = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	full := make(map[string]string)
	for i := range sluice.MaxLabels {
		full[fmt.Sprint("label", i)] = "x"
	}
	almost := maps.Clone(full)
	delete(almost, "label0")
	for name, test := range map[string]struct {
		labels map[string]string
		traced bool
	}{
		"none":          {nil, true},
		"some":          {map[string]string{"batch": "7"}, true},
		"room for one":  {almost, true},
		"no room":       {full, false},
		"their context": {map[string]string{"traceparent": theirs}, false},
		"no context":    {map[string]string{"traceparent": "mine"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProcess()
			client := clientOf(t, observe.Store(memory.New(memory.Options{}), p.observer), "mail", nil)
			before := maps.Clone(test.labels)
			id := enqueue(t, p.caller(t.Context()), client, sluice.NewJob{Queue: "mail", EnqueueOptions: sluice.EnqueueOptions{Labels: test.labels}})
			if !maps.Equal(before, test.labels) {
				t.Errorf("the caller's map became %v", test.labels)
			}
			job, err := client.Job(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			for label, value := range before {
				if job.Labels[label] != value {
					t.Errorf("label %s became %q, was %q", label, job.Labels[label], value)
				}
			}
			if traced := job.Labels["traceparent"] != before["traceparent"]; traced != test.traced || len(job.Labels) > sluice.MaxLabels {
				t.Errorf("the job has the labels %v", job.Labels)
			}
		})
	}
}

func TestATracestateThatIsTooLongIsLeftOut(t *testing.T) {
	t.Parallel()
	p := newProcess()
	client := clientOf(t, observe.Store(memory.New(memory.Options{}), p.observer), "mail", nil)
	for length, want := range map[int]bool{200: true, 256: false} {
		state, err := api.ParseTraceState("vendor=" + strings.Repeat("x", length-len("vendor=")))
		if err != nil {
			t.Fatal(err)
		}
		from := api.NewSpanContext(api.SpanContextConfig{TraceID: api.TraceID{1}, SpanID: api.SpanID{2}, TraceFlags: api.FlagsSampled, TraceState: state, Remote: true})
		id := enqueue(t, api.ContextWithRemoteSpanContext(t.Context(), from), client, sluice.NewJob{Queue: "mail"})
		job, err := client.Job(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if _, has := job.Labels["tracestate"]; has != want || job.Labels["traceparent"] == "" {
			t.Errorf("a tracestate of %d bytes gave the labels %v", length, job.Labels)
		}
	}
}

func TestWithoutASampledSpanNothingIsAdded(t *testing.T) {
	t.Parallel()
	client := clientOf(t, observe.Store(memory.New(memory.Options{}), trace.New(trace.Options{})), "mail", nil)
	id := enqueue(t, t.Context(), client, sluice.NewJob{Queue: "mail"})
	job, err := client.Job(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if len(job.Labels) > 0 {
		t.Errorf("without a provider the job has the labels %v", job.Labels)
	}
}

func TestAForwardedJobKeepsItsTrace(t *testing.T) {
	t.Parallel()
	producer, forwards := newProcess(), newProcess()
	edge, centre := memory.New(memory.Options{}), memory.New(memory.Options{})
	client := clientOf(t, observe.Store(edge, producer.observer), "events", nil)
	id := enqueue(t, producer.caller(t.Context()), client, sluice.NewJob{Queue: "events"})
	f := forward.New(observe.Store(edge, forwards.observer), observe.Store(centre, forwards.observer), forward.Options{
		Queues: []string{"events"}, Centre: "centre", Logger: quiet,
	})
	if _, err := f.Once(t.Context()); err != nil {
		t.Fatal(err)
	}
	there, err := centre.Job(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	sent := producer.one(t, "enqueue events")
	if of := api.SpanContextFromContext(forwards.observer.Context(t.Context(), there.Labels)); of.SpanID() != sent.SpanContext.SpanID() {
		t.Errorf("at the centre the job has the labels %v", there.Labels)
	}
	cycle := forwards.one(t, "cycle events")
	wantParent(t, forwards.one(t, "enqueue events"), cycle)
	wantParent(t, forwards.one(t, "forward events"), sent)
	wantAttrs(t, cycle, map[string]string{"sluice.step": "forward"})
}
