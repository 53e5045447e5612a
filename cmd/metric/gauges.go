package metric

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluice-queue/sluice"
)

// Gauges show the state of a store. [Gauges.Run] reads them in the background, so a scrape reads only memory.
type Gauges struct {
	store   sluice.Store
	options Options
	descs   map[string]*prometheus.Desc
	errors  *prometheus.CounterVec

	reading sync.Mutex
	round   round  // under way
	kind    string // of the store; empty: unknown so far

	mu      sync.RWMutex
	sources []*source
}

// source is a part of the gauges. If one source cannot be read, the others go on.
type source struct {
	name string
	read func(ctx context.Context, told *told) error
	rest int // the source is read every this many rounds; after a failure, in the next

	wait int       // how many rounds are left until then
	at   time.Time // when the source was last read; zero: never
	took time.Duration
	told []prometheus.Metric
}

// errorsName is the only counter among the gauges' own metrics.
const errorsName = "sluice_gauges_errors_total"

// staleAfter is how many rests old a source may be before its gauges disappear.
const staleAfter = 3

// healthEvery is how many rounds lie between two reads of the store's health, the most expensive source.
const healthEvery = 6

// NewGauges makes gauges of a store, which may be decorated, and registers them. They are empty until Run or
// Read has read them. NewGauges fails if the registerer already has metrics of these names.
func NewGauges(store sluice.Store, options Options) (*Gauges, error) {
	if err := sluice.CheckGiven("store", store); err != nil {
		return nil, err
	}
	g := &Gauges{store: store, options: options.filled(), descs: make(map[string]*prometheus.Desc)}
	for _, d := range Names() {
		g.descs[d.Name] = prometheus.NewDesc(d.Name, d.Help, d.Labels, nil)
	}
	g.errors = counterOf(errorsName)
	g.sources = []*source{
		{name: "queues", read: g.readQueues, rest: 1},
		{name: "flows", read: g.readFlows, rest: 1},
		{name: "limits", read: g.readLimits, rest: 1},
		{name: "depths", read: g.readDepths, rest: 1},
		{name: "holders", read: g.readHolders, rest: 1},
		{name: "alerts", read: g.readAlerts, rest: 1},
		{name: "health", read: g.readHealth, rest: healthEvery},
		{name: "memory", read: g.readMemory, rest: 1},
	}
	for _, s := range g.sources {
		g.errors.WithLabelValues(s.name)
	}
	return g, registerAll(g.options.Registerer, g, g.errors)
}

// Run reads the gauges every Options.Every until ctx ends, and then returns nil.
func (g *Gauges) Run(ctx context.Context) error {
	ticker := time.NewTicker(g.options.Every)
	defer ticker.Stop()
	for {
		g.Read(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// Read reads the sources that are due, once.
func (g *Gauges) Read(ctx context.Context) {
	g.reading.Lock()
	defer g.reading.Unlock()
	for _, s := range g.sources {
		if s.wait--; s.wait > 0 || ctx.Err() != nil {
			continue
		}
		if g.readSource(ctx, s) {
			s.wait = s.rest
		}
	}
}

func (g *Gauges) readSource(ctx context.Context, s *source) bool {
	told := &told{gauges: g, seen: make(map[string]bool)}
	begun := time.Now()
	err := s.read(ctx, told)
	took := time.Since(begun)
	if err != nil { // the values read before stay until they are too old
		if ctx.Err() == nil {
			g.errors.WithLabelValues(s.name).Inc()
			g.options.Failed(s.name, err)
		}
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	s.at, s.took, s.told = time.Now(), took, told.metrics
	return true
}

// bounded gives a read its deadline.
func bounded[T any](ctx context.Context, g *Gauges, read func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, g.options.Timeout)
	defer cancel()
	return read(ctx)
}

// Describe is part of prometheus.Collector.
func (g *Gauges) Describe(out chan<- *prometheus.Desc) {
	for _, d := range Names() {
		if g.tells(d.Name) {
			out <- g.descs[d.Name]
		}
	}
}

// tells reports whether a metric is one of the gauges.
func (g *Gauges) tells(name string) bool {
	if name == errorsName {
		return false // registered separately
	}
	for _, d := range counted {
		if d.Name == name {
			return false
		}
	}
	return true
}

// Collect is part of prometheus.Collector. Collect sends the values last read, unless they are too old.
func (g *Gauges) Collect(out chan<- prometheus.Metric) {
	g.mu.RLock()
	defer g.mu.RUnlock()
	now := time.Now()
	for _, s := range g.sources {
		if s.at.IsZero() {
			continue
		}
		age := now.Sub(s.at)
		out <- prometheus.MustNewConstMetric(g.descs["sluice_gauges_age_seconds"], prometheus.GaugeValue, age.Seconds(), s.name)
		out <- prometheus.MustNewConstMetric(g.descs["sluice_gauges_read_seconds"], prometheus.GaugeValue, s.took.Seconds(), s.name)
		if age > staleAfter*time.Duration(s.rest)*g.options.Every {
			continue
		}
		for _, m := range s.told {
			out <- m
		}
	}
}

// told collects the metrics of a source.
type told struct {
	gauges  *Gauges
	metrics []prometheus.Metric
	seen    map[string]bool
}

// add adds a value. The first of two values with the same labels counts, because the client would otherwise
// refuse the whole scrape. Database names that are not UTF-8 are repaired.
func (t *told) add(name string, value float64, labels ...string) {
	for i, l := range labels {
		labels[i] = strings.ToValidUTF8(l, "\uFFFD")
	}
	key := name + "\x00" + strings.Join(labels, "\x00")
	desc := t.gauges.descs[name]
	if desc == nil || t.seen[key] {
		return
	}
	kind := prometheus.GaugeValue
	if isTotal(name) {
		kind = prometheus.CounterValue
	}
	m, err := prometheus.NewConstMetric(desc, kind, value, labels...)
	if err != nil {
		return // a label that is not described
	}
	t.seen[key] = true
	t.metrics = append(t.metrics, m)
}

func (t *told) flag(name string, on bool, labels ...string) {
	value := 0.0
	if on {
		value = 1
	}
	t.add(name, value, labels...)
}
