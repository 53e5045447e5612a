package metric_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/alert"
	"github.com/sluice-queue/sluice/cmd/metric"
	"github.com/sluice-queue/sluice/engine"
	"github.com/sluice-queue/sluice/forecast"
	"github.com/sluice-queue/sluice/health"
	"github.com/sluice-queue/sluice/observe"
	"github.com/sluice-queue/sluice/presence"
	"github.com/sluice-queue/sluice/step"
	"github.com/sluice-queue/sluice/store/memory"
)

// told is a system in which no process runs.
func told(t *testing.T, store sluice.Store, options metric.Options) *system {
	t.Helper()
	s := &system{T: t, registry: prometheus.NewRegistry()}
	options.Registerer = s.registry
	observer, err := metric.New(options)
	if err != nil {
		t.Fatal(err)
	}
	s.store = observe.Store(store, observer)
	s.client = sluice.NewClient(s.store, sluice.ClientOptions{})
	if s.gauges, err = metric.NewGauges(s.store, options); err != nil {
		t.Fatal(err)
	}
	return s
}

func TestQueuesBeyondAreOneFigure(t *testing.T) {
	t.Parallel()
	s := told(t, memory.New(memory.Options{}), metric.Options{MaxQueues: 3})
	for i := range 10 {
		s.enqueue(fmt.Sprintf("queue-%d", i), "good", 1, sluice.EnqueueOptions{})
	}
	s.want(10, "sluice_moves_total", "event=enqueue")
	s.want(1, "sluice_moves_total", "event=enqueue", "queue=queue-2")
	s.want(7, "sluice_moves_total", "event=enqueue", "queue=(other)")
	s.gauges.Read(t.Context())
	s.want(10, "sluice_queues")
	s.want(0.001, "sluice_queues_used")
	if got := len(s.scrape()["sluice_queue_paused"].GetMetric()); got != 3 {
		t.Errorf("%d queues are told of, want 3", got)
	}
}

func TestALeaseThatRanOutIsARecovery(t *testing.T) {
	t.Parallel()
	now := time.Now()
	s := told(t, memory.New(memory.Options{Now: func() time.Time { return now }}), metric.Options{})
	settings := sluice.DefaultSettings()
	settings.MaxRecoveries = 2
	if _, err := s.client.EnsureQueue(t.Context(), "mail", settings, ada); err != nil {
		t.Fatal(err)
	}
	s.enqueue("mail", "good", 3, sluice.EnqueueOptions{})
	for range 2 {
		if _, err := s.store.Claim(t.Context(), sluice.ClaimRequest{Queue: "mail", Limit: 3, Holder: "gone", Lease: time.Second, Token: sluice.NewToken()}); err != nil {
			t.Fatal(err)
		}
		now = now.Add(time.Minute)
		if _, err := s.store.Recover(t.Context(), "mail", 10, "upkeep"); err != nil {
			t.Fatal(err)
		}
	}
	s.want(3, "sluice_moves_total", "queue=mail", "event=recover", "reason=lease_expired")
	s.want(3, "sluice_moves_total", "queue=mail", "event=bury", "reason=recoveries_spent")
}

// failing is a store some of whose calls fail.
type failing struct {
	sluice.Store
	err atomic.Pointer[error]
}

func (f *failing) Unwrap() sluice.Store { return f.Store }

func (f *failing) Depth(ctx context.Context, queue string, limit int) (sluice.Depth, error) {
	if err := f.err.Load(); err != nil {
		return sluice.Depth{}, *err
	}
	return f.Store.Depth(ctx, queue, limit)
}

func TestGaugesThatAreTooOldAreGaps(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &failing{Store: memory.New(memory.Options{})}
		var failed atomic.Int64
		s := told(t, store, metric.Options{Every: 10 * time.Second, Failed: func(source string, err error) {
			if source != "depths" || !errors.Is(err, sluice.ErrUnavailable) {
				t.Errorf("%s was not read: %v", source, err)
			}
			failed.Add(1)
		}})
		s.enqueue("mail", "good", 2, sluice.EnqueueOptions{})
		if _, err := s.client.EnsureQueue(t.Context(), "mail", sluice.DefaultSettings(), ada); err != nil {
			t.Fatal(err)
		}
		if got := len(s.scrape()["sluice_jobs"].GetMetric()); got != 0 {
			t.Errorf("%d figures are told before anything was read", got)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- s.gauges.Run(ctx) }()
		synctest.Wait()
		s.want(2, "sluice_jobs", "queue=mail", "state=ready")
		s.want(0, "sluice_gauges_age_seconds", "source=depths")

		asleep := fmt.Errorf("asleep: %w", sluice.ErrUnavailable)
		store.err.Store(&asleep)
		time.Sleep(25 * time.Second)
		s.want(2, "sluice_jobs", "queue=mail", "state=ready") // for a while the gauges show the last figures
		s.want(25, "sluice_gauges_age_seconds", "source=depths")
		time.Sleep(10 * time.Second)
		if got := len(s.scrape()["sluice_jobs"].GetMetric()); got != 0 {
			t.Errorf("%d figures are told that are too old", got)
		}
		s.want(1, "sluice_queues") // gauges of other sources go on
		s.want(3, "sluice_gauges_errors_total", "source=depths")
		s.want(float64(failed.Load()), "sluice_gauges_errors_total")

		store.err.Store(nil)
		time.Sleep(10 * time.Second)
		s.want(2, "sluice_jobs", "queue=mail", "state=ready")
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// counting counts the calls of a store that it observes.
type counting struct{ calls atomic.Int64 }

func (c *counting) Begin(ctx context.Context, _ *observe.Call) context.Context {
	c.calls.Add(1)
	return ctx
}
func (c *counting) End(context.Context, *observe.Call) {}

func TestAScrapeAsksTheStoreNothing(t *testing.T) {
	t.Parallel()
	var count counting
	s := told(t, observe.Store(memory.New(memory.Options{}), &count), metric.Options{})
	s.enqueue("mail", "good", 2, sluice.EnqueueOptions{})
	s.gauges.Read(t.Context())
	before := count.calls.Load()
	for range 100 {
		s.scrape()
	}
	if asked := count.calls.Load() - before; asked != 0 {
		t.Errorf("100 scrapes asked the store %d times", asked)
	}
}

func TestManyJobsAreAsUpkeepCountedThem(t *testing.T) {
	t.Parallel()
	s := told(t, memory.New(memory.Options{}), metric.Options{})
	if _, err := s.client.EnsureQueue(t.Context(), "mail", sluice.DefaultSettings(), ada); err != nil {
		t.Fatal(err)
	}
	for _, due := range []time.Time{{}, time.Now().Add(time.Hour)} {
		jobs := make([]sluice.NewJob, 10_001)
		for i := range jobs {
			jobs[i] = sluice.NewJob{Queue: "mail", Payload: []byte(`"good"`), EnqueueOptions: sluice.EnqueueOptions{DueAt: due}}
		}
		if _, err := s.client.EnqueueMany(t.Context(), jobs); err != nil {
			t.Fatal(err)
		}
	}
	s.gauges.Read(t.Context())
	s.want(10_000, "sluice_jobs", "state=ready") // 10,000 means so many or more, because upkeep has not counted yet
	if _, err := forecast.Recount(t.Context(), s.store); err != nil {
		t.Fatal(err)
	}
	s.gauges.Read(t.Context())
	s.want(10_001, "sluice_jobs", "state=ready")
	s.want(10_001, "sluice_jobs", "state=scheduled")
}

func TestWhatHoldsReadyJobsBackIsTold(t *testing.T) {
	t.Parallel()
	s := told(t, memory.New(memory.Options{}), metric.Options{})
	for name, change := range map[string]func(*sluice.Settings){
		"open":   func(*sluice.Settings) {},
		"paused": func(q *sluice.Settings) { q.Paused, q.Rate, q.Burst = true, sluice.RatePerSecond(0.001), 1 },
		"rated":  func(q *sluice.Settings) { q.Rate, q.Burst, q.Concurrency = sluice.RatePerSecond(0.001), 1, 1 },
		"full":   func(q *sluice.Settings) { q.Concurrency = 1 },
	} {
		settings := sluice.DefaultSettings()
		change(&settings)
		if _, err := s.client.EnsureQueue(t.Context(), name, settings, ada); err != nil {
			t.Fatal(err)
		}
		s.enqueue(name, "good", 3, sluice.EnqueueOptions{})
		if name == "open" {
			continue
		}
		if _, err := s.store.Claim(t.Context(), sluice.ClaimRequest{Queue: name, Limit: 1, Holder: "h", Lease: time.Minute, Token: sluice.NewToken()}); err != nil {
			t.Fatal(err)
		}
	}
	s.gauges.Read(t.Context())
	for _, c := range []struct {
		queue, reason string
		want          float64
	}{{"open", "", 0}, {"paused", "paused", 3}, {"rated", "rate", 2}, {"full", "in_flight", 2}} {
		s.want(c.want, "sluice_blocked_jobs", "queue="+c.queue)
		if c.reason != "" {
			s.want(c.want, "sluice_blocked_jobs", "queue="+c.queue, "reason="+c.reason)
		}
	}
}

func TestABreakerIsToldByItsQueue(t *testing.T) {
	t.Parallel()
	s := told(t, memory.New(memory.Options{}), metric.Options{})
	for _, name := range []string{"payment", "payments"} {
		if _, err := s.client.EnsureQueue(t.Context(), name, sluice.DefaultSettings(), ada); err != nil {
			t.Fatal(err)
		}
	}
	trouble := []presence.Condition{
		{Kind: presence.ConditionUnsafe, Queue: "other", Text: "odd"},
		presence.EngineCondition("payment", "eu", time.Time{}, "the breaker is open", errors.New("no route")),
	}
	for i, role := range []string{presence.RoleDispatcher, presence.RoleDispatcher, presence.RoleUpkeep} {
		h := presence.Holder{ID: fmt.Sprint("h", i), Role: role, Queues: []string{"payment"}, Slots: 10, Busy: i}
		if i == 1 {
			h.Conditions = trouble
		}
		if _, err := presence.Given(s.store).Heartbeat(t.Context(), h); err != nil {
			t.Fatal(err)
		}
	}
	s.gauges.Read(t.Context())
	s.want(1, "sluice_breaker_open", "queue=payment")
	s.want(0, "sluice_breaker_open", "queue=payments")
	s.want(1, "sluice_holders_with_conditions", "role=dispatcher")
	s.want(2, "sluice_queue_holders", "queue=payment", "role=dispatcher")
	s.want(0, "sluice_queue_holders_not_counted", "queue=payment", "role=dispatcher")
	s.want(20, "sluice_holder_slots", "role=dispatcher")
	s.want(1, "sluice_holder_busy", "role=dispatcher")
}

func TestAlertsAreToldByStateAndSeverity(t *testing.T) {
	t.Parallel()
	s := told(t, memory.New(memory.Options{}), metric.Options{})
	var alerts []alert.Alert
	for i, state := range []alert.State{alert.Firing, alert.Firing, alert.Pending, alert.Inactive} {
		alerts = append(alerts, alert.Alert{Rule: fmt.Sprint("rule-", i), State: state, Severity: health.SeverityError})
	}
	if err := alert.Given(s.store).SaveAlerts(t.Context(), alert.Evaluation{Alerts: alerts}); err != nil {
		t.Fatal(err)
	}
	s.gauges.Read(t.Context())
	s.want(2, "sluice_alerts", "state=firing", "severity=error")
	s.want(1, "sluice_alerts", "state=pending", "severity=error")
	s.want(3, "sluice_alerts")
}

func TestErrorsAreOfAFewKinds(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	observer, err := metric.New(metric.Options{Registerer: registry})
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{
		context.Canceled, context.DeadlineExceeded, sluice.ErrUnavailable, engine.ErrUnavailable, sluice.ErrLost, sluice.ErrConflict,
		sluice.ErrInvalid, engine.ErrBusy, sluice.ErrNotFound, sluice.ErrNotAllowed, sluice.ErrDuplicate, engine.ErrRefused,
		engine.ErrRefTaken, engine.ErrTarget, errors.New("odd"),
	} {
		observer.End(t.Context(), &observe.Call{Kind: observe.KindEngine, Engine: "temporal", Name: "start", Queue: "q", Errs: []error{nil, fmt.Errorf("start: %w", err)}})
	}
	s := &system{T: t, registry: registry}
	for kind, want := range map[string]float64{"cancelled": 1, "timeout": 1, "unavailable": 2, "lost": 1, "conflict": 1, "invalid": 1, "busy": 1, "refused": 6, "other": 1} {
		s.want(want, "sluice_engine_errors_total", "kind="+kind, "engine=temporal", "call=start")
	}
	s.want(15, "sluice_engine_start_failures_total", "queue=q")
}

func TestReasonsAreAFewWords(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	observer, err := metric.New(metric.Options{Registerer: registry})
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]string{
		"": "", "attempts spent": "attempts_spent", "the lease of host:1:x ran out, and the engine never had the run": "lease_expired",
		"the run failed: no money": "run_failed", "the run timed out": "run_timed_out", "somebody said so": "other",
		"start: the engine is busy: slow down": "engine_busy", "unknown outcome: the run was deleted": "unknown_outcome",
		"the engine refused the run for good: too large": "engine_refused",
	}
	for text := range cases {
		call := &observe.Call{Kind: observe.KindStore, Name: "settle", Errs: []error{nil}, Settlements: []sluice.Settlement{
			{Event: sluice.EventRelease, Reason: text, Claim: &sluice.Claim{Job: sluice.Job{Queue: "q"}}},
		}}
		observer.End(t.Context(), call)
	}
	s := &system{T: t, registry: registry}
	listed := map[string]bool{"": true}
	for _, r := range metric.Reasons() {
		listed[r.Word] = true
	}
	for text, word := range cases {
		s.want(1, "sluice_moves_total", "queue=q", "event=release", "reason="+word)
		if !listed[word] {
			t.Errorf("%q is told as %q, which is not listed", text, word)
		}
	}
}

func TestNamesCannotBeTakenTwice(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	for i := range 2 {
		_, err := metric.New(metric.Options{Registerer: registry})
		if (err == nil) != (i == 0) {
			t.Errorf("the observer %d: %v", i, err)
		}
		_, err = metric.NewGauges(memory.New(memory.Options{}), metric.Options{Registerer: registry})
		if (err == nil) != (i == 0) {
			t.Errorf("the gauges %d: %v", i, err)
		}
	}
	if families, err := registry.Gather(); err != nil || len(families) == 0 {
		t.Errorf("%d metrics: %v", len(families), err)
	}
}

func TestDescriptionsAreComplete(t *testing.T) {
	t.Parallel()
	seen := make(map[string]bool)
	for _, d := range metric.Names() {
		if seen[d.Name] || !strings.HasPrefix(d.Name, "sluice_") || !strings.HasSuffix(d.Help, ".") {
			t.Errorf("%+v is there twice, or is not named or described as the others", d)
		}
		seen[d.Name] = true
		if isCounter := strings.HasSuffix(d.Name, "_total"); isCounter != (d.Type == metric.TypeCounter) {
			t.Errorf("%s is a %s", d.Name, d.Type)
		}
	}
}

// BenchmarkOneJob measures a completed job, which costs a claim and a settlement, in batches of a hundred.
func BenchmarkOneJob(b *testing.B) {
	observer, err := metric.New(metric.Options{Registerer: prometheus.NewRegistry()})
	if err != nil {
		b.Fatal(err)
	}
	const batch = 100
	claims, settlements := make([]*sluice.Claim, batch), make([]sluice.Settlement, batch)
	for i := range claims {
		claims[i] = &sluice.Claim{Job: sluice.Job{Queue: "payments", Tenant: "acme", DueAt: time.Now(), ClaimedAt: time.Now().Add(time.Second)}, ReceivedAt: time.Now()}
		settlements[i] = sluice.Settlement{Event: sluice.EventComplete, Claim: claims[i]}
	}
	b.ReportAllocs()
	for b.Loop() {
		observer.End(b.Context(), &observe.Call{Kind: observe.KindStore, Name: "claim", Queue: "payments", Claims: claims, Began: time.Now()})
		observer.End(b.Context(), &observe.Call{Kind: observe.KindStore, Name: "settle", Queue: "payments", Settlements: settlements, Errs: make([]error, batch), Began: time.Now()})
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/batch, "ns/job")
}

// BenchmarkOneStep measures a handled job, which is one step.
func BenchmarkOneStep(b *testing.B) {
	observer, err := metric.New(metric.Options{Registerer: prometheus.NewRegistry()})
	if err != nil {
		b.Fatal(err)
	}
	store := observe.Store(memory.New(memory.Options{}), observer)
	claim := &sluice.Claim{Job: sluice.Job{Queue: "payments"}}
	b.ReportAllocs()
	for b.Loop() {
		_, end := step.Begin(b.Context(), store, step.Step{Name: step.Handle, Queue: "payments", Claim: claim})
		end(step.End{Jobs: 1})
	}
}

func TestHoldersThatDoNotCountAreTold(t *testing.T) {
	t.Parallel()
	s := told(t, memory.New(memory.Options{NoStatistics: true}), metric.Options{})
	if _, err := s.client.EnsureQueue(t.Context(), "payment", sluice.DefaultSettings(), ada); err != nil {
		t.Fatal(err)
	}
	if _, err := presence.Given(s.store).Heartbeat(t.Context(), presence.Holder{ID: "h", Role: presence.RoleWorker, Queues: []string{"payment"}}); err != nil {
		t.Fatal(err)
	}
	s.gauges.Read(t.Context())
	s.want(1, "sluice_queue_holders_not_counted", "queue=payment", "role=worker")
}
