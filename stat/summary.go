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

// Summary describes a queue, or one tenant in the queue, over a window of time.
type Summary struct {
	Queue  string `json:"queue"`
	Tenant string `json:"tenant,omitempty"`
	// From and To are the window in whole slots. It may begin a little earlier than requested.
	From time.Time `json:"from"`
	To   time.Time `json:"to"`

	// Depth counts the queue's jobs now. OldestAge is how long the oldest ready job has been due, and InFlight is
	// Depth.InFlight. A summary of a tenant has none of them.
	Depth     sluice.Depth  `json:"depth"`
	OldestAge time.Duration `json:"-"`
	InFlight  int           `json:"in_flight"`

	// Counted says that the figures below are known; see [Known]. If it is false, do not show them: they are the
	// figures of an empty window.
	Counted bool `json:"counted"`

	// Counts are the counts of the window.
	Counts Counts `json:"counts"`
	// Rate is how many jobs completed per second.
	Rate float64 `json:"rate"`
	// SuccessRate is completed / (completed + dead); 1 if no job ended. A failed attempt that is retried does not
	// lower it.
	SuccessRate float64 `json:"success_rate"`
	// LeaseExpiryRate is recovered / claimed: the share of claims whose lease ran out. 0 if the window has neither.
	// 1 if the window has more recoveries than claims.
	LeaseExpiryRate float64 `json:"lease_expiry_rate"`
	// Wait is from due to claim. Run is from claim to end and Total from due to end, of completed jobs.
	Wait  Quantiles `json:"wait"`
	Run   Quantiles `json:"run"`
	Total Quantiles `json:"total"`

	// Every is the length of a slot. Slots are the slots of the window, the oldest first; a slot without any move
	// is missing.
	Every time.Duration `json:"-"`
	Slots []Stat        `json:"-"`
}

// Quantiles are the times that 50 %, 95 % and 99 % of the jobs do not exceed; see [Histogram.Quantile]. 0: no job.
type Quantiles struct{ P50, P95, P99 time.Duration }

// Quantiles returns the three quantiles.
func (h Histogram) Quantiles() Quantiles {
	return Quantiles{P50: h.Quantile(0.50), P95: h.Quantile(0.95), P99: h.Quantile(0.99)}
}

// NewSummary computes the summary of slots of one queue or tenant, over a window. No slots: nothing happened. The
// caller fills in Queue, Tenant, and the figures of now.
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

// perSecond returns a count per second of a window; 0 for an empty window.
func perSecond(n int64, window time.Duration) float64 {
	if window <= 0 {
		return 0
	}
	return float64(n) / window.Seconds()
}

// share returns a part of a whole, at most 1, or otherwise if the whole is 0. A window can have more ends than
// begins.
func share(part, whole int64, otherwise float64) float64 {
	if whole == 0 {
		return otherwise
	}
	return math.Min(float64(part)/float64(whole), 1)
}

// Of summarises a queue: its depth now, and its statistics over a window that ends now. A window of 0 is
// [DefaultWindow]. An unknown queue is a [sluice.ErrNotFound]. Of reads some tens of slots, and the queue's depth.
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

// OfQueues summarises the queues that a filter chooses, by name. It reads the slots and the depth of each.
func OfQueues(ctx context.Context, store sluice.Store, filter sluice.QueueFilter, window time.Duration) ([]Summary, error) {
	return summaries(ctx, store, filter, Filter{}, window)
}

// OfTenant summarises a tenant's jobs in a queue over a window, without depths. Slots in which the tenant was not
// among the [MaxTenants] largest are missing.
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

// OfTenants summarises the largest tenants of the queues that a filter chooses: by queue, then by jobs moved, the
// most first.
func OfTenants(ctx context.Context, store sluice.Store, filter sluice.QueueFilter, window time.Duration) ([]Summary, error) {
	return summaries(ctx, store, filter, Filter{Tenants: true}, window)
}

func summaries(ctx context.Context, store sluice.Store, chosen sluice.QueueFilter, filter Filter, window time.Duration) ([]Summary, error) {
	if window == 0 {
		window = DefaultWindow
	}
	if window < Fine || window > HourKept {
		return nil, feature.Invalid("window", fmt.Sprintf("%s must be from %s to %s", window, Fine, HourKept))
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
	byQueue, err := bucketsByQueue(ctx, store, filter)
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

func summaryOf(queue, tenant string, buckets []Stat, filter Filter) Summary {
	s := NewSummary(buckets, filter.From, filter.To)
	s.Queue, s.Tenant, s.Every = queue, tenant, filter.Every
	return s
}

// tenantSummaries splits the slots of a queue by tenant.
func tenantSummaries(queue string, buckets []Stat, filter Filter) []Summary {
	byTenant := make(map[string][]Stat)
	for _, s := range buckets {
		if s.Tenant != "" {
			byTenant[s.Tenant] = append(byTenant[s.Tenant], s)
		}
	}
	var out []Summary
	for tenant, buckets := range byTenant {
		out = append(out, summaryOf(queue, tenant, buckets, filter))
	}
	slices.SortFunc(out, func(a, b Summary) int {
		return cmp.Or(cmp.Compare(b.Counts.Sum(), a.Counts.Sum()), strings.Compare(a.Tenant, b.Tenant))
	})
	return out
}

// bucketsByQueue reads all slots of a window, a page at a time.
func bucketsByQueue(ctx context.Context, store sluice.Store, filter Filter) (map[string][]Stat, error) {
	filter.Limit = maxBuckets
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
		last := stats[len(stats)-1].At // it may go on, so the next page reads it again
		for _, s := range stats {
			if s.At.Before(last) {
				out[s.Queue] = append(out[s.Queue], s)
			}
		}
		if !last.After(filter.From) { // a slot has more queues than a page
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
