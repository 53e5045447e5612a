package metric_test

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/cmd/metric"
	"github.com/sluice-queue/sluice/dispatcher"
	"github.com/sluice-queue/sluice/engine"
	"github.com/sluice-queue/sluice/engine/local"
	"github.com/sluice-queue/sluice/internal/pgtest"
	"github.com/sluice-queue/sluice/observe"
	"github.com/sluice-queue/sluice/store/postgres"
	"github.com/sluice-queue/sluice/store/sqlite"
	"github.com/sluice-queue/sluice/upkeep"
	"github.com/sluice-queue/sluice/worker"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

var (
	quiet = slog.New(slog.DiscardHandler)
	ada   = sluice.Act{By: "ada"}
)

// system is a complete one: a worker, a dispatcher, a local engine and upkeep on an observed store.
type system struct {
	*testing.T
	store    sluice.Store
	client   *sluice.Client
	registry *prometheus.Registry
	gauges   *metric.Gauges
	ended    chan struct{} // gets a value when a call ends
}

// Begin and End make system an observer, which tells the test that a call has ended.
func (s *system) Begin(ctx context.Context, _ *observe.Call) context.Context { return ctx }

func (s *system) End(context.Context, *observe.Call) {
	select {
	case s.ended <- struct{}{}:
	default:
	}
}

func onEveryStore(t *testing.T, test func(s *system)) {
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		store, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "jobs.db"), sqlite.Options{Migrate: true})
		test(observed(t, store, err))
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		store, err := postgres.Open(t.Context(), pgtest.NewDatabase(t), postgres.Options{Migrate: true, Logger: quiet})
		test(observed(t, store, err))
	})
}

func observed(t *testing.T, store sluice.Store, err error) *system {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	s := &system{T: t, registry: prometheus.NewRegistry(), ended: make(chan struct{}, 1)}
	options := metric.Options{Registerer: s.registry, Version: "1.2.3", Timeout: 5 * time.Minute, Failed: func(source string, err error) { t.Errorf("%s was not read: %v", source, err) }}
	observer, err := metric.New(options)
	if err != nil {
		t.Fatal(err)
	}
	s.store = observe.Store(store, s, observer)
	s.client = sluice.NewClient(s.store, sluice.ClientOptions{})
	if s.gauges, err = metric.NewGauges(s.store, options); err != nil {
		t.Fatal(err)
	}
	s.start(observer)
	return s
}

// start starts all processes of the system.
func (s *system) start(observer observe.Observer) {
	s.Helper()
	ctx, stop := context.WithCancel(context.Background())
	var all sync.WaitGroup
	s.Cleanup(all.Wait)
	s.Cleanup(stop)
	run := func(part interface{ Run(context.Context) error }) {
		all.Go(func() {
			if err := part.Run(ctx); err != nil && !errors.Is(err, context.Canceled) {
				s.Error(err)
			}
		})
	}
	s.queues()
	runs := local.New(s.store, local.Options{Worker: worker.Options{Logger: quiet, Poll: 20 * time.Millisecond}})
	local.Handle(runs, "ship", func(_ context.Context, run *local.Run[string]) (any, error) { return nil, fate(run.Input) }, worker.QueueOptions{})
	run(runs)
	engines := map[string]engine.Engine{"local": observe.Engine(runs, "local", observer)}
	run(dispatcher.New(s.store, dispatcher.Options{Engines: engines, Poll: 20 * time.Millisecond, Logger: quiet}))
	run(upkeep.New(s.store, upkeep.Options{Engines: engines, Interval: 20 * time.Millisecond, Logger: quiet}))
	// With more slots than jobs, no job is claimed ahead of a free slot. Such a job might be released and claimed
	// again, which would change the counts.
	works := worker.New(s.store, worker.Options{Slots: 100, Poll: 20 * time.Millisecond, Logger: quiet})
	worker.Handle(works, sluice.QueueOf[string]("mail"), func(_ context.Context, job *worker.Job[string]) error {
		if job.Payload == "later" && job.Releases == 0 {
			return worker.Snooze(time.Millisecond)
		}
		return fate(job.Payload)
	}, worker.QueueOptions{})
	run(works)
}

// fate returns the error for which a payload asks.
func fate(payload string) error {
	switch payload {
	case "bad":
		return errors.New("no route")
	case "never":
		return worker.Permanent(errors.New("no such account"))
	}
	return nil
}

func (s *system) queues() {
	s.Helper()
	mail := sluice.DefaultSettings()
	mail.MaxAttempts, mail.Backoff = 2, sluice.Backoff{Base: time.Millisecond, Factor: 1, Max: time.Millisecond}
	mail.Rate, mail.Concurrency, mail.TenantConcurrency = sluice.RatePerSecond(100_000), 500, 100
	parcels := sluice.DefaultSettings()
	parcels.Engine, parcels.RunType, parcels.MaxAttempts = "local", "ship", 1
	parcels.FollowInterval = 100 * time.Millisecond
	still := sluice.DefaultSettings()
	still.Paused, still.MaxWaiting = true, 4
	hand := sluice.DefaultSettings()
	hand.Concurrency = 1
	for name, settings := range map[string]sluice.Settings{"mail": mail, "parcels": parcels, "still": still, "hand": hand} {
		if _, err := s.client.EnsureQueue(s.Context(), name, settings, ada); err != nil {
			s.Fatal(err)
		}
	}
}

func (s *system) enqueue(queue, payload string, count int, options sluice.EnqueueOptions) {
	s.Helper()
	for range count {
		job := sluice.NewJob{Queue: queue, Payload: []byte(`"` + payload + `"`), EnqueueOptions: options}
		if _, err := s.client.Enqueue(s.Context(), job); err != nil {
			s.Fatal(err)
		}
	}
}

// until waits until a metric has at least a value.
func (s *system) until(want float64, name string, labels ...string) {
	s.Helper()
	for {
		got := s.value(name, labels...)
		if got >= want {
			return
		}
		select {
		case <-s.ended:
		case <-s.Context().Done():
			s.Fatalf("%s of %v is %g, want %g", name, labels, got, want)
		}
	}
}

// scrape gathers all metrics by name.
func (s *system) scrape() map[string]*dto.MetricFamily {
	s.Helper()
	families, err := s.registry.Gather()
	if err != nil {
		s.Fatal(err)
	}
	byName := make(map[string]*dto.MetricFamily)
	for _, f := range families {
		byName[f.GetName()] = f
	}
	return byName
}

// value returns the sum of a metric over all series with the labels, each written as name=value. For a histogram it
// takes the count.
func (s *system) value(name string, labels ...string) float64 {
	s.Helper()
	sum := 0.0
	for _, m := range s.scrape()[name].GetMetric() {
		if has(m, labels) {
			sum += m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	return sum
}

// sum returns the sum of all values in a histogram.
func (s *system) sum(name string, labels ...string) float64 {
	s.Helper()
	sum := 0.0
	for _, m := range s.scrape()[name].GetMetric() {
		if has(m, labels) {
			sum += m.GetHistogram().GetSampleSum()
		}
	}
	return sum
}

func has(m *dto.Metric, labels []string) bool {
	for _, want := range labels {
		name, value, _ := strings.Cut(want, "=")
		if !slices.ContainsFunc(m.GetLabel(), func(l *dto.LabelPair) bool { return l.GetName() == name && l.GetValue() == value }) {
			return value == "" && !slices.ContainsFunc(m.GetLabel(), func(l *dto.LabelPair) bool { return l.GetName() == name })
		}
	}
	return true
}

func (s *system) want(want float64, name string, labels ...string) {
	s.Helper()
	if got := s.value(name, labels...); got != want {
		s.Errorf("%s of %v is %g, want %g", name, labels, got, want)
	}
}
