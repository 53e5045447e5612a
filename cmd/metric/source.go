package metric

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/admission"
	"github.com/sluice-queue/sluice/alert"
	"github.com/sluice-queue/sluice/forecast"
	"github.com/sluice-queue/sluice/health"
	"github.com/sluice-queue/sluice/limit"
	"github.com/sluice-queue/sluice/presence"
	"github.com/sluice-queue/sluice/pressure"
)

// silence is the time without a heartbeat after which a holder counts as gone.
const silence = 30 * time.Second

// errNoQueues is the error of sources that need the queues, if those could not be read.
var errNoQueues = errors.New("the queues are not known yet")

// round holds results that later sources of a round use.
type round struct {
	queues []sluice.Queue // nil: unknown
	tokens map[string]float64
}

// readQueues reads the settings of the queues.
func (g *Gauges) readQueues(ctx context.Context, told *told) error {
	g.round = round{}
	first := sluice.QueueFilter{Limit: g.options.MaxQueues}
	queues, err := bounded(ctx, g, func(ctx context.Context) ([]sluice.Queue, error) { return g.store.Queues(ctx, first) })
	if err != nil {
		return err
	}
	policy, err := bounded(ctx, g, admission.Given(g.store).QueuePolicy)
	if err != nil {
		return err
	}
	told.add("sluice_queues", float64(policy.Stored))
	told.add("sluice_queues_used", policy.Used())
	g.round.queues = append([]sluice.Queue{}, queues...)
	pressed := pressure.Given(g.store).PressureCounts()
	for _, q := range queues {
		told.flag("sluice_queue_paused", q.Settings.PausedAt(q.Now), q.Name)
		told.flag("sluice_queue_settings_wrong", q.Wrong != "", q.Name)
		if !q.Settings.Rate.IsZero() {
			told.add("sluice_rate_limit", q.Settings.Rate.PerSecond(), q.Name)
		}
		if q.Settings.Concurrency > 0 {
			told.add("sluice_in_flight_limit", float64(q.Settings.Concurrency), q.Name)
		}
		if counts, pressed := pressed[q.Name]; pressed || q.Settings.MaxWaiting > 0 || q.Settings.TenantMaxWaiting > 0 {
			told.add("sluice_refused_total", float64(counts.Refused), q.Name)
			told.add("sluice_shed_total", float64(counts.Shed), q.Name)
		}
	}
	return nil
}

// readFlows reads the use of rates and limits.
func (g *Gauges) readFlows(ctx context.Context, told *told) error {
	if g.round.queues == nil {
		return errNoQueues
	}
	flows, err := bounded(ctx, g, func(ctx context.Context) ([]sluice.Flow, error) {
		return g.store.Flows(ctx, max(g.options.TopTenants, 0))
	})
	if err != nil {
		return err
	}
	byQueue := make(map[string]sluice.Flow, len(flows))
	for _, f := range flows {
		byQueue[f.Queue] = f
	}
	g.round.tokens = make(map[string]float64)
	for _, q := range g.round.queues {
		f, found := byQueue[q.Name]
		if !found {
			continue // the queue is new
		}
		if !q.Settings.Rate.IsZero() {
			told.add("sluice_rate_tokens", f.Tokens, q.Name)
			g.round.tokens[q.Name] = f.Tokens
		}
		told.add("sluice_tenants_at_limit", float64(f.AtLimit), q.Name)
		told.add("sluice_blocked_jobs", float64(f.Ordered), q.Name, "order")
		told.add("sluice_blocked_jobs", float64(f.After), q.Name, "after")
		for _, of := range f.Tenants {
			told.add("sluice_tenant_in_flight", float64(of.InFlight), q.Name, of.Tenant)
			if of.EffectiveLimits.Concurrency > 0 {
				told.add("sluice_tenant_concurrency", float64(of.EffectiveLimits.Concurrency), q.Name, of.Tenant)
			}
		}
	}
	return nil
}

// readLimits reads how much of the limits is in use that queues share.
func (g *Gauges) readLimits(ctx context.Context, told *told) error {
	uses, err := bounded(ctx, g, func(ctx context.Context) ([]limit.Use, error) { return limit.Uses(ctx, g.store) })
	if err != nil {
		return err
	}
	now, err := bounded(ctx, g, g.store.Now)
	if err != nil {
		return err
	}
	for _, use := range uses[:min(len(uses), g.options.MaxQueues)] {
		told.add("sluice_limit_in_flight", float64(use.InFlight), use.Limit.Name)
		told.flag("sluice_limit_closed", use.Limit.ClosedAt(now), use.Limit.Name)
		if use.Limit.Concurrency > 0 {
			told.add("sluice_limit_concurrency", float64(use.Limit.Concurrency), use.Limit.Name)
		}
	}
	return nil
}

// readDepths reads how many jobs there are.
func (g *Gauges) readDepths(ctx context.Context, told *told) error {
	if g.round.queues == nil {
		return errNoQueues
	}
	for _, q := range g.round.queues {
		inFlight := 0
		depth, err := bounded(ctx, g, func(ctx context.Context) (depth sluice.Depth, err error) {
			depth, inFlight, err = g.depth(ctx, q.Name)
			return depth, err
		})
		if err != nil {
			return err
		}
		g.collectDepth(told, q, depth, inFlight)
		level, err := bounded(ctx, g, func(ctx context.Context) (pressure.Level, error) { return pressure.Of(ctx, g.store, q) })
		if err != nil {
			return err
		}
		if level.Limit > 0 {
			told.add("sluice_waiting_used", level.Used(), q.Name)
		}
	}
	return nil
}

// countLimit is the number at which counting the jobs of a queue stops, so that a read costs the same for any
// number.
const countLimit = 10_000

// depth counts the jobs of a queue, and takes upkeep's last count if there are many.
func (g *Gauges) depth(ctx context.Context, queue string) (depth sluice.Depth, inFlight int, err error) {
	depth, err = g.store.Depth(ctx, queue, countLimit)
	inFlight = depth.InFlight()
	if err != nil || max(depth.Ready, depth.Scheduled, depth.Blocked, inFlight) < countLimit {
		return depth, inFlight, err
	}
	waves, err := forecast.Given(g.store).Waves(ctx, forecast.Filter{Queue: queue, Ahead: time.Nanosecond})
	if err != nil || len(waves.Queues) != 1 || waves.Queues[0].Stale(waves.Now) {
		return depth, inFlight, err
	}
	counted := waves.Queues[0]
	scheduled := counted.Later.Jobs
	for _, wave := range counted.Ahead {
		scheduled += wave.Jobs
	}
	for _, figure := range []struct {
		bounded *int
		counted int
	}{{&depth.Ready, counted.Due.Jobs}, {&depth.Scheduled, scheduled}, {&depth.Blocked, counted.Blocked.Jobs}, {&inFlight, counted.InFlight.Jobs}} {
		if *figure.bounded >= countLimit {
			*figure.bounded = max(*figure.bounded, figure.counted)
		}
	}
	return depth, inFlight, nil
}

func (g *Gauges) collectDepth(told *told, q sluice.Queue, d sluice.Depth, inFlight int) {
	for _, figure := range []struct {
		state string
		jobs  int
	}{
		{"ready", d.Ready},
		{"scheduled", d.Scheduled},
		{"blocked", d.Blocked},
		{"claimed", d.Claimed},
		{"dispatched", d.Dispatched},
		{"uncertain", d.Uncertain},
		{"dead", d.Dead},
	} {
		told.add("sluice_jobs", float64(figure.jobs), q.Name, figure.state)
	}
	oldest := 0.0
	if !d.OldestDue.IsZero() {
		oldest = max(q.Now.Sub(d.OldestDue).Seconds(), 0)
	}
	told.add("sluice_oldest_due_seconds", oldest, q.Name)
	told.add("sluice_in_flight", float64(inFlight), q.Name)
	held := g.heldBy(q, inFlight)
	for _, reason := range []string{"paused", "rate", "in_flight"} {
		jobs := 0.0
		if reason == held {
			jobs = float64(d.Ready)
		}
		told.add("sluice_blocked_jobs", jobs, q.Name, reason)
	}
}

// heldBy returns the reason that holds back all ready jobs of a queue; empty: none.
func (g *Gauges) heldBy(q sluice.Queue, inFlight int) string {
	tokens, rated := g.round.tokens[q.Name]
	switch {
	case q.Settings.PausedAt(q.Now):
		return "paused"
	case rated && tokens < 1:
		return "rate"
	case q.Settings.Concurrency > 0 && inFlight >= q.Settings.Concurrency:
		return "in_flight"
	}
	return ""
}

// readHolders reads which processes are at work.
func (g *Gauges) readHolders(ctx context.Context, told *told) error {
	if g.round.queues == nil {
		return errNoQueues
	}
	holders, err := bounded(ctx, g, presence.Given(g.store).Holders)
	if err != nil {
		return err
	}
	now := time.Now()
	if len(g.round.queues) > 0 {
		now = g.round.queues[0].Now // holders' heartbeats are by the store's clock
	}
	holders = slices.DeleteFunc(holders, func(h presence.Holder) bool { return now.Sub(h.Seen) > silence })
	for _, role := range []string{presence.RoleWorker, presence.RoleDispatcher, presence.RoleUpkeep, presence.RoleForwarder} {
		g.collectRole(told, role, holders)
	}
	for _, q := range g.round.queues {
		open := 0
		for _, h := range holders {
			if h.BreakerOpen(q.Name) {
				open++
			}
		}
		told.add("sluice_breaker_open", float64(open), q.Name)
	}
	return nil
}

func (g *Gauges) collectRole(told *told, role string, holders []presence.Holder) {
	var count, troubled, slots, busy int
	serving, silent := make(map[string]int), make(map[string]int)
	for _, h := range holders {
		if h.Role != role {
			continue
		}
		count, slots, busy = count+1, slots+h.Slots, busy+h.Busy
		if len(h.Conditions) > 0 {
			troubled++
		}
		for _, queue := range h.Queues {
			serving[queue]++
			if !h.Counts {
				silent[queue]++
			}
		}
	}
	told.add("sluice_holders", float64(count), role)
	told.add("sluice_holders_with_conditions", float64(troubled), role)
	told.add("sluice_holder_slots", float64(slots), role)
	told.add("sluice_holder_busy", float64(busy), role)
	if role == presence.RoleUpkeep {
		return
	}
	for _, q := range g.round.queues {
		told.add("sluice_queue_holders", float64(serving[q.Name]), q.Name, role)
		told.add("sluice_queue_holders_not_counted", float64(silent[q.Name]), q.Name, role)
	}
}

// readAlerts counts alerts by state and severity.
func (g *Gauges) readAlerts(ctx context.Context, told *told) error {
	book, err := bounded(ctx, g, alert.Given(g.store).AlertBook)
	if err != nil {
		return err
	}
	type kind struct {
		state    alert.State
		severity health.Severity
	}
	counts := make(map[kind]int)
	for _, alert := range book.Alerts {
		counts[kind{alert.State, alert.Severity}]++
	}
	for _, state := range []alert.State{alert.Pending, alert.Firing, alert.Silenced} {
		for _, severity := range []health.Severity{health.SeverityWarning, health.SeverityError, health.SeverityCritical} {
			told.add("sluice_alerts", float64(counts[kind{state, severity}]), string(state), string(severity))
		}
	}
	return nil
}

// readMemory takes the health metrics that the store holds in memory.
func (g *Gauges) readMemory(_ context.Context, told *told) error {
	g.collectHealth(told, g.kind, health.MetricsOf(g.store), nil)
	return nil
}

// readHealth reads the store's health.
func (g *Gauges) readHealth(ctx context.Context, told *told) error {
	report, err := bounded(ctx, g, func(ctx context.Context) (health.Report, error) {
		return health.Of(ctx, g.store, health.Options{})
	})
	if err != nil {
		return err
	}
	g.kind = report.Kind
	inMemory := make(map[string]bool)
	for _, f := range health.MetricsOf(g.store) {
		inMemory[f.Name] = true
	}
	g.collectHealth(told, report.Kind, report.Metrics, inMemory)
	for _, f := range report.Findings {
		if !f.Well {
			told.add("sluice_health_findings", 1, f.Check, string(f.Severity))
		}
	}
	return nil
}

// collectHealth adds figures of a store's health, except figures of another source.
func (g *Gauges) collectHealth(told *told, kind string, figures []health.Metric, except map[string]bool) {
	for _, f := range figures {
		if except[f.Name] {
			continue
		}
		var labels []string
		if f.Label.Name != "" {
			labels = []string{f.Label.Value}
		}
		told.add("sluice_"+kind+"_"+f.Name, f.Value, labels...)
	}
}
