package stat

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/feature"
)

// The lengths of slots, and how long stores keep each kind.
const (
	Fine   = 10 * time.Second
	Minute = time.Minute
	Hour   = time.Hour

	FineKept   = 2 * time.Hour
	MinuteKept = 48 * time.Hour
	HourKept   = 90 * 24 * time.Hour

	// MaxTenants is how many tenants of a queue a slot names: the tenants that moved the most jobs. Other tenants
	// count only in the whole queue.
	MaxTenants = 20
)

// Counts is how many jobs made each move.
type Counts struct {
	// Enqueued counts new jobs, and Requeued the jobs that a person gave a new life.
	Enqueued int64 `json:"enqueued,omitempty"`
	Requeued int64 `json:"requeued,omitempty"`
	// Claimed counts claims by workers and dispatchers, and Dispatched the runs that an engine accepted.
	Claimed    int64 `json:"claimed,omitempty"`
	Dispatched int64 `json:"dispatched,omitempty"`
	// Completed, Dead and Cancelled count jobs that ended so. Uncertain counts jobs that wait for a person to
	// resolve them.
	Completed int64 `json:"completed,omitempty"`
	Dead      int64 `json:"dead,omitempty"`
	Cancelled int64 `json:"cancelled,omitempty"`
	Uncertain int64 `json:"uncertain,omitempty"`
	// Failed counts failed attempts, with the last attempt of a job that is dead.
	Failed int64 `json:"failed,omitempty"`
	// Released counts claims that the holder handed back, and Recovered the claims whose lease ran out.
	Released  int64 `json:"released,omitempty"`
	Recovered int64 `json:"recovered,omitempty"`
	// StartFailed counts runs that an engine did not start.
	StartFailed int64 `json:"start_failed,omitempty"`
}

// Add adds other counts.
func (c *Counts) Add(other Counts) {
	mine, theirs := c.figures(), other.figures()
	for i := range mine {
		*mine[i] += *theirs[i]
	}
}

// Sum returns the sum of all counts. It ranks tenants.
func (c Counts) Sum() (sum int64) {
	for _, n := range c.figures() {
		sum += *n
	}
	return sum
}

// figureCount is how many counts Counts has.
const figureCount = 12

// figures returns all counts, in the order of the fields.
func (c *Counts) figures() [figureCount]*int64 {
	return [figureCount]*int64{
		&c.Enqueued, &c.Requeued, &c.Claimed, &c.Dispatched, &c.Completed, &c.Dead, &c.Cancelled, &c.Uncertain,
		&c.Failed, &c.Released, &c.Recovered, &c.StartFailed,
	}
}

// Values returns all counts, in the order of the fields. Stores keep them in that order.
func (c *Counts) Values() []*int64 {
	all := c.figures()
	return all[:]
}

// Stat is the statistics of a queue, or of one tenant in the queue, in a slot of time.
type Stat struct {
	// Queue is the queue.
	Queue string `json:"queue"`
	// Tenant is the tenant. Empty: the whole queue.
	Tenant string `json:"tenant,omitempty"`
	// At is when the slot begins, and Every its length: Fine, Minute or Hour. Slots begin at whole multiples of
	// their length, in UTC.
	At     time.Time     `json:"at"`
	Every  time.Duration `json:"-"`
	Counts Counts        `json:"counts"`
	// Wait has the times from due to claim, in the slot of the claim. Run has the times from claim to end, and
	// Total from due to end, of completed jobs, in the slot of their end.
	Wait  Histogram `json:"wait"`
	Run   Histogram `json:"run"`
	Total Histogram `json:"total"`
	// Level is how much of the queue waited when upkeep looked, at the worst look of the slot. Nil: it did not look, or
	// nothing waited.
	Level *Level `json:"level,omitempty"`
}

// Level is how much of a queue waits, or whether a tenant was at its limit.
type Level struct {
	// Ready is how many jobs are ready. Upkeep may stop counting at 1,000 if no forecast has counted them.
	Ready int64 `json:"ready"`
	// OldestSeconds is how long the oldest ready job has been due.
	OldestSeconds float64 `json:"oldest_seconds"`
	// Full is at how many looks a tenant had as many jobs in flight as it may have. Upkeep looks each minute, at the tenants with
	// the most jobs in flight. Of a whole queue it is 0.
	Full int64 `json:"full,omitempty"`
}

// worse returns the higher of each figure, and the sum of the looks.
func (l *Level) worse(other *Level) *Level {
	if l == nil || other == nil {
		return cmp.Or(l, other)
	}
	return &Level{max(l.Ready, other.Ready), max(l.OldestSeconds, other.OldestSeconds), l.Full + other.Full}
}

// beside returns the level of two queues together. The looks at both are the same.
func (l *Level) beside(other *Level) *Level {
	both := l.worse(other)
	if l != nil && other != nil {
		both.Ready, both.Full = l.Ready+other.Ready, max(l.Full, other.Full)
	}
	return both
}

// Merge adds the counts and times of another holder or slot. Queue, tenant and slot stay.
func (s *Stat) Merge(other Stat) {
	s.Counts.Add(other.Counts)
	s.Wait.Merge(other.Wait)
	s.Run.Merge(other.Run)
	s.Total.Merge(other.Total)
	s.Level = s.Level.worse(other.Level)
}

// Moved counts jobs that made a move; see [Counter.Moved].
func (s *Stat) Moved(event sluice.Event, jobs int, wait, run, total time.Duration) {
	t := tally{s.Counts, s.Wait, s.Run, s.Total}
	t.moved(event, int64(jobs), wait, run, total)
	s.Counts, s.Wait, s.Run, s.Total = t.counts, t.wait, t.run, t.total
}

// Equal reports whether both have the same values.
func (s Stat) Equal(other Stat) bool {
	return s.Queue == other.Queue && s.Tenant == other.Tenant && s.At.Equal(other.At) && s.Every == other.Every && s.Counts == other.Counts &&
		s.Wait.Equal(other.Wait) && s.Run.Equal(other.Run) && s.Total.Equal(other.Total) &&
		(s.Level == nil) == (other.Level == nil) && (s.Level == nil || *s.Level == *other.Level)
}

// CheckNew returns why a store cannot add the slot, as a [sluice.ErrInvalid]. The slot must be a Fine slot at a
// whole multiple, with a valid queue name and no negative count.
func (s Stat) CheckNew() error {
	if err := sluice.CheckQueueName(s.Queue); err != nil {
		return err
	}
	if err := sluice.CheckTenantName(s.Tenant); err != nil {
		return err
	}
	if s.Every != Fine || !s.At.Equal(s.At.Truncate(Fine)) {
		return feature.Invalid("at", fmt.Sprintf("%s for %s is no slot of %s", s.At.Format(time.RFC3339Nano), s.Every, Fine))
	}
	for _, n := range s.Counts.figures() {
		if *n < 0 {
			return feature.Invalid("counts", fmt.Sprintf("%d of queue %q is below 0", *n, s.Queue))
		}
	}
	if s.Level != nil && (s.Level.Ready < 0 || s.Level.OldestSeconds < 0 || s.Level.Full < 0) {
		return feature.Invalid("level", fmt.Sprintf("%+v of queue %q is below 0", *s.Level, s.Queue))
	}
	return nil
}

// Filter chooses slots. Stores take every field as given; [Read] fills in the defaults.
type Filter struct {
	// Queues chooses slots by queue. Default: all.
	Queues []string
	// Tenant chooses the slots of one tenant instead of whole queues. Tenants adds the slots of the largest tenants
	// to the slots of whole queues.
	Tenant  string
	Tenants bool
	// Levels adds slots in which no job moved, but upkeep saw ready jobs. Other slots have their level anyway.
	Levels bool
	// Every is Fine, Minute or Hour. Default: the longest with at least 60 slots from From to To, if stores keep
	// such slots long enough.
	Every time.Duration
	// From and To choose slots that begin at From or later, and before To. Default of To: now. Default of From: 1 h
	// before To. Read moves From back to the begin of its slot.
	From, To time.Time
	// Limit is the most slots, the oldest first. Default: 10,000, which is the most too.
	Limit int
}

// Slots returns the three kinds of slots, the shortest first.
func Slots() []BucketKind {
	return []BucketKind{{Fine, FineKept}, {Minute, MinuteKept}, {Hour, HourKept}}
}

// BucketKind is a kind of slot: its length, and how long stores keep it.
type BucketKind struct{ Every, Kept time.Duration }

// maxBuckets is the most slots that Read lists.
const maxBuckets = 10_000

// usualBuckets is how many slots make a picture.
const usualBuckets = 60

// Every returns the length of slots for a picture of a window: the longest with at least 60 slots in the window, or
// Fine.
func Every(window time.Duration) time.Duration {
	for _, bucket := range slices.Backward(Slots()) {
		if window >= usualBuckets*bucket.Every {
			return bucket.Every
		}
	}
	return Fine
}

// DefaultWindow is the window of a summary if the caller names none.
const DefaultWindow = time.Hour

// Read lists statistics by slot; [Filter] has the defaults. A filter that breaks a rule is a [sluice.ErrInvalid].
func Read(ctx context.Context, store sluice.Store, filter Filter) ([]Stat, error) {
	if filter.To.IsZero() || filter.From.IsZero() {
		now, err := sluice.GivenStore(store).Now(ctx)
		if err != nil {
			return nil, err
		}
		filter = filter.until(now)
	}
	if filter.Every == 0 {
		filter.Every = Every(filter.To.Sub(filter.From))
	}
	if filter.Limit == 0 {
		filter.Limit = maxBuckets
	}
	if err := filter.check(); err != nil {
		return nil, err
	}
	filter.From = filter.From.Truncate(filter.Every)
	return Given(store).Stats(ctx, filter)
}

// until fills in the defaults of the window.
func (f Filter) until(now time.Time) Filter {
	if f.To.IsZero() {
		f.To = now
	}
	if f.From.IsZero() {
		f.From = f.To.Add(-DefaultWindow)
	}
	return f
}

func (f Filter) check() error {
	for _, name := range f.Queues {
		if err := sluice.CheckQueueName(name); err != nil {
			return err
		}
	}
	if !slices.ContainsFunc(Slots(), func(s BucketKind) bool { return s.Every == f.Every }) {
		return feature.Invalid("every", fmt.Sprintf("%s is not 10s, 1m or 1h", f.Every))
	}
	if f.Limit < 1 || f.Limit > maxBuckets {
		return feature.Invalid("limit", fmt.Sprintf("%d must be from 1 to %d", f.Limit, maxBuckets))
	}
	return nil
}

// Compare orders slots by their begin, then by queue and tenant.
func Compare(a, b Stat) int {
	if c := a.At.Compare(b.At); c != 0 {
		return c
	}
	if c := strings.Compare(a.Queue, b.Queue); c != 0 {
		return c
	}
	return strings.Compare(a.Tenant, b.Tenant)
}
