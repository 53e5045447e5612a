package cli_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/sluice-queue/sluice/cmd/cli"
)

// receiver accepts spans as an OpenTelemetry collector does.
type receiver struct {
	mu    sync.Mutex
	spans []received
	wrong error // the last error in a request
}

// received is a span with the name of its service.
type received struct {
	service string
	span    *tracepb.Span
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	var batch collector.ExportTraceServiceRequest
	body, err := io.ReadAll(request.Body)
	if err == nil {
		err = proto.Unmarshal(body, &batch)
	}
	if err == nil && (request.URL.Path != "/v1/traces" || request.Header.Get("Content-Type") != "application/x-protobuf") {
		err = fmt.Errorf("%s was sent to %s", request.Header.Get("Content-Type"), request.URL.Path)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.wrong = err
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	for _, of := range batch.GetResourceSpans() {
		service := ""
		for _, attribute := range of.GetResource().GetAttributes() {
			if attribute.GetKey() == "service.name" {
				service = attribute.GetValue().GetStringValue()
			}
		}
		for _, scope := range of.GetScopeSpans() {
			for _, span := range scope.GetSpans() {
				r.spans = append(r.spans, received{service, span})
			}
		}
	}
}

// lines returns a line for each span: its service, its name, its trace and its parent.
func (r *receiver) lines() (lines []string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	names := make(map[string]string)
	for _, s := range r.spans {
		names[string(s.span.GetSpanId())] = s.span.GetName()
	}
	for _, s := range r.spans {
		parent := "nothing"
		if id := s.span.GetParentSpanId(); len(id) > 0 {
			parent = "something else"
			if name := names[string(id)]; name != "" {
				parent = name
			}
		}
		lines = append(lines, fmt.Sprintf("%s: %s in %x, child of %s, %d links", s.service, s.span.GetName(), s.span.GetTraceId(), parent, len(s.span.GetLinks())))
	}
	slices.Sort(lines)
	return lines, r.wrong
}

// receivers maps URLs to the receivers of the scripts.
var receivers sync.Map

// receive starts a receiver, as in `receiver`. Programs that the script runs later send their spans there. With
// `receiver silent`, the receiver never answers.
func receive(ts *testscript.TestScript, _ bool, args []string) {
	r := &receiver{}
	var answers http.Handler = r
	if len(args) > 0 {
		answers = http.HandlerFunc(func(_ http.ResponseWriter, request *http.Request) {
			_, _ = io.Copy(io.Discard, request.Body) // without this, the server does not notice that the sender has gone
			<-request.Context().Done()
		})
	}
	server := httptest.NewServer(answers)
	ts.Defer(server.Close)
	receivers.Store(server.URL, r)
	ts.Setenv("RECEIVER", server.URL)
	ts.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.URL)
}

// spans writes the received spans into a file, as in `spans FILE`.
func spans(ts *testscript.TestScript, _ bool, args []string) {
	r, _ := receivers.Load(ts.Getenv("RECEIVER"))
	lines, err := r.(*receiver).lines()
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(strings.Join(lines, "\n")+"\n"), 0o600))
}

func TestVariablesSayWhereTracesGo(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		env  map[string]string
		want []string
		told int
	}{
		"nothing is off":      {nil, nil, 0},
		"an endpoint is otlp": {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x"}, []string{"otlp"}, 0},
		"one for traces too":  {map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://x"}, []string{"otlp"}, 0},
		"none":                {map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://x", "OTEL_TRACES_EXPORTER": "none"}, nil, 0},
		"disabled":            {map[string]string{"OTEL_TRACES_EXPORTER": "otlp", "OTEL_SDK_DISABLED": "True"}, nil, 0},
		"otlp":                {map[string]string{"OTEL_TRACES_EXPORTER": "otlp"}, []string{"otlp"}, 0},
		"both":                {map[string]string{"OTEL_TRACES_EXPORTER": "otlp, console"}, []string{"otlp", "console"}, 0},
		"grpc":                {map[string]string{"OTEL_TRACES_EXPORTER": "otlp", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, nil, 1},
		"another":             {map[string]string{"OTEL_TRACES_EXPORTER": "zipkin,console"}, []string{"console"}, 1},
	} {
		got, told := cli.TraceExporters(func(variable string) string { return test.env[variable] })
		if !slices.Equal(got, test.want) || len(told) != test.told {
			t.Errorf("%s: traces go to %q, and it is told %q; want %q", name, got, told, test.want)
		}
	}
}
