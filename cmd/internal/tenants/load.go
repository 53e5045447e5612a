package tenants

import (
	"context"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/cmd/internal/draw"
	"github.com/sluice-queue/sluice/forecast"
)

// mostTenants is how many tenants of a queue are read, those with the most jobs in flight.
const mostTenants = 10_000

// load is how many jobs tenants have in all queues.
type load struct {
	jobs map[string]int
	// cut counts the queues with incomplete figures; named counts, per tenant, those that have the tenant's exact
	// figure.
	cut   int
	named map[string]int
}

func newLoad() load { return load{jobs: make(map[string]int), named: make(map[string]int)} }

// add adds one queue's figures. whole: other tenants have no jobs there. exact: counting did not stop early.
func (l *load) add(jobs map[string]int, whole, exact bool) {
	for tenant, n := range jobs {
		l.jobs[tenant] += n
		if exact && !whole {
			l.named[tenant]++
		}
	}
	if !exact || !whole {
		l.cut++
	}
}

// of returns a tenant's jobs; more: there may be more jobs. nil: unknown.
func (l *load) of(tenant string) (jobs *int, more bool) {
	n := l.jobs[tenant]
	more = l.cut > l.named[tenant]
	if more && n == 0 {
		return nil, false
	}
	return &n, more
}

// LoadText formats a figure of a load.
func LoadText(jobs *int, more bool) string {
	switch {
	case jobs == nil:
		return "-"
	case more:
		return draw.Count(*jobs) + "+"
	}
	return draw.Count(*jobs)
}

// tenantLoads returns the jobs of tenants in flight now, and waiting at upkeep's last count. Neither counts the store's
// jobs. Jobs in flight come from an index, at most [sluice.DepthLimit] per queue; waiting ones from a bounded number of
// rows.
func tenantLoads(ctx context.Context, store sluice.Store, client *sluice.Client) (inFlight, waiting load, err error) {
	flows, err := client.Flows(ctx, mostTenants)
	if err != nil {
		return inFlight, waiting, err
	}
	waves, err := forecast.Read(ctx, store, forecast.Filter{Tenants: true})
	return loadInFlight(flows), loadWaiting(flows, waves), err
}

func loadInFlight(flows []sluice.Flow) load {
	out := newLoad()
	for _, f := range flows {
		jobs, all := make(map[string]int, len(f.Tenants)), 0
		for _, t := range f.Tenants {
			jobs[t.Tenant] = t.InFlight
			all += t.InFlight
		}
		out.add(jobs, len(f.Tenants) < mostTenants, all < sluice.DepthLimit)
	}
	return out
}

// loadWaiting sums queued jobs, whenever due. A queue without a recent count is unknown.
func loadWaiting(flows []sluice.Flow, waves forecast.Counts) load {
	counted := make(map[string]forecast.QueueCounts, len(waves.Queues))
	for _, q := range waves.Queues {
		counted[q.Queue] = q
	}
	out := newLoad()
	for _, f := range flows {
		q := counted[f.Queue]
		if q.Stale(waves.Now) {
			out.add(nil, false, false)
			continue
		}
		jobs, others := make(map[string]int), 0
		tallies := []forecast.Tally{q.Due, q.Blocked, q.Later}
		for _, w := range q.Ahead {
			tallies = append(tallies, w.Tally)
		}
		for _, t := range tallies {
			others += t.Jobs
			for tenant, n := range t.Tenants {
				jobs[tenant] += n
				others -= n
			}
		}
		out.add(jobs, others == 0, true)
	}
	return out
}
