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

// Request says what to forecast. The zero value forecasts every queue for 2 h.
type Request struct {
	// Queue is the queue. Empty: every queue.
	Queue string
	// Bucket is the length of a bucket: 1 min, 5 min or 1 h. Default: the shortest that gives at most 24 buckets,
	// else 1 h.
	Bucket time.Duration
	// Ahead is how far to look, 1 min to [Horizon]. Default: 2 h.
	Ahead time.Duration
	// Tenants asks for the figures of tenants. Default: false.
	Tenants bool
	// WhatIf replaces some present limits. Default: none.
	WhatIf WhatIf
}

// WhatIf has limits to assume instead of the present ones. A zero field changes nothing.
type WhatIf struct {
	// Rate replaces the queue's rate, with 1 s of jobs as its burst. The limits that the queue shares stay.
	Rate sluice.Rate
	// Batch replaces the queue's rate: this many jobs start together, once per Every. With Rate, both limits apply.
	Batch int
	Every time.Duration
	// Concurrency is the most jobs of the queue in flight, instead of concurrency and the workers' slots. Tenants
	// keep their own concurrency.
	Concurrency int
	// RunTime is how long a job runs, instead of the measured time.
	RunTime time.Duration
}

// Forecast is the work that falls due ahead, and how the limits let it through.
type Forecast struct {
	// Now is the store's clock.
	Now time.Time `json:"now"`
	// Bucket is the length of a bucket, and Until the end of the last one.
	Bucket time.Duration `json:"-"`
	Until  time.Time     `json:"until"`
	Queues []Queue       `json:"queues"`
}

// Queue is the forecast of one queue, from the instant of the last count.
//
// It assumes that no job fails and nobody enqueues another. Jobs start in the order of their due times. If the
// queue serves its tenants in turns, each tenant's jobs keep that order within its own limits. Tenants then share
// the queue's starts by their weights.
type Queue struct {
	Queue string `json:"queue"`
	// CountedAt is the instant of the count. Zero: never, or more than 7 days ago. Took is how long the count took.
	// Stale says that nobody seems to count any more.
	CountedAt time.Time     `json:"counted_at,omitzero"`
	Took      time.Duration `json:"-"`
	Stale     bool          `json:"stale,omitempty"`
	// Limits are the limits that hold jobs back. None: each job starts when it is due.
	Limits []Limit `json:"limits"`
	// HeldTenants are the tenants with limits whose jobs fall due, the tenants with the most queued jobs first.
	HeldTenants []HeldTenant `json:"held_tenants,omitempty"`
	// Unserved says that no process was seen lately that takes the queue's jobs. The forecast supposes that there are enough.
	Unserved bool `json:"unserved,omitempty"`
	// Notes are sentences for people about unknown facts and assumptions.
	Notes []string `json:"notes,omitempty"`
	// RunTime is how long a job runs. 0: unknown.
	RunTime time.Duration `json:"-"`
	// Due, InFlight, Blocked and Later have the meaning that they have in [QueueCounts].
	Due      Tally `json:"due"`
	InFlight Tally `json:"in_flight"`
	Blocked  Tally `json:"blocked"`
	Later    Tally `json:"later"`
	// Waves are the buckets, in order and without gaps. Jobs that are due already come first, in a bucket with a
	// span of 0.
	Waves []Bucket `json:"waves"`
}

// Limit is one limit that holds all jobs of a queue back.
type Limit struct {
	// Name is rate, batch or in_flight.
	Name string `json:"limit"`
	// PerSecond is how many jobs may start per second in the long run.
	PerSecond float64 `json:"per_second"`
	// Summary is a few words for people.
	Summary string `json:"summary"`
}

// Bucket is the jobs that fall due in a span of time, and their starts.
type Bucket struct {
	// At is the beginning of the bucket, and Span its length.
	At   time.Time     `json:"at"`
	Span time.Duration `json:"-"`
	// Tally counts the jobs that fall due in the bucket.
	Tally
	// Starts is how many jobs start in the bucket. Backlog is how many due jobs wait at its end. Used is the used
	// share of the limits, 0 to 1; 0 also without a limit.
	Starts  int     `json:"starts"`
	Backlog int     `json:"backlog"`
	Used    float64 `json:"used"`
	// LastStart is when the last of the bucket's jobs starts, and Finished when that job has run. Late is the
	// longest wait after the due time. Zero: no job, no job ever starts, or the run time is unknown.
	LastStart time.Time     `json:"last_start,omitzero"`
	Finished  time.Time     `json:"finished,omitzero"`
	Late      time.Duration `json:"-"`
	// NeverJobs is how many of the bucket's jobs never start, because their queue or tenant is paused without an
	// end. The times are the times of the other jobs.
	NeverJobs int `json:"never_start,omitempty"`
	// ByTenant are the times by tenant. Empty: the request did not ask for tenants, or the queue does not serve its
	// tenants in turns.
	ByTenant []TenantTimes `json:"by_tenant,omitempty"`
}

// MarshalJSON writes the bucket as a text, such as 5m.
func (f Forecast) MarshalJSON() ([]byte, error) {
	type plain Forecast
	return json.Marshal(struct {
		plain
		Bucket string `json:"bucket"`
	}{plain(f), sluice.FormatDuration(f.Bucket)})
}

// MarshalJSON writes durations as texts, such as 90s.
func (q Queue) MarshalJSON() ([]byte, error) {
	type plain Queue
	return json.Marshal(struct {
		plain
		Took    string `json:"took"`
		RunTime string `json:"run_time,omitempty"`
	}{plain(q), sluice.FormatDuration(q.Took.Round(time.Millisecond)), durationIfAny(q.RunTime)})
}

// MarshalJSON writes durations as texts, such as 90s.
func (w Bucket) MarshalJSON() ([]byte, error) {
	type plain Bucket
	return json.Marshal(struct {
		plain
		Span string `json:"span"`
		Late string `json:"late,omitempty"`
	}{plain(w), sluice.FormatDuration(w.Span), durationIfAny(w.Late)})
}

// MarshalJSON writes durations as texts, such as 90s.
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

// Of forecasts when jobs start and finish under the present limits, or under the limits of request.WhatIf. It reads
// the last count and a bounded number of rows.
//
// An unknown queue is a [sluice.ErrNotFound]. A request that breaks a rule is a [sluice.ErrInvalid].
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
	ahead := make(map[string]ahead, len(queues))
	for _, q := range queues {
		ahead[q.Name] = aheadOf(q, waves.Now)
	}
	shared, err := sharedBy(ctx, store, queues, ahead)
	if err != nil {
		return Forecast{}, err
	}
	around := surroundings{waves.Now, holders, shared, request.WhatIf}
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
		flow := around.flowOf(q, counted, waves.Now)
		flow.addLines(q, counted, crowd, terms)
		if err := flow.addLater(ctx, store, around, q, ahead[q.Name], counted, crowd, terms, out.Until); err != nil {
			return Forecast{}, err
		}
		if !request.Tenants {
			counted.forgetTenants()
		}
		out.Queues = append(out.Queues, forecastOf(counted, flow, out, request.Tenants && q.ByTenant))
	}
	return out, nil
}

// filter returns the counts that a forecast of queues reads. The number of tenants needs the count of all their
// jobs, for any due time.
func (r Request) filter(queues []sluice.Queue) Filter {
	filter := Filter{Queue: r.Queue, Ahead: r.Ahead + r.Bucket, Tenants: r.Tenants}
	if slices.ContainsFunc(queues, func(q sluice.Queue) bool { return q.ByTenant }) {
		filter.Ahead, filter.Tenants = 0, true
	}
	return filter
}

// orUncounted returns the count, or an empty count if all of its waves have passed.
func (q QueueCounts) orUncounted(now time.Time) QueueCounts {
	if now.Sub(q.CountedAt) > Horizon {
		return QueueCounts{Queue: q.Queue}
	}
	return q
}

// queuesOf reads the queue of a name, or all queues.
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

// maxJobs is the most jobs of a batch and of a concurrency, as in the settings of a queue.
const maxJobs = 1_000_000

// buckets are the lengths that a bucket may have.
var buckets = []time.Duration{time.Minute, 5 * time.Minute, time.Hour}

// complete fills in defaults, and returns the rule that the request breaks.
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
		return r, feature.Invalid("ahead", fmt.Sprintf("%s must be from 1m to %s", sluice.FormatDuration(r.Ahead), sluice.FormatDuration(Horizon)))
	case !slices.Contains(buckets, r.Bucket):
		return r, feature.Invalid("bucket", sluice.FormatDuration(r.Bucket)+" must be 1m, 5m or 1h")
	case r.Bucket < time.Hour && r.Ahead > MinuteHorizon:
		return r, feature.Invalid("bucket", fmt.Sprintf("more than %s ahead jobs are counted by the hour; ask for buckets of 1h", sluice.FormatDuration(MinuteHorizon)))
	case !w.Rate.Fits():
		return r, feature.Invalid("rate", fmt.Sprintf("%v must be a rate that a queue can have", w.Rate))
	case w.Batch < 0 || w.Batch > maxJobs || (w.Batch > 0) != (w.Every > 0):
		return r, feature.Invalid("batch", fmt.Sprintf("it must be 1 to %d jobs per interval", maxJobs))
	case w.Concurrency < 0 || w.Concurrency > maxJobs:
		return r, feature.Invalid("concurrency", fmt.Sprintf("%d must be from 0 to %d", w.Concurrency, maxJobs))
	case w.RunTime < 0:
		return r, feature.Invalid("duration", "it must not be negative")
	}
	return r, nil
}

// until leaves out the waves at or after an instant.
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
