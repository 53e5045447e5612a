package cli

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/exporters/stdout/stdouttrace"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"

	"github.com/sluice-queue/sluice/internal/event"
	"github.com/sluice-queue/sluice/observe"
	"github.com/sluice-queue/sluice/trace"
)

// traceExporters says where OpenTelemetry's variables want spans to go: otlp, console, both or nowhere. Nowhere is the
// default, unless an endpoint is named. What cannot be done is told, and left out.
func traceExporters(env func(string) string) (exporters, told []string) {
	if strings.EqualFold(env("OTEL_SDK_DISABLED"), "true") {
		return nil, nil
	}
	named := env("OTEL_TRACES_EXPORTER")
	if named == "" && cmp.Or(env("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"), env("OTEL_EXPORTER_OTLP_ENDPOINT")) != "" {
		named = "otlp"
	}
	for name := range strings.SplitSeq(named, ",") {
		switch name = strings.TrimSpace(name); name {
		case "", "none":
		case "otlp":
			protocol := cmp.Or(env("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"), env("OTEL_EXPORTER_OTLP_PROTOCOL"), "http/protobuf")
			if protocol != "http/protobuf" {
				told = append(told, "OTEL_EXPORTER_OTLP_PROTOCOL="+protocol+" is not spoken here: set it to http/protobuf, and name the receiver's port for that, mostly 4318")
				continue
			}
			exporters = append(exporters, name)
		case "console":
			exporters = append(exporters, name)
		default:
			told = append(told, "OTEL_TRACES_EXPORTER="+name+" is none of otlp, console, none")
		}
	}
	return exporters, told
}

// beginTraces traces what the command does, if OpenTelemetry's variables ask for it. Nothing that goes wrong with traces
// keeps it from its work.
func (a *app) beginTraces() {
	log, clean := a.events(), a.log.clean()
	exporters, told := traceExporters(os.Getenv)
	for _, why := range told {
		log.Tell(event.NoTraces, "", "reason", why)
	}
	if len(exporters) == 0 {
		return
	}
	trouble := &traceErrors{log: log}
	otel.SetErrorHandler(trouble)
	options := []sdktrace.TracerProviderOption{sdktrace.WithResource(traceResource(log))}
	for _, name := range exporters {
		exporter, err := a.traceExporter(name)
		if err != nil {
			log.Tell(event.NoTraces, "", "reason", redact(err.Error()))
			continue
		}
		options = append(options, sdktrace.WithBatcher(exporter)) // what it has no room for is dropped
	}
	provider := sdktrace.NewTracerProvider(options...) // the sampler is that of OTEL_TRACES_SAMPLER
	a.watch.observers = append(a.watch.observers, func(database string) observe.Observer {
		return trace.New(trace.Options{TracerProvider: provider, Database: database, Scrub: clean})
	})
	a.watch.ends = append(a.watch.ends, func(ctx context.Context) {
		if err := provider.Shutdown(ctx); err != nil {
			trouble.Handle(fmt.Errorf("the last ones: %w", err))
		}
	})
}

func (a *app) traceExporter(name string) (sdktrace.SpanExporter, error) {
	if name == "console" { // standard output is for data
		return stdouttrace.New(stdouttrace.WithWriter(a.stderr))
	}
	return otlptracehttp.New(context.Background())
}

// traceResource says who makes the spans: what OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES say, and our name else.
func traceResource(log *event.Log) *resource.Resource {
	version := "(devel)"
	if info, ok := debug.ReadBuildInfo(); ok {
		version = cmp.Or(info.Main.Version, version)
	}
	made, err := resource.New(context.Background(),
		resource.WithAttributes(semconv.ServiceName("sluice"), semconv.ServiceVersion(version)),
		resource.WithTelemetrySDK(), resource.WithHost(), resource.WithProcessPID(), resource.WithFromEnv())
	if err != nil {
		log.Tell(event.TracesIncomplete, "", "error", redact(err.Error()))
	}
	return made
}

// traceTroubleEvery is how often it is logged that traces cannot be sent.
const traceTroubleEvery = time.Minute

// traceErrors logs what goes wrong with sending traces, once in a while.
type traceErrors struct {
	log *event.Log

	mu     sync.Mutex
	toldAt time.Time
	passed int // that were not told since
}

// Handle makes it an otel.ErrorHandler.
func (e *traceErrors) Handle(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := time.Now()
	if !e.toldAt.IsZero() && now.Sub(e.toldAt) < traceTroubleEvery {
		e.passed++
		return
	}
	left := []any{"error", redact(err.Error())}
	if e.passed > 0 {
		left = append(left, "lines", e.passed)
	}
	e.log.Tell(event.TracesNotSent, "", left...)
	e.toldAt, e.passed = now, 0
}

// The variables in which programs pass the context of a trace on to those they run.
var traceVariables = map[string]string{"traceparent": "TRACEPARENT", "tracestate": "TRACESTATE"}

// traceEnvironment tells a program that runs for a job of the job's trace.
func traceEnvironment(ctx context.Context) (variables []string) {
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	for name, variable := range traceVariables {
		if value := carrier[name]; value != "" {
			variables = append(variables, variable+"="+value)
		}
	}
	return variables
}

// inTrace puts what a command does into the trace of the program that runs it, if its environment tells of one.
func (a *app) inTrace(ctx context.Context) context.Context {
	carrier := propagation.MapCarrier{}
	for name, variable := range traceVariables {
		carrier[name] = os.Getenv(variable)
	}
	return propagation.TraceContext{}.Extract(ctx, carrier)
}
