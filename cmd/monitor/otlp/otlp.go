// Package otlp sends the traces of the reference systems to a receiver of OpenTelemetry. It is apart from package monitor for
// programs that must speak to nobody but whom they were told.
package otlp

import (
	"context"
	"fmt"
	"os"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/sluice-queue/sluice/cmd/trace"
)

// Observer traces what a monitor watches.
type Observer struct {
	*trace.Observer
	provider *sdktrace.TracerProvider // nil: the global one, which is not ours to end
}

// New makes an observer whose spans go to where OTEL_EXPORTER_OTLP_ENDPOINT says, by HTTP and in batches; the other
// variables of OpenTelemetry count, too. Without that variable they go to the global provider, which records nothing unless
// the program sets it.
func New(ctx context.Context) (*Observer, error) {
	if os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") == "" {
		return &Observer{Observer: trace.New(trace.Options{})}, nil
	}
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, fmt.Errorf("send traces: %w", err)
	}
	provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter))
	return &Observer{trace.New(trace.Options{TracerProvider: provider}), provider}, nil
}

// Shutdown sends the last spans.
func (o *Observer) Shutdown(ctx context.Context) error {
	if o.provider == nil {
		return nil
	}
	return o.provider.Shutdown(ctx)
}
