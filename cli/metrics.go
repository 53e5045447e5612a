package cli

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/spf13/pflag"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/event"
	"github.com/sluice-queue/sluice/metric"
	"github.com/sluice-queue/sluice/observe"
)

// metricsServer tells Prometheus what a command does, and how its store is.
type metricsServer struct {
	address  string // as the flag says; empty: nobody is told
	registry *prometheus.Registry
	options  metric.Options

	gauged sluice.Store // the first store that was opened, which the gauges tell of
	stop   func()       // ends the reading of the gauges; nil: nobody reads them
}

func (m *metricsServer) addTo(flags *pflag.FlagSet) {
	flags.StringVar(&m.address, "metrics", "", "serve metrics for Prometheus at this address, as /metrics; a port alone is on loopback")
}

// listenAddress gives the address that a person meant: without a host it is on loopback, so that nothing is open to
// others unless somebody says so (S-1).
func listenAddress(text string) (string, error) {
	if !strings.Contains(text, ":") {
		text = ":" + text
	}
	host, port, err := net.SplitHostPort(text)
	if err != nil || port == "" {
		return "", usagef("%q is no address; write a port such as 9464, or HOST:PORT such as 0.0.0.0:9464", text)
	}
	if host == "" {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port), nil
}

// beginMetrics serves the metrics of a command, if it was asked to.
func (a *app) beginMetrics() error {
	if a.metrics.address == "" {
		return nil
	}
	address, err := listenAddress(a.metrics.address)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return codedError{err, exitUsage, "name another address with --metrics"}
	}
	if err := a.measure(); err != nil {
		return err
	}
	a.watch.ends = append(a.watch.ends, serveMetrics(listener, a.metrics.handler()))
	a.note("metrics at http://%s/metrics", listener.Addr())
	return nil
}

// measure begins to count what the command does, for its metrics.
func (a *app) measure() error {
	m := &a.metrics
	m.registry = prometheus.NewRegistry()
	m.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	log := a.events()
	m.options = metric.Options{Registerer: m.registry, Failed: func(source string, err error) { log.Tell(event.GaugesNotRead, "", "what", source, "error", err) }}
	observer, err := metric.New(m.options)
	if err != nil {
		return err
	}
	a.watch.observers = append(a.watch.observers, func(string) observe.Observer { return observer })
	return nil
}

// handler answers scrapes.
func (m *metricsServer) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{Registry: m.registry, MaxRequestsInFlight: 8})
}

// serveMetrics answers scrapes until it is told to end.
func serveMetrics(listener net.Listener, handler http.Handler) (end func(context.Context)) {
	paths := http.NewServeMux()
	paths.Handle("GET /metrics", handler)
	server := &http.Server{Handler: paths, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: 30 * time.Second, IdleTimeout: 2 * time.Minute}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = server.Serve(listener) // it ends with Shutdown
	}()
	return func(ctx context.Context) {
		if err := server.Shutdown(ctx); errors.Is(err, context.DeadlineExceeded) {
			_ = server.Close()
		}
		<-ended
	}
}

// beginGauges has the gauges tell of a store, if it is the first that the command has opened.
func (a *app) beginGauges(store sluice.Store) {
	m := &a.metrics
	if m.registry == nil || m.gauged != nil {
		return
	}
	gauges, err := metric.NewGauges(store, m.options)
	if err != nil {
		a.note("the metrics do not tell of the store: %v", err)
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	var reading sync.WaitGroup
	reading.Go(func() { _ = gauges.Run(ctx) }) // it returns nil
	m.gauged, m.stop = store, func() {
		cancel()
		reading.Wait()
	}
}

// endGauges ends the reading of a store that is about to be closed.
func (m *metricsServer) endGauges(store sluice.Store) {
	if m.stop != nil && m.gauged == store {
		m.stop()
		m.stop = nil
	}
}
