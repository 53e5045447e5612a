package wire

import (
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/forecast"
	"github.com/sluice-queue/sluice/stat"
)

// UseList says how much of their limits queues use.
type UseList struct {
	// Queues are sorted by name.
	Queues []QueueUse `json:"queues"`
}

// QueueUse is how much of its limits a queue uses.
type QueueUse struct {
	// Queue is the queue.
	Queue string `json:"queue"`
	// Tokens is how many starts the rate allows now; below 0 it is overdrawn.
	Tokens float64 `json:"tokens"`
	// Ordered and After count jobs that wait for another: for their order key, or because they run after it.
	Ordered int `json:"ordered"`
	After   int `json:"after"`
	// AtLimit counts tenants that have reached their concurrency.
	AtLimit int `json:"at_limit"`
	// StartsPerSecond and CompletedPerSecond are those of the last minute that is counted. Missing: nobody counts.
	StartsPerSecond    *float64 `json:"starts_per_second,omitempty"`
	CompletedPerSecond *float64 `json:"completed_per_second,omitempty"`
	// Tenants are those with the most jobs in flight.
	Tenants []sluice.TenantFlow `json:"tenants"`
}

// QueueUseOf shows a flow, with the rates of its jobs.
func QueueUseOf(f sluice.Flow, starts, completed *float64) QueueUse {
	return QueueUse{f.Queue, f.Tokens, f.Ordered, f.After, f.AtLimit, starts, completed, append([]sluice.TenantFlow{}, f.Tenants...)}
}

// Flow reads the view.
func (u QueueUse) Flow() sluice.Flow {
	return sluice.Flow{Queue: u.Queue, Tokens: u.Tokens, Ordered: u.Ordered, After: u.After, AtLimit: u.AtLimit, Tenants: u.Tenants}
}

// StatList lists slots of statistics.
type StatList struct {
	// Slots are sorted by begin, then by queue and tenant. A slot without any move is missing.
	Slots []StatView `json:"slots"`
}

// StatView is the statistics of a slot of time.
type StatView struct {
	stat.Stat
	// EverySeconds is the length of the slot: 10, 60 or 3600.
	EverySeconds float64 `json:"every_seconds"`
}

// StatViewOf shows a slot.
func StatViewOf(s stat.Stat) StatView { return StatView{s, s.Every.Seconds()} }

// Read reads the view.
func (v StatView) Read() stat.Stat {
	v.Every = seconds(v.EverySeconds)
	return v.Stat
}

// WaveList is the last count of the jobs that fall due.
type WaveList struct {
	// Queues are sorted by name. A queue that was never counted is missing.
	Queues []QueueWaves `json:"queues"`
	// Now is the store's clock.
	Now time.Time `json:"now"`
}

// QueueWaves is the count of a queue.
type QueueWaves struct {
	// Queue is the queue.
	Queue string `json:"queue"`
	// CountedAt is when its jobs were counted, and TookSeconds how long that took.
	CountedAt   time.Time `json:"counted_at"`
	TookSeconds float64   `json:"took_seconds"`
	// Due jobs could be claimed then. InFlight jobs were claimed or dispatched, and Blocked ones waited for another job.
	Due      forecast.Tally `json:"due"`
	InFlight forecast.Tally `json:"in_flight"`
	Blocked  forecast.Tally `json:"blocked"`
	// Ahead are the jobs that fall due later, in order, and Later those after the end of Ahead.
	Ahead []WaveView     `json:"ahead"`
	Later forecast.Tally `json:"later"`
	// RunSeconds is the mean time from claim to end of the newest finished jobs, and Runs their number.
	RunSeconds float64 `json:"run_seconds"`
	Runs       int     `json:"runs"`
}

// WaveView is the jobs that fall due in the same minute or hour.
type WaveView struct {
	// At is the begin of the minute or hour, and SpanSeconds its length.
	At          time.Time `json:"at"`
	SpanSeconds float64   `json:"span_seconds"`
	forecast.Tally
}

// WaveListOf shows counts.
func WaveListOf(counts forecast.Counts) WaveList {
	out := WaveList{Queues: []QueueWaves{}, Now: counts.Now}
	for _, q := range counts.Queues {
		ahead := []WaveView{}
		for _, wave := range q.Ahead {
			ahead = append(ahead, WaveView{wave.At, wave.Span.Seconds(), wave.Tally})
		}
		out.Queues = append(out.Queues, QueueWaves{q.Queue, q.CountedAt, q.Took.Seconds(), q.Due, q.InFlight, q.Blocked, ahead, q.Later, q.RunTime.Seconds(), q.Runs})
	}
	return out
}

// Read reads the view.
func (l WaveList) Read() forecast.Counts {
	out := forecast.Counts{Now: l.Now}
	for _, q := range l.Queues {
		var ahead []forecast.Wave
		for _, wave := range q.Ahead {
			ahead = append(ahead, forecast.Wave{At: wave.At, Span: seconds(wave.SpanSeconds), Tally: wave.Tally})
		}
		out.Queues = append(out.Queues, forecast.QueueCounts{
			Queue: q.Queue, CountedAt: q.CountedAt, Took: seconds(q.TookSeconds), Due: q.Due, InFlight: q.InFlight, Blocked: q.Blocked,
			Ahead: ahead, Later: q.Later, RunTime: seconds(q.RunSeconds), Runs: q.Runs,
		})
	}
	return out
}
