package alert

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/admission"
	"github.com/sluice-queue/sluice/changes"
	"github.com/sluice-queue/sluice/forecast"
	"github.com/sluice-queue/sluice/presence"
	"github.com/sluice-queue/sluice/pressure"
	"github.com/sluice-queue/sluice/stat"
)

// leastCount is how far jobs are counted, at least, for any rules.
const leastCount = 1000

// figures reads the figures of rules, each once per look, and only the figures that a rule needs.
type meter struct {
	watcher *Watcher
	store   sluice.Store
	book    Book
	limit   int // of counts of jobs

	depths  map[string]sluice.Depth
	holders []presence.Holder // the living holders
	asked   bool              // the holders have been read
	waves   map[string]forecast.QueueCounts
	stats   map[time.Duration]map[string]stat.Stat
	counted map[string]bool // queues with counts in the last day
}

func newMeter(w *Watcher, book Book, targets []Target) *meter {
	f := &meter{
		watcher: w, store: w.store, book: book, limit: leastCount,
		depths: make(map[string]sluice.Depth), stats: make(map[time.Duration]map[string]stat.Stat),
	}
	for _, t := range targets {
		if metric, err := MetricNamed(t.Rule.Metric); err == nil && metric.Unit == "jobs" {
			f.limit = max(f.limit, int(math.Min(t.Threshold, sluice.DepthLimit-1))+1)
		}
	}
	return f
}

// read reads the figure of a target.
func (f *meter) read(ctx context.Context, t Target) (Reading, error) {
	switch t.Rule.Metric {
	case MetricUpkeepMissing:
		return f.upkeepMissing(t), nil
	case MetricConditions:
		return f.trouble(ctx)
	case MetricQueues:
		return f.queuesUsed(ctx)
	case MetricOldestTx, MetricDeadRows, MetricWAL, MetricConnections, MetricClock:
		return f.ofStore(ctx, t.Rule.Metric)
	case MetricSuccessRate, MetricDeadRate, MetricRecoveredRate, MetricStartFailures, MetricLeaseExpiry, MetricRunP95:
		return f.overTime(ctx, t)
	case MetricDrainTime:
		return f.drainTime(ctx, t.Queue)
	case MetricPace, MetricStalled:
		return f.moving(ctx, t)
	case MetricBreakerOpen:
		return f.breakerOpen(ctx, t.Queue.Name)
	case MetricSettingsWrong:
		return settingsWrong(t.Queue), nil
	case MetricWaiting:
		return f.waiting(ctx, t.Queue)
	}
	return f.now(ctx, t)
}

// queuesUsed returns the stored queues as a share of the most that the store may have.
func (f *meter) queuesUsed(ctx context.Context) (Reading, error) {
	policy, err := admission.Of(ctx, f.store)
	if err != nil {
		return Reading{}, err
	}
	return Reading{Value: policy.Used(), Detail: fmt.Sprintf("%d of %d", policy.Stored, policy.MaxQueues)}, nil
}

// upkeepMissing returns how long ago a process looked last, by the stored alert of this rule.
func (f *meter) upkeepMissing(t Target) Reading {
	last := stored(f.book.Alerts, t.Rule.Name, "").At
	if last.IsZero() {
		return Reading{}
	}
	missing := f.book.Now.Sub(last).Seconds()
	return Reading{Value: math.Max(0, missing), Detail: "since " + last.UTC().Format(time.RFC3339)}
}

// waiting returns the waiting jobs of a queue as a share of its max_waiting.
func (f *meter) waiting(ctx context.Context, q sluice.Queue) (Reading, error) {
	level, err := pressure.Of(ctx, f.store, q)
	if err != nil || level.Limit == 0 {
		return Reading{}, err
	}
	return Reading{Value: level.Used(), Detail: fmt.Sprintf("%d of %d", level.Waiting, level.Limit)}, nil
}

func settingsWrong(q sluice.Queue) Reading {
	if q.Wrong == "" {
		return Reading{}
	}
	return Reading{Value: 1, Detail: q.Wrong}
}

// alive lists the holders with a recent heartbeat.
func (f *meter) alive(ctx context.Context) ([]presence.Holder, error) {
	if f.asked {
		return f.holders, nil
	}
	all, err := presence.Given(f.store).Holders(ctx)
	if err != nil {
		return nil, err
	}
	for _, h := range all {
		if h.Alive(f.book.Now) {
			f.holders = append(f.holders, h)
		}
	}
	f.asked = true
	return f.holders, nil
}

// serves reports whether a living holder takes the jobs of a queue.
func (f *meter) serves(ctx context.Context, q sluice.Queue) (bool, error) {
	holders, err := f.alive(ctx)
	return slices.ContainsFunc(holders, func(h presence.Holder) bool { return h.Takes(q, f.book.Now) }), err
}

// trouble counts holders with conditions. Open breakers have a rule of their own, which also reports an engine that
// upkeep cannot ask.
func (f *meter) trouble(ctx context.Context) (Reading, error) {
	holders, err := f.alive(ctx)
	if err != nil {
		return Reading{}, err
	}
	return f.conditions(ctx, func(h presence.Holder, c presence.Condition) bool {
		broken := slices.ContainsFunc(holders, func(d presence.Holder) bool { return d.BreakerOpen(c.Queue) })
		return !c.OfEngine() || !broken
	})
}

func (f *meter) breakerOpen(ctx context.Context, queue string) (Reading, error) {
	return f.conditions(ctx, func(h presence.Holder, c presence.Condition) bool {
		return h.Role == presence.RoleDispatcher && c.OfEngine() && c.Queue == queue
	})
}

// conditions counts the holders with some condition of a kind, and describes the last of them.
func (f *meter) conditions(ctx context.Context, which func(presence.Holder, presence.Condition) bool) (Reading, error) {
	holders, err := f.alive(ctx)
	var out Reading
	for _, h := range holders {
		var found []presence.Condition
		for _, c := range h.Conditions {
			if which(h, c) {
				found = append(found, c)
			}
		}
		if len(found) > 0 {
			out.Value++
			out.Detail = h.ID + ": " + presence.Summary(found)
		}
	}
	return out, err
}

// depth counts a queue's jobs, as far as a rule needs.
func (f *meter) depth(ctx context.Context, queue string) (sluice.Depth, error) {
	if d, known := f.depths[queue]; known {
		return d, nil
	}
	d, err := f.store.Depth(ctx, queue, f.limit)
	if err == nil {
		f.depths[queue] = d
	}
	return d, err
}

// paused reports whether somebody has paused a queue.
func (f *meter) paused(q sluice.Queue) bool {
	return q.Settings.PausedAt(f.book.Now)
}

// age returns how long the oldest ready job has been due.
func (f *meter) age(d sluice.Depth) time.Duration {
	if d.OldestDue.IsZero() {
		return 0
	}
	return max(0, f.book.Now.Sub(d.OldestDue))
}

// now reads figures of this moment.
func (f *meter) now(ctx context.Context, t Target) (Reading, error) {
	d, err := f.depth(ctx, t.Queue.Name)
	if err != nil {
		return Reading{}, err
	}
	paused := f.paused(t.Queue)
	value := 0.0
	switch t.Rule.Metric {
	case MetricDead:
		value = float64(d.Dead)
	case MetricUncertain:
		value = float64(d.Uncertain)
	case MetricPausedReady:
		if paused && t.Queue.Settings.PausedUntil.IsZero() && !schedulesPause(t.Queue) {
			value = float64(d.Ready)
		}
	case MetricReady:
		if !paused {
			value = float64(d.Ready)
		}
	case MetricOldestAge:
		if !paused {
			value = f.age(d).Seconds()
		}
	case MetricUnserved:
		served, err := f.serves(ctx, t.Queue)
		if err != nil {
			return Reading{}, err
		}
		if !paused && !served && d.Claimed == 0 {
			value = float64(d.Ready)
		}
	default:
		return Reading{}, fmt.Errorf("metric %q: %w", t.Rule.Metric, sluice.ErrNotFound)
	}
	return Reading{Value: value}, nil
}

// schedulesPause reports whether a scheduled change pauses and opens a queue.
func schedulesPause(q sluice.Queue) bool {
	scheduled, _ := changes.List(q) // upkeep does not apply unreadable changes
	for _, p := range scheduled {
		_, sets := p.Set["paused"]
		_, reverts := p.Swaps["paused"]
		if sets || reverts {
			return true
		}
	}
	return false
}

// due returns how many jobs of a queue are due, as a forecast counted them lately.
func (f *meter) due(ctx context.Context, queue string) (jobs int, known bool, err error) {
	if f.waves == nil {
		waves, err := forecast.Given(f.store).Waves(ctx, forecast.Filter{Ahead: time.Microsecond})
		if err != nil {
			return 0, false, err
		}
		f.waves = make(map[string]forecast.QueueCounts, len(waves.Queues))
		for _, w := range waves.Queues {
			f.waves[w.Queue] = w
		}
	}
	w, known := f.waves[queue]
	return w.Due.Jobs, known && !w.Stale(f.book.Now), nil
}

// drainTime returns how long the rate takes for the ready jobs. The depth stops counting early; the count of a
// forecast does not.
func (f *meter) drainTime(ctx context.Context, q sluice.Queue) (Reading, error) {
	rate := q.Settings.Rate.PerSecond()
	if rate <= 0 {
		return Reading{Unknown: true}, nil
	}
	if f.paused(q) {
		return Reading{}, nil
	}
	due, known, err := f.due(ctx, q.Name)
	if err != nil || known {
		return Reading{Value: float64(due) / rate}, err
	}
	d, err := f.depth(ctx, q.Name)
	return Reading{Value: float64(d.Ready) / rate, Unknown: d.Ready >= f.limit}, err
}
