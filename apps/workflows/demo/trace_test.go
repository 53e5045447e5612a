package demo

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/apps/workflows/records"
	"github.com/sluice-queue/sluice/cmd/monitor"
	"github.com/sluice-queue/sluice/cmd/monitor/otlp"
)

// receiver is a server that accepts spans of OpenTelemetry.
type receiver struct {
	mu sync.Mutex
	// spans maps each trace to the names of its spans.
	spans map[string][]string
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(request.Body)
	var sent collector.ExportTraceServiceRequest
	if err == nil {
		err = proto.Unmarshal(body, &sent)
	}
	if err != nil || request.URL.Path != "/v1/traces" {
		http.Error(w, "not spans", http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, resource := range sent.ResourceSpans {
		for _, scope := range resource.ScopeSpans {
			for _, span := range scope.Spans {
				r.spans[string(span.TraceId)] = append(r.spans[string(span.TraceId)], span.Name)
			}
		}
	}
}

// The service sends the spans of an execution in one trace: of its enqueue, its dispatch and its run.
func TestSpansOfAnExecutionAreSent(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a Temporal server")
	}
	r := &receiver{spans: make(map[string][]string)}
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.URL)
	s := newSite(t, "10ms", func(d *records.Database) *monitor.Monitor {
		traces, err := otlp.New(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		m, err := d.Monitor(monitor.Options{Traces: traces})
		if err != nil {
			t.Fatal(err)
		}
		return m
	})
	id, _, err := s.db.Enqueue(t.Context(), "acme", records.NewExecution{Definition: "wait"})
	s.must(err)
	for {
		job, err := s.db.Client.Job(t.Context(), id)
		s.must(err)
		if job.State == sluice.StateCompleted {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	s.stop() // stop sends the last spans
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []string
	for _, names := range r.spans {
		all = append(all, names...)
		if slices.Contains(names, "enqueue executions") && slices.Contains(names, "dispatch executions") && slices.Contains(names, "run executions") {
			return
		}
	}
	slices.Sort(all)
	t.Errorf("no trace has the enqueue, the dispatch and the run of the execution; in %d traces there are %q", len(r.spans), slices.Compact(all))
}
