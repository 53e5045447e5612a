package otlp_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/cmd/monitor"
	"github.com/sluice-queue/sluice/cmd/monitor/otlp"
	"github.com/sluice-queue/sluice/store/memory"
)

// TestSpansAreSentBeforeTheMonitorEnds ends a monitor, which must send its spans to a receiver first.
func TestSpansAreSentBeforeTheMonitorEnds(t *testing.T) {
	var received atomic.Int64
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/traces" {
			received.Add(r.ContentLength)
		}
	}))
	defer receiver.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.URL)
	traces, err := otlp.New(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	m, err := monitor.New(memory.New(memory.Options{}), monitor.Options{Traces: traces})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sluice.NewClient(m.Store, sluice.ClientOptions{}).Enqueue(t.Context(), sluice.NewJob{Queue: "mail", Payload: []byte("1")}); err != nil {
		t.Fatal(err)
	}
	ended, stop := context.WithCancel(t.Context())
	stop()
	if err := m.Run(ended); err != nil {
		t.Error(err)
	}
	if received.Load() == 0 {
		t.Error("no span was received")
	}
}
