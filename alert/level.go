package alert

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/stat"
)

const (
	// levelEvery is how often the levels of queues are kept.
	levelEvery = time.Minute
	// mostLevels is of how many queues they are kept, those with the most ready jobs. It bounds the rows of queues in which
	// nothing moves.
	mostLevels = 100
)

// levels keeps the history of how many jobs are ready. It costs no read of a queue: rules have read it.
type levels struct {
	at   time.Time       // when levels were kept last
	full map[string]bool // the queues that had ready jobs then
}

// keep adds the levels of queues and tenants to the statistics, if it is time. A queue without ready jobs has none, but for the first
// look at which they are gone. So idle queues cost nothing.
func (l *levels) keep(ctx context.Context, holder string, f *meter, queues []sluice.Queue) error {
	if f.book.Now.Sub(l.at) < levelEvery {
		return nil
	}
	var stats []stat.Stat
	full := make(map[string]bool)
	for queue, d := range f.depths {
		if d.Ready == 0 && !l.full[queue] {
			continue
		}
		level := &stat.Level{Ready: int64(d.Ready), OldestSeconds: f.age(d).Seconds()}
		if d.Ready >= f.limit { // the count stopped there
			due, known, err := f.due(ctx, queue)
			if err != nil {
				return err
			}
			if known {
				level.Ready = max(level.Ready, int64(due))
			}
		}
		stats = append(stats, stat.Stat{Queue: queue, At: f.book.Now.UTC().Truncate(stat.Fine), Every: stat.Fine, Level: level})
	}
	slices.SortFunc(stats, func(a, b stat.Stat) int {
		return cmp.Or(cmp.Compare(b.Level.Ready, a.Level.Ready), cmp.Compare(a.Queue, b.Queue))
	})
	stats = stats[:min(len(stats), mostLevels)]
	for _, s := range stats {
		if s.Level.Ready > 0 {
			full[s.Queue] = true
		}
	}
	tenants, err := fullTenants(ctx, f, queues)
	if err != nil {
		return err // the next look keeps the levels
	}
	l.at, l.full = f.book.Now, full
	if stats = append(stats, tenants...); len(stats) == 0 {
		return nil
	}
	if err := stat.Given(f.store).AddStats(ctx, holder, stats); !errors.Is(err, sluice.ErrNotFound) {
		return err
	}
	return nil // the store keeps no statistics
}

// fullTenants finds the tenants with as many jobs in flight as they may have. Only queues whose tenants take turns bound them:
// without one that works, there is nothing to read.
func fullTenants(ctx context.Context, f *meter, queues []sluice.Queue) (full []stat.Stat, err error) {
	bounds := func(q sluice.Queue) bool {
		d := f.depths[q.Name]
		return q.Settings.Fair && d.InFlight() > 0
	}
	if !slices.ContainsFunc(queues, bounds) {
		return nil, nil
	}
	flows, err := f.store.Flows(ctx, stat.MaxTenants)
	for _, flow := range flows {
		for _, t := range flow.Tenants {
			if most := t.EffectiveLimits.Concurrency; most > 0 && t.InFlight >= most {
				full = append(full, stat.Stat{Queue: flow.Queue, Tenant: t.Tenant, At: f.book.Now.UTC().Truncate(stat.Fine), Every: stat.Fine, Level: &stat.Level{Full: 1}})
			}
		}
	}
	return full, err
}
