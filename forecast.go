package sluice

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// ForecastRequest says what to look ahead for. The zero value looks two hours ahead in every queue.
type ForecastRequest struct {
	// Queue; empty: every queue that was counted.
	Queue string
	// Bucket is what falls due together: a minute, five or an hour. Default: what gives some 24
	// buckets at the most, as far as there is such a one.
	Bucket time.Duration
	// Ahead is how far to look, at most WaveHorizon. Default 2 h.
	Ahead time.Duration
	// Tenants asks for the figures of tenants, too.
	Tenants bool
	// WhatIf overrides what is.
	WhatIf WhatIf
}

// WhatIf is what a forecast supposes instead of the present settings. Zero fields suppose nothing.
type WhatIf struct {
	// Rate is supposed instead of the queue's rate, with a second's worth as its burst.
	Rate Rate
	// Batch jobs start together every Every, as dispatchers of batches do it, instead of at the
	// queue's rate. With a Rate both hold.
	Batch int
	Every time.Duration
	// Capacity is how many jobs of the queue may be in flight at once, whatever in_flight_limit and
	// workers there are. Tenants go on having their own.
	Capacity int
	// RunTime is how long a job runs, instead of what was measured.
	RunTime time.Duration
}

// Forecast is what falls due ahead, and how the present limits let it through.
type Forecast struct {
	// Now is the store's clock.
	Now time.Time `json:"now"`
	// Bucket is what was asked for, Until the end of the last one.
	Bucket time.Duration   `json:"-"`
	Until  time.Time       `json:"until"`
	Queues []QueueForecast `json:"queues"`
}

// QueueForecast is the forecast of one queue, from the instant at which its jobs were counted. It knows
// the jobs that were there, and supposes that nothing fails and nothing else is enqueued; jobs start in
// the order in which they are due. In a queue that serves its tenants in turns those of each tenant do, as
// its own limits let them through, and tenants share by their weights what the queue lets through.
type QueueForecast struct {
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
	// Due, InFlight, Blocked and Later are as in QueueWaves.
	Due      Tally `json:"due"`
	InFlight Tally `json:"in_flight"`
	Blocked  Tally `json:"blocked"`
	Later    Tally `json:"later"`
	// Waves are the buckets, in order and without gaps. What is due already comes first, if there is
	// any, with a span of 0.
	Waves []WaveForecast `json:"waves"`
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

// WaveForecast is what falls due in a bucket, and what becomes of it.
type WaveForecast struct {
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
	}{plain(f), FormatDuration(f.Bucket)})
}

// MarshalJSON writes durations as they are written elsewhere.
func (q QueueForecast) MarshalJSON() ([]byte, error) {
	type plain QueueForecast
	return json.Marshal(struct {
		plain
		Took    string `json:"took"`
		RunTime string `json:"run_time,omitempty"`
	}{plain(q), FormatDuration(q.Took.Round(time.Millisecond)), durationIfAny(q.RunTime)})
}

// MarshalJSON writes durations as they are written elsewhere.
func (w WaveForecast) MarshalJSON() ([]byte, error) {
	type plain WaveForecast
	return json.Marshal(struct {
		plain
		Span string `json:"span"`
		Late string `json:"late,omitempty"`
	}{plain(w), FormatDuration(w.Span), durationIfAny(w.Late)})
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
	return FormatDuration(d.Round(time.Millisecond))
}

// Forecast looks ahead: what falls due, and when it starts and is finished by the present limits, or by
// others. It reads what was last counted, a bounded number of rows. An unknown queue is an ErrNotFound.
func (c *Client) Forecast(ctx context.Context, request ForecastRequest) (Forecast, error) {
	request, err := request.complete()
	if err != nil {
		return Forecast{}, err
	}
	queues, err := c.forecastQueues(ctx, request.Queue)
	if err != nil {
		return Forecast{}, err
	}
	holders, err := c.store.Holders(ctx)
	if err != nil {
		return Forecast{}, err
	}
	waves, err := c.store.Waves(ctx, request.filter(queues))
	if err != nil {
		return Forecast{}, err
	}
	until := waves.Now.Add(request.Ahead + request.Bucket - 1).Truncate(request.Bucket)
	out := Forecast{Now: waves.Now, Bucket: request.Bucket, Until: until, Queues: []QueueForecast{}}
	for _, q := range queues {
		counted := QueueWaves{Queue: q.Name}
		if at := slices.IndexFunc(waves.Queues, func(w QueueWaves) bool { return w.Queue == q.Name }); at >= 0 {
			counted = waves.Queues[at].orUncounted(waves.Now)
		}
		crowd := crowdOf(counted, q.ByTenant)
		terms, err := c.termsOf(ctx, q, crowd.names, waves.Now)
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
func (r ForecastRequest) filter(queues []Queue) WaveFilter {
	filter := WaveFilter{Queue: r.Queue, Ahead: r.Ahead + r.Bucket, Tenants: r.Tenants}
	if slices.ContainsFunc(queues, func(q Queue) bool { return q.ByTenant }) {
		filter.Ahead, filter.Tenants = 0, true
	}
	return filter
}

// orUncounted is the count, unless it is so old that all it looked ahead to has passed.
func (q QueueWaves) orUncounted(now time.Time) QueueWaves {
	if now.Sub(q.CountedAt) > WaveHorizon {
		return QueueWaves{Queue: q.Queue}
	}
	return q
}

func (c *Client) forecastQueues(ctx context.Context, name string) ([]Queue, error) {
	if name == "" {
		return c.store.Queues(ctx, QueueFilter{})
	}
	q, err := c.Queue(ctx, name)
	if err != nil {
		return nil, err
	}
	return []Queue{q}, nil
}

// buckets are those that a forecast may have.
var buckets = []time.Duration{time.Minute, 5 * time.Minute, time.Hour}

func (r ForecastRequest) complete() (ForecastRequest, error) {
	r.Ahead = orElse(r.Ahead, 2*time.Hour)
	if r.Bucket == 0 {
		at := slices.IndexFunc(buckets, func(b time.Duration) bool { return r.Ahead <= 24*b })
		r.Bucket = time.Hour
		if at >= 0 {
			r.Bucket = buckets[at]
		}
	}
	w := r.WhatIf
	switch {
	case r.Ahead < time.Minute || r.Ahead > WaveHorizon:
		return r, invalid("ahead", fmt.Sprintf("%s is not from 1m to %s", FormatDuration(r.Ahead), FormatDuration(WaveHorizon)))
	case !slices.Contains(buckets, r.Bucket):
		return r, invalid("bucket", FormatDuration(r.Bucket)+" is none of 1m, 5m and 1h")
	case r.Bucket < time.Hour && r.Ahead > WaveMinutes:
		return r, invalid("bucket", fmt.Sprintf("more than %s ahead jobs are counted by the hour; ask for buckets of 1h", FormatDuration(WaveMinutes)))
	case !w.Rate.fits():
		return r, invalid("rate", fmt.Sprintf("it is not from 0 to %d/s", maxRate))
	case w.Batch < 0 || w.Batch > maxFlow || (w.Batch > 0) != (w.Every > 0):
		return r, invalid("batch", fmt.Sprintf("it is not 1 to %d jobs every so often", maxFlow))
	case w.Capacity < 0 || w.Capacity > maxFlow:
		return r, invalid("capacity", fmt.Sprintf("%d is not from 0 to %d", w.Capacity, maxFlow))
	case w.RunTime < 0:
		return r, invalid("duration", "a job does not run for less than nothing")
	}
	return r, nil
}

// until leaves out what is due at or after an instant.
func (q *QueueWaves) until(end time.Time) {
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
func (q *QueueWaves) forgetTenants() {
	for _, t := range []*Tally{&q.Due, &q.InFlight, &q.Blocked, &q.Later} {
		t.Tenants = nil
	}
	for i := range q.Ahead {
		q.Ahead[i].Tenants = nil
	}
}
