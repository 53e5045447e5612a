// Package metric exports Sluice's metrics through Prometheus' own client: the work of this process, and the
// state of its store.
//
// Begin with [New] and [NewGauges]. New makes an [Observer] for package observe, which counts and times the
// calls of this process. NewGauges reads the state of the store in the background, so a scrape reads only
// memory. A program with a store:
//
//	metrics, err := metric.New(metric.Options{})
//	store = observe.Store(store, metrics)
//	gauges, err := metric.NewGauges(store, metric.Options{})
//	go gauges.Run(ctx)
//	http.Handle("/metrics", promhttp.Handler())
//
// Next, read docs/metrics.md, which lists every metric, like [Names].
package metric

import (
	"cmp"
	"context"
	"errors"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/engine"
	"github.com/sluice-queue/sluice/observe"
	"github.com/sluice-queue/sluice/step"
)

// Options adjust the metrics. The zero value works.
type Options struct {
	// Registerer receives the metrics. Default: prometheus.DefaultRegisterer.
	Registerer prometheus.Registerer
	// Version is the program's version, for sluice_build_info. Default: the main module's version, or unknown.
	Version string
	// MaxQueues is how many queues have metrics of their own, for this process's work and for the gauges. Work
	// in further queues counts as queue "(other)"; they have no gauges. Default: 500.
	MaxQueues int
	// Every is the time between two reads of the gauges. Default: 10 s. Gauges older than 3 times as long
	// disappear. The store's health is read every 6th time.
	Every time.Duration
	// Timeout is the deadline of each read of a gauge. Default: 5 s.
	Timeout time.Duration
	// TopTenants is how many tenants of a queue have gauges: the tenants with the most jobs in flight. Default:
	// 20; negative: none.
	TopTenants int
	// Failed receives the errors of reading a source. Default: none receives them; sluice_gauges_errors_total
	// counts them in any case.
	Failed func(source string, err error)
}

func (o Options) filled() Options {
	if o.Registerer == nil {
		o.Registerer = prometheus.DefaultRegisterer
	}
	if o.Failed == nil {
		o.Failed = func(string, error) {}
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		o.Version = cmp.Or(o.Version, info.Main.Version)
	}
	o.Version = cmp.Or(o.Version, "unknown")
	o.MaxQueues = cmp.Or(o.MaxQueues, 500)
	o.Every = cmp.Or(o.Every, 10*time.Second)
	o.Timeout = cmp.Or(o.Timeout, 5*time.Second)
	o.TopTenants = cmp.Or(o.TopTenants, 20)
	return o
}

// otherQueue is the label of queues beyond Options.MaxQueues. No queue can have this name.
const otherQueue = "(other)"

// Observer is an [observe.Observer] that counts and times calls. Many goroutines may use it at once.
type Observer struct {
	vectors vectors
	queues  sync.Map // by name: *queue
	known   atomic.Int64
	most    int64
	rest    func() *queue // of the queues beyond Options.MaxQueues
	calls   sync.Map      // by callKey: prometheus.Observer
}

// vectors are the metrics with a child for each queue, call or step.
type vectors struct {
	moves, limited, duplicates, renewals, lost, startFailures *prometheus.CounterVec
	storeErrors, engineErrors, stepErrors                     *prometheus.CounterVec
	wait, run, total, attempts, batch, cycle                  *prometheus.HistogramVec
	storeCalls, engineCalls, steps                            *prometheus.HistogramVec
}

// New makes an observer and registers its metrics. New fails if the registerer already has metrics of these
// names.
func New(options Options) (*Observer, error) {
	options = options.filled()
	v := vectors{
		moves: counterOf("sluice_moves_total"), limited: counterOf("sluice_claims_limited_total"), duplicates: counterOf("sluice_duplicates_total"),
		renewals: counterOf("sluice_lease_renewals_total"), lost: counterOf("sluice_leases_lost_total"),
		startFailures: counterOf("sluice_engine_start_failures_total"),
		storeErrors:   counterOf("sluice_store_errors_total"), engineErrors: counterOf("sluice_engine_errors_total"),
		stepErrors: counterOf("sluice_step_errors_total"),
		wait:       histogramOf("sluice_wait_seconds"), run: histogramOf("sluice_run_seconds"), total: histogramOf("sluice_total_seconds"),
		attempts: histogramOf("sluice_attempts"), batch: histogramOf("sluice_batch_jobs"), cycle: histogramOf("sluice_cycle_seconds"),
		storeCalls: histogramOf("sluice_store_call_seconds"), engineCalls: histogramOf("sluice_engine_call_seconds"),
		steps: histogramOf("sluice_step_seconds"),
	}
	build := gaugeOf("sluice_build_info")
	build.WithLabelValues(options.Version).Set(1)
	err := registerAll(options.Registerer, build, v.moves, v.limited, v.duplicates, v.renewals, v.lost, v.startFailures, v.storeErrors,
		v.engineErrors, v.stepErrors, v.wait, v.run, v.total, v.attempts, v.batch, v.cycle, v.storeCalls, v.engineCalls, v.steps)
	if err != nil {
		return nil, err
	}
	return &Observer{vectors: v, most: int64(options.MaxQueues), rest: sync.OnceValue(func() *queue { return v.queue(otherQueue) })}, nil
}

// registerAll registers all collectors or none.
func registerAll(to prometheus.Registerer, all ...prometheus.Collector) error {
	for i, one := range all {
		if err := to.Register(one); err != nil {
			for _, before := range all[:i] {
				to.Unregister(before)
			}
			return err
		}
	}
	return nil
}

// Begin does nothing; End counts.
func (o *Observer) Begin(ctx context.Context, _ *observe.Call) context.Context { return ctx }

// End counts a call.
func (o *Observer) End(_ context.Context, c *observe.Call) {
	switch c.Kind {
	case observe.KindStep:
		o.step(c)
	case observe.KindEngine:
		o.engineCall(c)
	case observe.KindStore:
		o.storeCall(c)
	}
}

func (o *Observer) step(c *observe.Call) {
	o.timeOf(c).Observe(c.Took.Seconds())
	if c.Err != nil {
		o.vectors.stepErrors.WithLabelValues(c.Name).Inc()
	}
	if isCycle := c.Name == step.Cycle || c.Name == step.Forward; isCycle && c.Queue != "" && (c.Jobs > 0 || c.Err != nil) {
		o.queue(c.Queue).cycle.Observe(c.Took.Seconds())
	}
}

func (o *Observer) engineCall(c *observe.Call) {
	o.timeOf(c).Observe(c.Took.Seconds())
	failed := 0
	eachError(c, func(err error) {
		failed++
		o.vectors.engineErrors.WithLabelValues(c.Engine, c.Name, kindOf(err)).Inc()
	})
	if c.Name == "start" && failed > 0 {
		o.queue(c.Queue).startFailures.Add(float64(failed))
	}
}

func (o *Observer) storeCall(c *observe.Call) {
	o.timeOf(c).Observe(c.Took.Seconds())
	eachError(c, func(err error) { o.vectors.storeErrors.WithLabelValues(c.Name, kindOf(err)).Inc() })
	switch c.Name {
	case "claim":
		o.claimed(c)
	case "renew":
		o.renewed(c)
	case "enqueue":
		o.enqueued(c)
	}
	var at *queue
	for m := range c.Moves() {
		if m.Count <= 0 {
			continue
		}
		if at == nil || at.name != m.Queue { // most calls concern one queue
			at = o.queue(m.Queue)
		}
		at.moved(m)
	}
}

// eachError iterates over the errors of a call: its own, or the errors of its jobs.
func eachError(c *observe.Call, tell func(error)) {
	if c.Err != nil {
		tell(c.Err)
		return
	}
	for _, err := range c.Errs {
		if err != nil {
			tell(err)
		}
	}
}

func jobsByQueue(claims []*sluice.Claim) map[string]int {
	jobs := make(map[string]int)
	for _, c := range claims {
		jobs[c.Queue]++
	}
	return jobs
}

func (o *Observer) claimed(c *observe.Call) {
	if c.Err != nil {
		return
	}
	if c.Queue == "" { // the claim was from several queues
		for queue, jobs := range jobsByQueue(c.Claims) {
			o.queue(queue).batch.Observe(float64(jobs))
		}
		return
	}
	q := o.queue(c.Queue)
	if len(c.Claims) > 0 {
		q.batch.Observe(float64(len(c.Claims)))
	}
	switch {
	case c.Claimed.Full:
		q.limitedInFlight.Inc()
	case c.Claimed.Limited:
		q.limitedRate.Inc()
	}
}

func (o *Observer) renewed(c *observe.Call) {
	if c.Err != nil {
		return
	}
	lost := make(map[sluice.ID]bool, len(c.LostJobs))
	for _, id := range c.LostJobs {
		lost[id] = true
	}
	for i := range c.Renewals {
		q := o.queue(c.Renewals[i].Queue)
		if lost[c.Renewals[i].ID] {
			q.lost.Inc()
		} else {
			q.renewals.Inc()
		}
	}
}

func (o *Observer) enqueued(c *observe.Call) {
	for i, receipt := range c.Receipts {
		if receipt.Duplicate {
			o.queue(c.Inserts[i].Queue).duplicates.Inc()
		}
	}
}

// callKey identifies a method or step.
type callKey struct {
	kind         observe.Kind
	engine, name string
}

// timeOf returns the histogram for the duration of a call. There are as many as there are methods.
func (o *Observer) timeOf(c *observe.Call) prometheus.Observer {
	key := callKey{c.Kind, c.Engine, c.Name}
	if known, found := o.calls.Load(key); found {
		return known.(prometheus.Observer)
	}
	var made prometheus.Observer
	switch c.Kind {
	case observe.KindStep:
		o.vectors.stepErrors.WithLabelValues(c.Name)
		made = o.vectors.steps.WithLabelValues(c.Name)
	case observe.KindEngine:
		made = o.vectors.engineCalls.WithLabelValues(c.Engine, c.Name)
	default:
		made = o.vectors.storeCalls.WithLabelValues(c.Name)
	}
	o.calls.Store(key, made)
	return made
}

// queue returns the metrics of a queue.
func (o *Observer) queue(name string) *queue {
	if known, found := o.queues.Load(name); found {
		return known.(*queue)
	}
	if o.known.Load() >= o.most {
		return o.rest()
	}
	made, before := o.queues.LoadOrStore(name, o.vectors.queue(name))
	if !before {
		o.known.Add(1)
	}
	return made.(*queue)
}

// kindOf returns one of a few words for an error.
func kindOf(err error) string {
	for _, k := range errorKinds {
		if errors.Is(err, k.err) {
			return k.kind
		}
	}
	return "other"
}

// errorKinds are checked in this order, because an error may be of several kinds.
var errorKinds = []struct {
	err  error
	kind string
}{
	{context.Canceled, "cancelled"},
	{context.DeadlineExceeded, "timeout"},
	{sluice.ErrUnavailable, "unavailable"},
	{engine.ErrUnavailable, "unavailable"},
	{sluice.ErrLost, "lost"},
	{sluice.ErrCancelled, "cancelled"},
	{sluice.ErrConflict, "conflict"},
	{sluice.ErrInvalid, "invalid"},
	{engine.ErrBusy, "busy"},
	{sluice.ErrNotFound, "refused"},
	{sluice.ErrNotAllowed, "refused"},
	{sluice.ErrDuplicate, "refused"},
	{engine.ErrRefused, "refused"},
	{engine.ErrRefTaken, "refused"},
	{engine.ErrTarget, "refused"},
}
