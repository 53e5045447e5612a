package cli

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/spf13/pflag"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/api"
	"github.com/sluice-queue/sluice/cmd/metric"
	"github.com/sluice-queue/sluice/internal/event"
	"github.com/sluice-queue/sluice/observe"
)

// metricsServer serves a command's metrics, and its store's, to Prometheus.
type metricsServer struct {
	address  string // of --metrics; empty: off
	registry *prometheus.Registry
	options  metric.Options

	gauged sluice.Store // first opened store, read by the gauges
	stop   func()       // ends reading the gauges; nil: not reading
}

func (m *metricsServer) addTo(flags *pflag.FlagSet) {
	flags.StringVar(&m.address, "metrics", "", "serve /metrics for Prometheus at this address; a port alone is on loopback")
}

// listenAddress completes an address. Without a host it is on loopback: others get access only if somebody says so.
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

// beginMetrics serves the command's metrics, with --metrics.
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
	site, err := siteAt(address, api.Options{Metrics: a.metrics.handler(), Logger: a.logger()}, false)
	if err != nil {
		return err
	}
	a.watch.ends = append(a.watch.ends, serveSite(listener, site, a.logger()))
	a.note("metrics at http://%s/metrics", listener.Addr())
	return nil
}

// measure starts counting for the command's metrics.
func (a *app) measure() error {
	m := &a.metrics
	m.registry = prometheus.NewRegistry()
	m.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	log := a.events()
	m.options = metric.Options{Registerer: m.registry, Failed: func(source string, err error) { log.Emit(event.GaugesNotRead, "", "what", source, "error", err) }}
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

// siteAt makes the site at an address. On loopback it answers only names of loopback: a foreign page could ask in its
// visitor's name.
func siteAt(address string, options api.Options, behindProxy bool) (*api.Site, error) {
	if onLoopback(address) && !behindProxy {
		options.Hosts = api.LoopbackHosts()
	}
	return api.New(options)
}

// serveSite answers until end is called.
func serveSite(listener net.Listener, site *api.Site, logger *slog.Logger) (end func(context.Context)) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = api.Serve(ctx, listener, site, logger) // ends with ctx
	}()
	return func(context.Context) {
		cancel()
		<-ended
	}
}

// beginGauges makes the gauges read a store, if it is the command's first.
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
	reading.Go(func() { _ = gauges.Run(ctx) }) // always nil
	m.gauged, m.stop = store, func() {
		cancel()
		reading.Wait()
	}
}

// endGauges stops reading a store that is about to close.
func (m *metricsServer) endGauges(store sluice.Store) {
	if m.stop != nil && m.gauged == store {
		m.stop()
		m.stop = nil
	}
}
