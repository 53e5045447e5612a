package forecast

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/feature"
	"github.com/sluice-queue/sluice/presence"
)

// Request says what to look ahead for. The zero value looks two hours ahead in every queue.
type Request struct {
	// Queue; empty: every queue that was counted.
	Queue string
	// Bucket is what falls due together: a minute, five or an hour. Default: what gives some 24
	// buckets at the most, as far as there is such a one.
	Bucket time.Duration
	// Ahead is how far to look, at most Horizon. Default 2 h.
	Ahead time.Duration
	// Tenants asks for the figures of tenants, too.
	Tenants bool
	// WhatIf overrides what is.
	WhatIf WhatIf
}

// WhatIf is what a forecast supposes instead of the present settings. Zero fields suppose nothing.
type WhatIf struct {
	// Rate is supposed instead of the queue's rate, with a second's worth as its burst.
	Rate sluice.Rate
	// Batch jobs start together every Every, as dispatchers of batches do it, instead of at the
	// queue's rate. With a Rate both hold.
	Batch int
	Every time.Duration
	// Concurrency is how many jobs of the queue may be in flight at once, whatever concurrency and
	// workers there are. Tenants go on having their own.
	Concurrency int
	// RunTime is how long a job runs, instead of what was measured.
	RunTime time.Duration
}

// Forecast is what falls due ahead, and how the present limits let it through.
type Forecast struct {
	// Now is the store's clock.
	Now time.Time `json:"now"`
	// Bucket is what was asked for, Until the end of the last one.
	Bucket time.Duration `json:"-"`
	Until  time.Time     `json:"until"`
	Queues []Queue       `json:"queues"`
}

// Queue is the forecast of one queue, from the instant at which its jobs were counted. It knows
// the jobs that were there, and supposes that nothing fails and nothing else is enqueued; jobs start in
// the order in which they are due. In a queue that serves its tenants in turns those of each tenant do, as
// its own limits let them through, and tenants share by their weights what the queue lets through.
type Queue struct {
	Queue string `json:"queue"`
	// CountedAt is the instant; Took is how long counting took, and Stale says that it is so long ago
	// that nobody seems to count any more. Zero: it was never counted, or more than a week ago.
	CountedAt time.Time     `json:"counted_at,omitzero"`
	Took      time.Duration `json:"-"`
	Stale     bool          `json:"stale,omitempty"`
	// Limits are what holds jobs back; none: each starts when it is due.
	Limits []Limit `json:"limits"`
	// HeldTenants are the tenants with limits of which jobs fall due, those with the most queued jobs first.
	HeldTenants []HeldTenant `json:"held_tenants,omitempty"`
	// Notes are sentences for people: what the forecast does not know, or supposes.
	Notes []string `json:"notes,omitempty"`
	// RunTime is how long a job runs; 0: it is not known.
	RunTime time.Duration `json:"-"`
	// Due, InFlight, Blocked and Later are as in QueueCounts.
	Due      Tally `json:"due"`
	InFlight Tally `json:"in_flight"`
	Blocked  Tally `json:"blocked"`
	Later    Tally `json:"later"`
	// Waves are the buckets, in order and without gaps. What is due already comes first, if there is
	// any, with a span of 0.
	Waves []Bucket `json:"waves"`
}

// Limit is one thing that holds all jobs of a queue back.
type Limit struct {
	// Name is rate, batch or in_flight.
	Name string `json:"limit"`
	// PerSecond is how many jobs may start in the long run.
	PerSecond float64 `json:"per_second"`
	// Says is a few words for people.
	Says string `json:"says"`
}

// Bucket is what falls due in a bucket, and what becomes of it.
type Bucket struct {
	// At is the beginning of the bucket, Span how long it is.
	At   time.Time     `json:"at"`
	Span time.Duration `json:"-"`
	// Tally counts the jobs that fall due in it.
	Tally
	// Starts is how many jobs start in it, Backlog how many are due and wait at its end, Used the
	// share of what the limits allow, from 0 to 1; 0 also where nothing limits.
	Starts  int     `json:"starts"`
	Backlog int     `json:"backlog"`
	Used    float64 `json:"used"`
	// LastStart is when the last of the bucket's jobs starts, Finished when it has run, and Late the
	// longest that one of them waits after it is due. Zero: there are none, or none of them ever starts,
	// or how long they run is not known.
	LastStart time.Time     `json:"last_start,omitzero"`
	Finished  time.Time     `json:"finished,omitzero"`
	Late      time.Duration `json:"-"`
	// NeverJobs is how many of the bucket's jobs never start by the present limits, because their queue or
	// tenant is paused until somebody resumes it. The times are those of the others.
	NeverJobs int `json:"never_start,omitempty"`
	// ByTenant are the times by tenant, where the figures of tenants were asked for and the queue serves
	// its tenants in turns.
	ByTenant []TenantTimes `json:"by_tenant,omitempty"`
}

// MarshalJSON writes the bucket as durations are written elsewhere.
func (f Forecast) MarshalJSON() ([]byte, error) {
	type plain Forecast
	return json.Marshal(struct {
		plain
		Bucket string `json:"bucket"`
	}{plain(f), sluice.FormatDuration(f.Bucket)})
}

// MarshalJSON writes durations as they are written elsewhere.
func (q Queue) MarshalJSON() ([]byte, error) {
	type plain Queue
	return json.Marshal(struct {
		plain
		Took    string `json:"took"`
		RunTime string `json:"run_time,omitempty"`
	}{plain(q), sluice.FormatDuration(q.Took.Round(time.Millisecond)), durationIfAny(q.RunTime)})
}

// MarshalJSON writes durations as they are written elsewhere.
func (w Bucket) MarshalJSON() ([]byte, error) {
	type plain Bucket
	return json.Marshal(struct {
		plain
		Span string `json:"span"`
		Late string `json:"late,omitempty"`
	}{plain(w), sluice.FormatDuration(w.Span), durationIfAny(w.Late)})
}

// MarshalJSON writes durations as they are written elsewhere.
func (t TenantTimes) MarshalJSON() ([]byte, error) {
	type plain TenantTimes
	return json.Marshal(struct {
		plain
		Late string `json:"late,omitempty"`
	}{plain(t), durationIfAny(t.Late)})
}

func durationIfAny(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return sluice.FormatDuration(d.Round(time.Millisecond))
}

// Of forecasts when jobs start and finish under the present limits, or under those of request.WhatIf. It reads the last count
// and a bounded number of rows. An unknown queue is a [sluice.ErrNotFound], a request that breaks a rule a
// [sluice.ErrInvalid].
func Of(ctx context.Context, store sluice.Store, request Request) (Forecast, error) {
	request, err := request.complete()
	if err != nil {
		return Forecast{}, err
	}
	queues, err := queuesOf(ctx, store, request.Queue)
	if err != nil {
		return Forecast{}, err
	}
	holders, err := presence.Given(sluice.GivenStore(store)).Holders(ctx)
	if err != nil {
		return Forecast{}, err
	}
	waves, err := Given(store).Waves(ctx, request.filter(queues))
	if err != nil {
		return Forecast{}, err
	}
	until := waves.Now.Add(request.Ahead + request.Bucket - 1).Truncate(request.Bucket)
	out := Forecast{Now: waves.Now, Bucket: request.Bucket, Until: until, Queues: []Queue{}}
	for _, q := range queues {
		counted := QueueCounts{Queue: q.Name}
		if at := slices.IndexFunc(waves.Queues, func(w QueueCounts) bool { return w.Queue == q.Name }); at >= 0 {
			counted = waves.Queues[at].orUncounted(waves.Now)
		}
		crowd := crowdOf(counted, q.ByTenant)
		terms, err := termsOf(ctx, store, q, crowd.names, waves.Now)
		if err != nil {
			return Forecast{}, err
		}
		counted.until(out.Until)
		flow := flowOf(q, counted, holders, waves.Now, request.WhatIf)
		flow.addLines(q, counted, crowd, terms)
		if !request.Tenants {
			counted.forgetTenants()
		}
		out.Queues = append(out.Queues, forecastOf(counted, flow, out, request.Tenants && q.ByTenant))
	}
	return out, nil
}

// filter is what a forecast of queues reads. How many tenants there are is known from all their jobs,
// whenever they are due.
func (r Request) filter(queues []sluice.Queue) Filter {
	filter := Filter{Queue: r.Queue, Ahead: r.Ahead + r.Bucket, Tenants: r.Tenants}
	if slices.ContainsFunc(queues, func(q sluice.Queue) bool { return q.ByTenant }) {
		filter.Ahead, filter.Tenants = 0, true
	}
	return filter
}

// orUncounted is the count, unless it is so old that all it looked ahead to has passed.
func (q QueueCounts) orUncounted(now time.Time) QueueCounts {
	if now.Sub(q.CountedAt) > Horizon {
		return QueueCounts{Queue: q.Queue}
	}
	return q
}

// queuesOf reads the queue of a name, or all.
func queuesOf(ctx context.Context, store sluice.Store, name string) ([]sluice.Queue, error) {
	if name == "" {
		return sluice.GivenStore(store).Queues(ctx, sluice.QueueFilter{})
	}
	q, err := sluice.NewClient(store, sluice.ClientOptions{}).Queue(ctx, name)
	if err != nil {
		return nil, err
	}
	return []sluice.Queue{q}, nil
}

// maxJobs bounds the jobs of a batch and of a concurrency, as it does those of a queue's settings.
const maxJobs = 1_000_000

// buckets are those that a forecast may have.
var buckets = []time.Duration{time.Minute, 5 * time.Minute, time.Hour}

func (r Request) complete() (Request, error) {
	r.Ahead = cmp.Or(r.Ahead, 2*time.Hour)
	if r.Bucket == 0 {
		at := slices.IndexFunc(buckets, func(b time.Duration) bool { return r.Ahead <= 24*b })
		r.Bucket = time.Hour
		if at >= 0 {
			r.Bucket = buckets[at]
		}
	}
	w := r.WhatIf
	switch {
	case r.Ahead < time.Minute || r.Ahead > Horizon:
		return r, feature.Invalid("ahead", fmt.Sprintf("%s is not from 1m to %s", sluice.FormatDuration(r.Ahead), sluice.FormatDuration(Horizon)))
	case !slices.Contains(buckets, r.Bucket):
		return r, feature.Invalid("bucket", sluice.FormatDuration(r.Bucket)+" is none of 1m, 5m and 1h")
	case r.Bucket < time.Hour && r.Ahead > MinuteHorizon:
		return r, feature.Invalid("bucket", fmt.Sprintf("more than %s ahead jobs are counted by the hour; ask for buckets of 1h", sluice.FormatDuration(MinuteHorizon)))
	case !w.Rate.Fits():
		return r, feature.Invalid("rate", fmt.Sprintf("%v is not a rate that can be kept", w.Rate))
	case w.Batch < 0 || w.Batch > maxJobs || (w.Batch > 0) != (w.Every > 0):
		return r, feature.Invalid("batch", fmt.Sprintf("it is not 1 to %d jobs every so often", maxJobs))
	case w.Concurrency < 0 || w.Concurrency > maxJobs:
		return r, feature.Invalid("concurrency", fmt.Sprintf("%d is not from 0 to %d", w.Concurrency, maxJobs))
	case w.RunTime < 0:
		return r, feature.Invalid("duration", "a job does not run for less than nothing")
	}
	return r, nil
}

// until leaves out what is due at or after an instant.
func (q *QueueCounts) until(end time.Time) {
	at := slices.IndexFunc(q.Ahead, func(w Wave) bool { return !w.At.Before(end) })
	if at < 0 {
		return
	}
	for _, w := range q.Ahead[at:] {
		q.Later = sumTally(q.Later, w.Tally)
	}
	q.Ahead = q.Ahead[:at]
}

// forgetTenants leaves out the figures of tenants.
func (q *QueueCounts) forgetTenants() {
	for _, t := range []*Tally{&q.Due, &q.InFlight, &q.Blocked, &q.Later} {
		t.Tenants = nil
	}
	for i := range q.Ahead {
		q.Ahead[i].Tenants = nil
	}
}

func instant(t time.Time) string { return t.UTC().Format(time.RFC3339) }
