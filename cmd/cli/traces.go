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

	"github.com/sluice-queue/sluice/cmd/trace"
	"github.com/sluice-queue/sluice/internal/event"
	"github.com/sluice-queue/sluice/observe"
)

// traceExporters returns the destinations of spans in OpenTelemetry's variables: otlp, console, both or none. None is
// the default, unless an endpoint is named. Unsupported values are left out, and explained in told.
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
			told = append(told, "OTEL_TRACES_EXPORTER="+name+" must be one of otlp, console, none")
		}
	}
	return exporters, told
}

// beginTraces traces the command, if OpenTelemetry's variables ask for it. Failures of tracing never stop the command.
func (a *app) beginTraces() {
	log, clean := a.events(), a.log.clean()
	exporters, told := traceExporters(os.Getenv)
	for _, why := range told {
		log.Emit(event.NoTraces, "", "reason", why)
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
			log.Emit(event.NoTraces, "", "reason", redact(err.Error()))
			continue
		}
		options = append(options, sdktrace.WithBatcher(exporter)) // drops spans without room
	}
	provider := sdktrace.NewTracerProvider(options...) // OTEL_TRACES_SAMPLER chooses the sampler
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

// traceResource names the maker of the spans: OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES, else our name.
func traceResource(log *event.Log) *resource.Resource {
	version := "(devel)"
	if info, ok := debug.ReadBuildInfo(); ok {
		version = cmp.Or(info.Main.Version, version)
	}
	made, err := resource.New(context.Background(),
		resource.WithAttributes(semconv.ServiceName("sluice"), semconv.ServiceVersion(version)),
		resource.WithTelemetrySDK(), resource.WithHost(), resource.WithProcessPID(), resource.WithFromEnv())
	if err != nil {
		log.Emit(event.TracesIncomplete, "", "error", redact(err.Error()))
	}
	return made
}

// traceTroubleEvery is how often the log says that traces cannot be sent.
const traceTroubleEvery = time.Minute

// traceErrors logs failures to send traces, once in a while.
type traceErrors struct {
	log *event.Log

	mu         sync.Mutex
	reportedAt time.Time
	passed     int // not logged since
}

// Handle implements [otel.ErrorHandler].
func (e *traceErrors) Handle(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := time.Now()
	if !e.reportedAt.IsZero() && now.Sub(e.reportedAt) < traceTroubleEvery {
		e.passed++
		return
	}
	left := []any{"error", redact(err.Error())}
	if e.passed > 0 {
		left = append(left, "lines", e.passed)
	}
	e.log.Emit(event.TracesNotSent, "", left...)
	e.reportedAt, e.passed = now, 0
}

// traceVariables pass the context of a trace on to child programs.
var traceVariables = map[string]string{"traceparent": "TRACEPARENT", "tracestate": "TRACESTATE"}

// traceEnvironment passes a job's trace to its program.
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

// inTrace puts the command into the trace of its parent program, if the environment has one.
func (a *app) inTrace(ctx context.Context) context.Context {
	carrier := propagation.MapCarrier{}
	for name, variable := range traceVariables {
		carrier[name] = os.Getenv(variable)
	}
	return propagation.TraceContext{}.Extract(ctx, carrier)
}
