// Package monitor answers for a program over HTTP: metrics for Prometheus, health and readiness. It observes the program's
// store and engines, and sends traces if you give it an observer of package otlp.
//
// Begin with [New], give Monitor.Store to clients, workers and upkeep, and run [Monitor.Run] beside them. The reference
// systems in apps/ use it. Statistics need nothing of this: each open store counts them.
package monitor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/api"
	"github.com/sluice-queue/sluice/cmd/metric"
	"github.com/sluice-queue/sluice/engine"
	"github.com/sluice-queue/sluice/observe"
)

// Options adjust a Monitor. The zero value works.
type Options struct {
	// Logger is told what could not be read for the metrics. Default: slog.Default.
	Logger *slog.Logger
	// Traces traces, such as that of package otlp. It is shut down when Run ends. Default: nothing is traced.
	Traces Traces
}

// Traces is an observer that sends what it saw.
type Traces interface {
	observe.Observer
	// Shutdown sends the last of it.
	Shutdown(ctx context.Context) error
}

// Monitor watches a store and all that works on it. It is an http.Handler that answers /metrics, /healthz and /readyz. The
// metrics are those of the store and of prometheus.DefaultRegisterer, where a program has its own.
type Monitor struct {
	*api.Site
	// Store is the store, observed: give it to clients, workers, dispatchers and upkeep.
	Store sluice.Store

	inner     sluice.Store
	logger    *slog.Logger
	observers []observe.Observer
	readiness *api.Readiness
	gauges    *metric.Gauges
	end       func(context.Context) error
}

// New watches a store. Until Run runs, the metrics do not tell how the store is.
func New(store sluice.Store, options Options) (*Monitor, error) {
	m := &Monitor{inner: store, logger: options.Logger, end: func(context.Context) error { return nil }}
	if m.logger == nil {
		m.logger = slog.Default()
	}
	registry := prometheus.NewRegistry()
	measured := metric.Options{Registerer: registry}
	counts, err := metric.New(measured)
	if err != nil {
		return nil, fmt.Errorf("make the metrics: %w", err)
	}
	if m.gauges, err = metric.NewGauges(store, measured); err != nil {
		return nil, fmt.Errorf("make the gauges: %w", err)
	}
	m.observers = []observe.Observer{counts}
	if options.Traces != nil {
		m.observers, m.end = append(m.observers, options.Traces), options.Traces.Shutdown
	}
	m.Store = observe.Store(store, m.observers...)
	m.readiness = api.NewReadiness()
	m.Watch()
	m.Site, err = api.New(api.Options{
		Metrics:   promhttp.HandlerFor(prometheus.Gatherers{registry, prometheus.DefaultGatherer}, promhttp.HandlerOpts{Registry: registry, MaxRequestsInFlight: 8}),
		Readiness: m.readiness, Logger: m.logger,
	})
	return m, err
}

// Enqueuer observes what enqueues inside a transaction of the program's own: the store that is watched does not see that.
func (m *Monitor) Enqueuer(jobs sluice.Enqueuer) sluice.Enqueuer {
	return observe.Enqueuer(jobs, m.observers...)
}

// Engine observes an engine, which the settings of queues call so.
func (m *Monitor) Engine(engine engine.Engine, name string) engine.Engine {
	return observe.Engine(engine, name, m.observers...)
}

// Watch makes /readyz look at these, such as api.Beats of an upkeep, beside the store and its schema.
func (m *Monitor) Watch(checks ...api.Check) {
	checks = append(checks, api.StoreAnswers(m.inner))
	if schema, has := api.SchemaIsUpToDate(m.inner); has {
		checks = append(checks, schema)
	}
	m.readiness.Watch(checks...)
}

// Run reads how the store is, for the metrics, until ctx ends. Then /readyz says that the process drains, and the last
// spans are sent.
func (m *Monitor) Run(ctx context.Context) error {
	err := m.gauges.Run(ctx)
	m.readiness.Drain()
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	return errors.Join(err, m.end(late))
}

// Beside runs work until it ends, and beside it all that Run does; with an address it answers there, too, as Serve does.
// A failure of its own ends the work.
func (m *Monitor) Beside(ctx context.Context, address string, work func(context.Context) error) error {
	ctx, end := context.WithCancel(ctx)
	defer end()
	parts := []func(context.Context) error{work, m.Run}
	if address != "" {
		parts = append(parts, func(ctx context.Context) error { return m.Serve(ctx, address) })
	}
	errs := make([]error, len(parts))
	var all sync.WaitGroup
	for i, part := range parts {
		all.Go(func() {
			defer end()
			errs[i] = part(ctx)
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// Serve answers at a loopback address until ctx ends, for programs that answer nothing else.
func (m *Monitor) Serve(ctx context.Context, address string) error {
	listener, err := ListenLoopback(ctx, address)
	if err != nil {
		return err
	}
	return api.Serve(ctx, listener, m, m.logger)
}

// ListenLoopback listens at an address of this machine, and refuses all others: nothing here asks who calls.
func ListenLoopback(ctx context.Context, address string) (net.Listener, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return nil, fmt.Errorf("listen on %s: nothing here asks who calls, so it only listens on loopback", address)
	}
	return (&net.ListenConfig{}).Listen(ctx, "tcp", address)
}
