package forecast

import (
	"context"
	"time"

	"github.com/sluice-queue/sluice"
)

// What a count of waves keeps, whatever the number of jobs and tenants: at most some 1,600 rows for each
// queue.
const (
	// MinuteHorizon is how far ahead jobs are counted by the minute, up to the next full hour; from
	// there to Horizon it is by the hour, and what is due later is one figure.
	MinuteHorizon = 24 * time.Hour
	Horizon       = 7 * 24 * time.Hour
	// MaxTenants is how many tenants of a queue are counted by name, those with the most queued
	// jobs. All others are one figure.
	MaxTenants = 20
)

// Tally is how many jobs there are of a kind, and whose.
type Tally struct {
	Jobs int `json:"jobs"`
	// Tenants counts those of the queue's WaveTenants largest tenants; the empty name stands for
	// jobs without a tenant. What is missing from Jobs are others'. Nil: it was not asked for, or
	// they have none.
	Tenants map[string]int `json:"tenants,omitempty"`
}

// Wave is how many jobs fall due together.
type Wave struct {
	// At is the beginning of the minute or hour in which they are due, Span how long that is.
	At   time.Time
	Span time.Duration
	Tally
}

// QueueCounts is what falls due in one queue, as it was counted at an instant.
type QueueCounts struct {
	Queue string
	// CountedAt is the instant, by the store's clock; Took is how long counting took. A job that
	// was enqueued or moved meanwhile may be counted or not, but never twice.
	CountedAt time.Time
	Took      time.Duration
	// Due jobs could have been claimed at that instant, InFlight ones were claimed or dispatched,
	// Blocked ones wait for another job, whenever they are due.
	Due, InFlight, Blocked Tally
	// Ahead is what falls due after the instant, in order; Later is what is due after that, or
	// later than the filter's Ahead.
	Ahead []Wave
	Later Tally
	// RunTime is how long a job runs, from its claim to its end: the mean of Runs of the newest jobs
	// that finished. No Runs: it is not known.
	RunTime time.Duration
	Runs    int
}

// Counts is what falls due, by queue.
type Counts struct {
	// Now is the store's clock.
	Now time.Time
	// Queues are in the order of their names. A queue that was never counted is missing.
	Queues []QueueCounts
}

// Filter chooses what Read reads.
type Filter struct {
	// Queue; empty: every queue.
	Queue string
	// Ahead leaves out what is due later than so long from the store's now; 0: nothing.
	Ahead time.Duration
	// Tenants asks for the figures of tenants, too.
	Tenants bool
}

// Count sums up one count.
type Count struct {
	// At is the instant that was counted, by the store's clock.
	At time.Time `json:"counted_at"`
	// Took is how long it took.
	Took time.Duration `json:"-"`
	// Jobs are all that wait or are in flight.
	Jobs int `json:"jobs"`
}

// Recount counts now what falls due. It reads every unfinished job once or twice. Upkeep counts regularly; call Recount where
// no upkeep runs.
func Recount(ctx context.Context, store sluice.Store) (Count, error) {
	return Given(store).CountWaves(ctx)
}

// Read reads the last count, a bounded number of rows for each queue.
func Read(ctx context.Context, store sluice.Store, filter Filter) (Counts, error) {
	return Given(store).Waves(ctx, filter)
}

// waveSilence is how old a count may be where counting is quick.
const silence = time.Minute

// Stale reports whether a count is so old that nobody seems to count any more: older than a minute,
// and than twice the time after which upkeep counts again.
func (q QueueCounts) Stale(now time.Time) bool {
	return q.CountedAt.IsZero() || now.Sub(q.CountedAt) > max(silence, 2*Rest(q.Took))
}

// Rest is how long upkeep leaves a store alone after a count that took so long: counting takes at
// most a fiftieth of the time.
func Rest(took time.Duration) time.Duration { return 50 * took }
