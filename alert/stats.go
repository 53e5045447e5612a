package alert

import (
	"context"
	"math"
	"strings"
	"time"

	"github.com/sluice-queue/sluice/health"
	"github.com/sluice-queue/sluice/stat"
)

// statPage is how many slots are read at once.
const statPage = 10_000

// window returns the statistics of a queue over a window that ends now. Known is false if nobody counts.
func (f *meter) window(ctx context.Context, queue string, window time.Duration) (s stat.Stat, known bool, err error) {
	if known, err = f.somebodyCounts(ctx, queue); err != nil || !known {
		return s, false, err
	}
	if f.stats[window] == nil {
		byQueue, err := f.slots(ctx, window, stat.Every(window))
		if err != nil {
			return s, false, err
		}
		f.stats[window] = byQueue
	}
	return f.stats[window][queue], true, nil
}

// somebodyCounts reports whether a queue has statistics: something was counted in the last day, or the holders that
// serve the queue count.
func (f *meter) somebodyCounts(ctx context.Context, queue string) (bool, error) {
	if f.counted == nil {
		byQueue, err := f.slots(ctx, countedWithin, stat.Hour)
		if err != nil {
			return false, err
		}
		f.counted = make(map[string]bool, len(byQueue))
		for name := range byQueue {
			f.counted[name] = true
		}
	}
	holders, err := f.alive(ctx)
	return stat.Known(queue, f.counted[queue], holders, f.book.Now), err
}

// countedWithin is how recent a count must be for 0 to mean that nothing happened since.
const countedWithin = 24 * time.Hour

// notCounted is the reading if nobody counts.
var notCounted = Reading{
	Unknown: true, Detail: stat.NotCounted + ": the rule needs statistics, and no process that counts has served the queue for a day, or one that does not serves it",
}

// slots adds up the slots of a window by queue, a page at a time.
func (f *meter) slots(ctx context.Context, window, every time.Duration) (map[string]stat.Stat, error) {
	filter := stat.Filter{Every: every, From: f.book.Now.Add(-window).Truncate(every), To: f.book.Now, Limit: statPage}
	out := make(map[string]stat.Stat)
	for {
		stats, err := stat.Given(f.store).Stats(ctx, filter)
		if err != nil {
			return nil, err
		}
		full := len(stats) == filter.Limit
		for _, s := range stats {
			if full && s.At.Equal(stats[len(stats)-1].At) {
				break // it may go on, so it is read again
			}
			sum := out[s.Queue]
			sum.Merge(s)
			out[s.Queue] = sum
		}
		if !full {
			return out, nil
		}
		if last := stats[len(stats)-1].At; last.After(filter.From) {
			filter.From = last
		} else { // a slot has more queues than are read at once
			filter.Limit *= 2
		}
	}
}

// overTime reads figures over a window.
func (f *meter) overTime(ctx context.Context, t Target) (Reading, error) {
	window := t.Rule.Window
	s, known, err := f.window(ctx, t.Queue.Name, window)
	if err != nil || !known {
		return notCounted, err
	}
	summary := stat.NewSummary([]stat.Stat{s}, f.book.Now.Add(-window), f.book.Now)
	perSecond := func(n int64) float64 { return float64(n) / window.Seconds() }
	switch t.Rule.Metric {
	case MetricSuccessRate:
		return Reading{Value: summary.SuccessRate}, nil
	case MetricDeadRate:
		return Reading{Value: perSecond(s.Counts.Dead)}, nil
	case MetricRecoveredRate:
		return Reading{Value: perSecond(s.Counts.Recovered)}, nil
	case MetricStartFailures:
		return Reading{Value: perSecond(s.Counts.StartFailed)}, nil
	case MetricLeaseExpiry:
		return Reading{Value: summary.LeaseExpiryRate}, nil
	}
	if s.Run.Count() == 0 {
		return Reading{}, nil // nothing ran, so nothing is slow
	}
	return Reading{Value: summary.Run.P95.Seconds()}, nil
}

// moving checks a queue whose jobs have been ready for the whole window: do its jobs go on as its limits allow?
func (f *meter) moving(ctx context.Context, t Target) (Reading, error) {
	d, err := f.depth(ctx, t.Queue.Name)
	if err != nil {
		return Reading{}, err
	}
	well := Reading{}
	if t.Rule.Metric == MetricPace {
		well.Value = 1
	}
	if d.Ready == 0 || f.paused(t.Queue) || f.age(d) < t.Rule.Window {
		return well, nil
	}
	s, known, err := f.window(ctx, t.Queue.Name, t.Rule.Window)
	if err != nil || !known {
		return notCounted, err
	}
	if t.Rule.Metric == MetricPace {
		allowed := t.Queue.Settings.Rate.PerSecond() * t.Rule.Window.Seconds()
		if allowed <= 0 {
			return Reading{Unknown: true}, nil
		}
		return Reading{Value: math.Min(1, float64(s.Counts.Claimed)/allowed)}, nil
	}
	served, err := f.serves(ctx, t.Queue)
	if err != nil || !served || s.Counts.Claimed > 0 || d.InFlight() > 0 {
		return well, err
	}
	return Reading{Value: float64(d.Ready)}, nil
}

// healthEvery is how often the store is asked for its health. Rules about the store hold for minutes.
const healthEvery = 45 * time.Second

// healthCache is the last health report.
type healthCache struct {
	at     time.Time
	health health.Report
}

// ofStore reads figures of the store. If each table has a figure, it returns the highest.
func (f *meter) ofStore(ctx context.Context, metric string) (Reading, error) {
	cache := &f.watcher.health
	if cache.at.IsZero() || time.Since(cache.at) >= healthEvery {
		health, err := health.Of(ctx, f.store, health.Options{})
		if err != nil {
			return Reading{}, err
		}
		cache.at, cache.health = time.Now(), health
	}
	name := healthMetrics[metric]
	out := Reading{Unknown: true}
	for _, figure := range cache.health.Metrics {
		value := math.Abs(figure.Value)
		if figure.Name == name && (out.Unknown || value > out.Value) {
			out = Reading{Value: value, Detail: strings.TrimSpace(figure.Label.Name + " " + figure.Label.Value)}
		}
	}
	return out, nil
}

// healthMetrics are the names of the figures in health reports.
var healthMetrics = map[string]string{
	MetricOldestTx: "oldest_transaction_seconds", MetricDeadRows: "dead_rows", MetricWAL: "wal_bytes",
	MetricConnections: "connections_used", MetricClock: "clock_difference_seconds",
}
