// Package counter counts the moves of jobs that one open store makes, and adds the counts to the
// store's statistics. Each store has one tally, so each move counts once, through any number of
// decorators.
//
// Begin with [New] and [Tally]: a store calls Enqueued, Claimed, Settled and Moved after its
// writes. The tally stores its counts every 10 s, and at Close.
//
// Read next: docs/guide/statistics.md, and package internal/rollup, which merges the counts.
package counter

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"sync"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/event"
	"github.com/sluice-queue/sluice/presence"
	"github.com/sluice-queue/sluice/stat"
)

// keeper is the part of a store that stores a tally's counts.
type keeper interface {
	AddStats(ctx context.Context, holder string, stats []stat.Stat) error
	Now(ctx context.Context) (time.Time, error)
}

// Tally counts for one open store. A nil Tally counts nothing. Many goroutines may use a Tally.
type Tally struct {
	keeper  keeper
	log     *event.Log
	holder  string
	counter stat.Counter
	last    time.Duration

	begin  sync.Once
	closed sync.Once
	stop   chan struct{}
	ended  chan struct{}

	// The following fields belong to the goroutine that stores the counts, and to Close when that
	// has ended.
	ahead   time.Duration // how far the store's clock is ahead of this machine's
	known   bool          // the store's clock was read
	pending []stat.Stat   // taken, but not yet stored
	newest  time.Time     // the begin of the newest bucket that was taken
}

// Options configure a Tally.
type Options struct {
	// Logger gets a line when counts cannot be stored. Default: [slog.Default].
	Logger *slog.Logger
	// Last is how long Close may take to store the last counts. Default and maximum: 5 s.
	Last time.Duration
}

// longestLast is the maximum of Options.Last.
const longestLast = 5 * time.Second

// New makes the tally of a store. The tally stores its counts every 10 s from the first move on,
// and the rest at Close. With a nil keeper, the store takes the counts itself by [Tally.Take].
func New(to keeper, options Options) *Tally {
	if options.Logger == nil {
		options.Logger = slog.Default()
	}
	if options.Last <= 0 {
		options.Last = longestLast
	}
	holder := presence.NewID()
	return &Tally{
		keeper: to, log: event.NewLog(options.Logger, holder, 0), holder: holder, last: min(options.Last, longestLast),
		stop: make(chan struct{}), ended: make(chan struct{}),
	}
}

// Enqueued counts the jobs that an enqueue stored.
func (t *Tally) Enqueued(jobs []sluice.Insert, receipts []sluice.Receipt) {
	if t == nil {
		return
	}
	t.counter.Batch(func(moved stat.Moved) {
		for job := range Stored(jobs, receipts) {
			moved(job.Queue, job.Tenant, sluice.EventEnqueue, 1, stat.Unknown, stat.Unknown, stat.Unknown)
		}
	})
	t.work()
}

// Stored iterates over the jobs that an enqueue stored, without duplicates and refused jobs.
func Stored(jobs []sluice.Insert, receipts []sluice.Receipt) iter.Seq[*sluice.Insert] {
	return func(yield func(*sluice.Insert) bool) {
		for i, receipt := range receipts {
			if !receipt.Duplicate && !receipt.ID.IsZero() && !yield(&jobs[i]) {
				return
			}
		}
	}
}

// Claimed counts the jobs of a claim, and records when this process got them.
func (t *Tally) Claimed(claims []*sluice.Claim) {
	if t == nil || len(claims) == 0 {
		return
	}
	now := time.Now()
	t.counter.Batch(func(moved stat.Moved) {
		for _, c := range claims {
			c.ReceivedAt = now
			moved(c.Queue, c.Tenant, sluice.EventClaim, 1, max(c.ClaimedAt.Sub(c.DueAt), 0), stat.Unknown, stat.Unknown)
		}
	})
	t.work()
}

// Settled counts settlements. Errs has one entry each; nil: the settlement was made.
func (t *Tally) Settled(settlements []sluice.Settlement, errs []error) {
	if t == nil {
		return
	}
	now := time.Now()
	t.counter.Batch(func(moved stat.Moved) {
		for i := range settlements {
			if errs[i] == nil {
				countSettled(moved, SettledBy(&settlements[i], now))
			}
		}
	})
	t.work()
}

func countSettled(moved stat.Moved, move Settled) {
	if move.Event == sluice.EventBury && !move.Failed { // the job lost its holders: its last lease ended, too
		moved(move.Queue, move.Tenant, sluice.EventRecover, 1, stat.Unknown, stat.Unknown, stat.Unknown)
		move.Run = stat.Unknown
	}
	moved(move.Queue, move.Tenant, move.Event, 1, stat.Unknown, move.Run, move.Total)
}

// Recovered counts jobs whose leases ended.
func (t *Tally) Recovered(queue string, done sluice.Recovered) {
	if t == nil || done == (sluice.Recovered{}) {
		return
	}
	t.Moved(queue, "", sluice.EventRecover, done.Requeued)
	t.buried(queue, "", done.Buried)
}

func (t *Tally) buried(queue, tenant string, jobs int) {
	t.Moved(queue, tenant, sluice.EventRecover, jobs)
	t.Moved(queue, tenant, sluice.EventBury, jobs)
}

// Moved counts moves without times.
func (t *Tally) Moved(queue, tenant string, event sluice.Event, jobs int) {
	if t == nil || jobs == 0 {
		return
	}
	t.counter.Moved(queue, tenant, event, jobs, stat.Unknown, stat.Unknown, stat.Unknown)
	t.work()
}

// StartFailed counts a run that an engine did not start.
func (t *Tally) StartFailed(queue, tenant string) {
	if t == nil {
		return
	}
	t.counter.StartFailed(queue, tenant, 1)
	t.work()
}

// Take returns the counts of buckets that ended before an instant of the store's clock, for a store
// without a keeper.
func (t *Tally) Take(now time.Time) []stat.Stat {
	if t == nil || t.counter.Empty() {
		return nil
	}
	return t.took(t.counter.Take(now))
}

// took notes that buckets were taken. If they are older than others, the store's clock was set back: the tally takes another
// name, because a store takes no older buckets of one name.
func (t *Tally) took(stats []stat.Stat) []stat.Stat {
	for _, s := range stats {
		if s.At.Before(t.newest.Add(-stat.Minute)) {
			t.holder, t.newest = presence.NewID(), time.Time{}
		}
		if s.At.After(t.newest) {
			t.newest = s.At
		}
	}
	return stats
}

// Holder is the name of the tally in the statistics. Another [Tally.Take] may change it.
func (t *Tally) Holder() string {
	if t == nil {
		return ""
	}
	return t.holder
}

// Close stores the last counts; later moves are not stored. While the store does not answer, Close
// takes up to Options.Last.
func (t *Tally) Close() {
	if t == nil {
		return
	}
	t.closed.Do(func() {
		t.begin.Do(func() { close(t.ended) })
		close(t.stop)
		<-t.ended
	})
}

// work starts storing counts at the first move, so a process that only reads a store never writes
// to it.
func (t *Tally) work() {
	if t.keeper != nil {
		t.begin.Do(func() { go t.run() })
	}
}

func (t *Tally) run() {
	defer close(t.ended)
	ticker := time.NewTicker(stat.Fine)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			t.add(context.Background(), false)
		case <-t.stop:
			ctx, cancel := context.WithTimeout(context.Background(), t.last)
			defer cancel()
			t.add(ctx, true)
			t.log.Flush()
			return
		}
	}
}

// add stores the counts. With last set, it includes the current bucket. Counts that cannot be
// stored are logged and stored with the next ones; none counts twice.
func (t *Tally) add(ctx context.Context, last bool) {
	if err := t.store(ctx, last); err != nil {
		t.log.Emit(event.StatsNotStored, "", "error", err)
	}
}

func (t *Tally) store(ctx context.Context, last bool) error {
	if len(t.pending) == 0 && t.counter.Empty() {
		return nil // an idle process asks nothing
	}
	if err := t.askClock(ctx); err != nil && !t.known {
		return err
	}
	now := time.Now().Add(t.ahead)
	if last {
		t.pending = append(t.pending, t.took(t.counter.TakeAll(now))...)
	} else {
		t.pending = append(t.pending, t.took(t.counter.Take(now))...)
	}
	t.forgetOld(now)
	if len(t.pending) == 0 {
		return nil
	}
	err := t.keeper.AddStats(ctx, t.holder, t.pending)
	if err == nil || errors.Is(err, sluice.ErrInvalid) { // the store would refuse an invalid count for ever
		t.pending = nil
	}
	return err
}

// askClock finds out how far the store's clock is ahead.
func (t *Tally) askClock(ctx context.Context) error {
	before := time.Now()
	shown, err := t.keeper.Now(ctx)
	if err != nil {
		return err
	}
	t.ahead = shown.Sub(before.Add(time.Since(before) / 2))
	t.known = true
	return nil
}

// forgetOld drops buckets that are too old for every store.
func (t *Tally) forgetOld(now time.Time) {
	first := 0
	for first < len(t.pending) && t.pending[first].At.Before(now.Add(-stat.FineKept)) {
		first++
	}
	t.pending = t.pending[first:]
}
