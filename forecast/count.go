package forecast

import (
	"context"
	"time"

	"github.com/sluice-queue/sluice"
)

// The bounds of a count. They keep it to some 1,600 rows for each queue, for any number of jobs and tenants.
const (
	// MinuteHorizon is how far ahead a count has a figure for each minute, up to the next full hour. From there to
	// Horizon it has a figure for each hour. Later jobs are one figure.
	MinuteHorizon = 24 * time.Hour
	Horizon       = 7 * 24 * time.Hour
	// MaxTenants is how many tenants of a queue a count names: the tenants with the most queued jobs. All other
	// tenants are one figure.
	MaxTenants = 20
)

// Tally is a number of jobs, and their tenants.
type Tally struct {
	// Jobs counts the jobs.
	Jobs int `json:"jobs"`
	// Tenants counts the jobs of the queue's [MaxTenants] largest tenants. The empty name stands for jobs without a
	// tenant. The rest of Jobs belongs to other tenants. Nil: the filter did not ask for tenants, or no named
	// tenant has such jobs.
	Tenants map[string]int `json:"tenants,omitempty"`
}

// Wave is the jobs that fall due in the same minute or hour.
type Wave struct {
	// At is the beginning of the minute or hour, and Span its length.
	At   time.Time
	Span time.Duration
	Tally
}

// QueueCounts is the count of one queue.
type QueueCounts struct {
	Queue string
	// CountedAt is the instant of the count, by the store's clock. Took is how long the count took. A job that was
	// enqueued or moved meanwhile is counted once or not at all.
	CountedAt time.Time
	Took      time.Duration
	// Due counts jobs that could be claimed at that instant. InFlight counts claimed and dispatched jobs. Blocked
	// counts jobs that wait for another job, for any due time.
	Due, InFlight, Blocked Tally
	// Ahead are the jobs that fall due after the instant, in order. Later counts jobs that are due after Ahead
	// ends.
	Ahead []Wave
	Later Tally
	// RunTime is the mean time from claim to end of the newest finished jobs, and Runs their number. Runs 0:
	// RunTime is unknown.
	RunTime time.Duration
	Runs    int
}

// Counts is the count of several queues.
type Counts struct {
	// Now is the store's clock.
	Now time.Time
	// Queues are sorted by name. A queue that was never counted is missing.
	Queues []QueueCounts
}

// Filter chooses the counts to read. The zero value chooses all, without tenants.
type Filter struct {
	// Queue is the queue. Empty: every queue.
	Queue string
	// Ahead leaves out waves later than this from the store's now. 0: no bound.
	Ahead time.Duration
	// Tenants asks for the figures of tenants. Default: false.
	Tenants bool
}

// Count is the summary of one count.
type Count struct {
	// At is the instant of the count, by the store's clock.
	At time.Time `json:"counted_at"`
	// Took is how long the count took.
	Took time.Duration `json:"-"`
	// Jobs counts the jobs that wait or are in flight.
	Jobs int `json:"jobs"`
}

// Recount counts now. It reads every unfinished job once or twice. Upkeep counts regularly, so call Recount only if
// no upkeep runs.
func Recount(ctx context.Context, store sluice.Store) (Count, error) {
	return Given(store).CountWaves(ctx)
}

// Read reads the last count, with a bounded number of rows for each queue.
func Read(ctx context.Context, store sluice.Store, filter Filter) (Counts, error) {
	return Given(store).Waves(ctx, filter)
}

// silence is the greatest age of a fresh count if a count is quick.
const silence = time.Minute

// Stale reports whether a count is so old that nobody seems to count any more. It is then older than 1 min, and
// older than twice the rest of upkeep between counts. A count that is as far ahead was made before the clock was set
// back.
func (q QueueCounts) Stale(now time.Time) bool {
	return q.CountedAt.IsZero() || now.Sub(q.CountedAt).Abs() > max(silence, 2*Rest(q.Took))
}

// Rest returns how long upkeep waits after a count that took this long: 50 times as long, so that counts take at
// most 2 % of the time.
func Rest(took time.Duration) time.Duration { return 50 * took }
