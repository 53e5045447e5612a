package stat

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/feature"
	"github.com/sluice-queue/sluice/presence"
)

// Summary tells how a queue is, or one tenant in it, over a window of time.
type Summary struct {
	Queue  string `json:"queue"`
	Tenant string `json:"tenant,omitempty"`
	// From and To are what is told of: whole slots, so that the window may begin a little earlier than was asked for.
	From time.Time `json:"from"`
	To   time.Time `json:"to"`

	// Depth counts the queue's jobs as they are now. OldestAge is how long the one that waits longest has been due, InFlight
	// what Depth.InFlight says. They are of whole queues.
	Depth     sluice.Depth  `json:"depth"`
	OldestAge time.Duration `json:"-"`
	InFlight  int           `json:"in_flight"`

	// Counted says whether the figures below tell anything: something was counted in the window, or processes that serve the
	// queue count, and nothing happened. Without it they are those of an empty window, and must not be shown as figures. See
	// Known.
	Counted bool `json:"counted"`

	// Counts are those of the window.
	Counts Counts `json:"counts"`
	// Rate is how many jobs completed per second.
	Rate float64 `json:"rate"`
	// SuccessRate is completed / (completed + dead); 1 when no job ended. An attempt that failed and is tried again
	// does not lower it.
	SuccessRate float64 `json:"success_rate"`
	// LeaseExpiryRate is recovered / claimed: how many hand-outs ended by their lease. 0 when none was claimed or recovered; 1
	// when more were recovered than claimed, for their claims came before the window.
	LeaseExpiryRate float64 `json:"lease_expiry_rate"`
	// Wait is from due to claim, Run from claim to end, Total from due to end, the latter two of jobs that completed.
	Wait  Quantiles `json:"wait"`
	Run   Quantiles `json:"run"`
	Total Quantiles `json:"total"`

	// Every is how long a slot is, and Slots are those that it was worked out from, the oldest first; one in which nothing
	// happened is missing.
	Every time.Duration `json:"-"`
	Slots []Stat        `json:"-"`
}

// Quantiles are the times that a half, 95 and 99 of 100 do not exceed, by Histogram.Quantile; 0 when there are none.
type Quantiles struct{ P50, P95, P99 time.Duration }

// Quantiles gives the usual three.
func (h Histogram) Quantiles() Quantiles {
	return Quantiles{P50: h.Quantile(0.50), P95: h.Quantile(0.95), P99: h.Quantile(0.99)}
}

// NewSummary works out the figures of slots that go from an instant to another, all of one queue or tenant; without any
// slots, those of a time in which nothing happened. Queue, Tenant and what is as of now are for the caller to fill in.
func NewSummary(stats []Stat, from, to time.Time) Summary {
	var sum Stat
	for _, s := range stats {
		sum.Merge(s)
	}
	c := sum.Counts
	return Summary{
		From: from, To: to, Counts: c, Slots: stats,
		Rate:            perSecond(c.Completed, to.Sub(from)),
		SuccessRate:     share(c.Completed, c.Completed+c.Dead, 1),
		LeaseExpiryRate: share(c.Recovered, max(c.Recovered, c.Claimed), 0),
		Wait:            sum.Wait.Quantiles(), Run: sum.Run.Quantiles(), Total: sum.Total.Quantiles(),
	}
}

// perSecond is how many per second a count over a window is; 0 where there is no window.
func perSecond(n int64, window time.Duration) float64 {
	if window <= 0 {
		return 0
	}
	return float64(n) / window.Seconds()
}

// share is a part of a whole, and otherwise where there is no whole. A window can hold the end of more than began in it.
func share(part, whole int64, otherwise float64) float64 {
	if whole == 0 {
		return otherwise
	}
	return math.Min(float64(part)/float64(whole), 1)
}

// Of sums up a queue: its depth now, and its statistics over a window up to now. Window 0 means [DefaultWindow]. An unknown queue
// is a [sluice.ErrNotFound]. Of reads some tens of slots and the queue's depth.
func Of(ctx context.Context, store sluice.Store, queue string, window time.Duration) (Summary, error) {
	all, err := summaries(ctx, store, sluice.QueueFilter{Names: []string{queue}}, Filter{}, window)
	if err != nil {
		return Summary{}, err
	}
	if len(all) == 0 {
		return Summary{}, fmt.Errorf("queue %.80q: %w", queue, sluice.ErrNotFound)
	}
	return all[0], nil
}

// OfQueues sums up the queues that a filter chooses, by name. It reads the slots and the depth of each.
func OfQueues(ctx context.Context, store sluice.Store, filter sluice.QueueFilter, window time.Duration) ([]Summary, error) {
	return summaries(ctx, store, filter, Filter{}, window)
}

// OfTenant sums up a tenant's jobs in a queue over a window; depths are not counted by tenant and left out. Slots in which the
// tenant was not among the [MaxTenants] largest are missing.
func OfTenant(ctx context.Context, store sluice.Store, queue, tenant string, window time.Duration) (Summary, error) {
	if tenant == "" {
		return Summary{}, feature.Invalid("tenant", "name one; without, it is a Summary")
	}
	all, err := summaries(ctx, store, sluice.QueueFilter{Names: []string{queue}}, Filter{Tenant: tenant}, window)
	if err != nil {
		return Summary{}, err
	}
	if len(all) == 0 {
		return Summary{}, fmt.Errorf("queue %.80q: %w", queue, sluice.ErrNotFound)
	}
	return all[0], nil
}

// OfTenants sums up the largest tenants of the queues that a filter chooses: by queue, then the tenant that moved the most
// jobs first.
func OfTenants(ctx context.Context, store sluice.Store, filter sluice.QueueFilter, window time.Duration) ([]Summary, error) {
	return summaries(ctx, store, filter, Filter{Tenants: true}, window)
}

func summaries(ctx context.Context, store sluice.Store, chosen sluice.QueueFilter, filter Filter, window time.Duration) ([]Summary, error) {
	if window == 0 {
		window = DefaultWindow
	}
	if window < Fine || window > HourKept {
		return nil, feature.Invalid("window", fmt.Sprintf("%s is not from %s to %s", window, Fine, HourKept))
	}
	for _, name := range chosen.Names {
		if err := sluice.CheckQueueName(name); err != nil {
			return nil, err
		}
	}
	queues, err := sluice.GivenStore(store).Queues(ctx, chosen)
	if err != nil || len(queues) == 0 {
		return nil, err
	}
	if chosen.Limit > 0 || len(chosen.Names) > 0 {
		for _, q := range queues {
			filter.Queues = append(filter.Queues, q.Name)
		}
	}
	filter.To = queues[0].Now
	filter.Every = Every(window)
	filter.From = filter.To.Add(-window).Truncate(filter.Every)
	byQueue, err := slotsByQueue(ctx, store, filter)
	if err != nil {
		return nil, err
	}
	holders, err := presence.Given(store).Holders(ctx)
	if err != nil {
		return nil, err
	}
	var out []Summary
	for _, q := range queues {
		if filter.Tenants {
			for _, s := range tenantSummaries(q.Name, byQueue[q.Name], filter) {
				s.Counted = Known(q.Name, true, holders, filter.To)
				out = append(out, s)
			}
			continue
		}
		s := summaryOf(q.Name, filter.Tenant, byQueue[q.Name], filter)
		s.Counted = Known(q.Name, len(s.Slots) > 0, holders, filter.To)
		if filter.Tenant == "" {
			err = errors.Join(err, addDepth(ctx, store, &s))
		}
		out = append(out, s)
	}
	return out, err
}

func summaryOf(queue, tenant string, slots []Stat, filter Filter) Summary {
	s := NewSummary(slots, filter.From, filter.To)
	s.Queue, s.Tenant, s.Every = queue, tenant, filter.Every
	return s
}

// tenantSummaries takes the slots of a queue apart by tenant.
func tenantSummaries(queue string, slots []Stat, filter Filter) []Summary {
	byTenant := make(map[string][]Stat)
	for _, s := range slots {
		if s.Tenant != "" {
			byTenant[s.Tenant] = append(byTenant[s.Tenant], s)
		}
	}
	var out []Summary
	for tenant, slots := range byTenant {
		out = append(out, summaryOf(queue, tenant, slots, filter))
	}
	slices.SortFunc(out, func(a, b Summary) int {
		return cmp.Or(cmp.Compare(b.Counts.Sum(), a.Counts.Sum()), strings.Compare(a.Tenant, b.Tenant))
	})
	return out
}

// slotsByQueue reads all slots of a window, a page at a time.
func slotsByQueue(ctx context.Context, store sluice.Store, filter Filter) (map[string][]Stat, error) {
	filter.Limit = maxSlots
	out := make(map[string][]Stat)
	for {
		stats, err := Given(store).Stats(ctx, filter)
		if err != nil {
			return nil, err
		}
		if len(stats) < filter.Limit {
			for _, s := range stats {
				out[s.Queue] = append(out[s.Queue], s)
			}
			return out, nil
		}
		last := stats[len(stats)-1].At // it may go on, so it is read again
		for _, s := range stats {
			if s.At.Before(last) {
				out[s.Queue] = append(out[s.Queue], s)
			}
		}
		if !last.After(filter.From) { // a slot has more queues than are read at once
			filter.Limit *= 2
			continue
		}
		filter.From = last
	}
}

func addDepth(ctx context.Context, store sluice.Store, s *Summary) error {
	depth, err := store.Depth(ctx, s.Queue, sluice.DepthLimit)
	if err != nil {
		return fmt.Errorf("queue %q: %w", s.Queue, err)
	}
	s.Depth, s.InFlight = depth, depth.InFlight()
	if !depth.OldestDue.IsZero() {
		s.OldestAge = max(s.To.Sub(depth.OldestDue), 0)
	}
	return nil
}
