package stat

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/feature"
)

// The slots of statistics, how long each kind is kept, and how many tenants of a queue are told apart in one.
const (
	Fine   = 10 * time.Second
	Minute = time.Minute
	Hour   = time.Hour

	FineKept   = 2 * time.Hour
	MinuteKept = 48 * time.Hour
	HourKept   = 90 * 24 * time.Hour

	// MaxTenants are the tenants of a queue that moved the most jobs in a slot. All others are only counted in the
	// whole queue.
	MaxTenants = 20
)

// Counts is how many jobs made each move.
type Counts struct {
	// Enqueued jobs are new, Requeued ones got a new life from a person.
	Enqueued int64 `json:"enqueued,omitempty"`
	Requeued int64 `json:"requeued,omitempty"`
	// Claimed counts hand-outs to workers and dispatchers, Dispatched those that an engine took over.
	Claimed    int64 `json:"claimed,omitempty"`
	Dispatched int64 `json:"dispatched,omitempty"`
	// Completed, Dead and Cancelled jobs ended so; Uncertain ones wait for somebody who knows.
	Completed int64 `json:"completed,omitempty"`
	Dead      int64 `json:"dead,omitempty"`
	Cancelled int64 `json:"cancelled,omitempty"`
	Uncertain int64 `json:"uncertain,omitempty"`
	// Failed counts attempts that failed, also the last one of a job that is dead by that.
	Failed int64 `json:"failed,omitempty"`
	// Released hand-outs were handed back uncounted, Recovered ones taken back when their lease had run out.
	Released  int64 `json:"released,omitempty"`
	Recovered int64 `json:"recovered,omitempty"`
	// StartFailed counts runs that an engine did not start.
	StartFailed int64 `json:"start_failed,omitempty"`
}

// Add adds what others counted.
func (c *Counts) Add(other Counts) {
	mine, theirs := c.figures(), other.figures()
	for i := range mine {
		*mine[i] += *theirs[i]
	}
}

// Sum is all that was counted: by it tenants are ranked.
func (c Counts) Sum() (sum int64) {
	for _, n := range c.figures() {
		sum += *n
	}
	return sum
}

// statFigures is how many figures Counts has.
const figureCount = 12

// figures are all counts, in the order of StatColumns.
func (c *Counts) figures() [figureCount]*int64 {
	return [figureCount]*int64{
		&c.Enqueued, &c.Requeued, &c.Claimed, &c.Dispatched, &c.Completed, &c.Dead, &c.Cancelled, &c.Uncertain,
		&c.Failed, &c.Released, &c.Recovered, &c.StartFailed,
	}
}

// Figures are all counts, in the order of the fields. Stores keep them in that order.
func (c *Counts) Figures() []*int64 {
	all := c.figures()
	return all[:]
}

// Stat is what happened in a queue, or of one tenant in it, during a slot of time.
type Stat struct {
	Queue string `json:"queue"`
	// Tenant; empty: the whole queue.
	Tenant string `json:"tenant,omitempty"`
	// At is when the slot begins, Every how long it is: Fine, Minute or Hour. Slots begin at whole multiples
	// of that, in UTC.
	At     time.Time     `json:"at"`
	Every  time.Duration `json:"-"`
	Counts Counts        `json:"counts"`
	// Wait is from due to claim, by when jobs were claimed. Run is from claim to end and Total from due to end, of jobs
	// that completed, by when they did.
	Wait  Histogram `json:"wait"`
	Run   Histogram `json:"run"`
	Total Histogram `json:"total"`
}

// Merge adds what another holder counted, or another slot holds. Queue, tenant and slot stay as they are.
func (s *Stat) Merge(other Stat) {
	s.Counts.Add(other.Counts)
	s.Wait.Merge(other.Wait)
	s.Run.Merge(other.Run)
	s.Total.Merge(other.Total)
}

// Moved counts jobs that made a move; see Counter.Moved.
func (s *Stat) Moved(event sluice.Event, jobs int, wait, run, total time.Duration) {
	t := tally{s.Counts, s.Wait, s.Run, s.Total}
	t.moved(event, int64(jobs), wait, run, total)
	s.Counts, s.Wait, s.Run, s.Total = t.counts, t.wait, t.run, t.total
}

// Equal reports whether both tell the same.
func (s Stat) Equal(other Stat) bool {
	return s.Queue == other.Queue && s.Tenant == other.Tenant && s.At.Equal(other.At) && s.Every == other.Every && s.Counts == other.Counts &&
		s.Wait.Equal(other.Wait) && s.Run.Equal(other.Run) && s.Total.Equal(other.Total)
}

// CheckNew says whether a store can take what a process counted: a slot of Fine that begins where such slots do, in
// a queue that can have that name, with nothing counted below 0.
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
	return nil
}

// Filter chooses what Stats lists.
type Filter struct {
	// Queues are those whose slots are listed. Default: all.
	Queues []string
	// Tenant lists the slots of one tenant instead of those of whole queues. Tenants lists those of the largest tenants
	// beside those of whole queues.
	Tenant  string
	Tenants bool
	// Every is Fine, Minute or Hour. Read: by default the longest that gives From to To 60 slots or more,
	// as far as such slots are kept.
	Every time.Duration
	// From and To: slots that begin at From or later, and before To. Read: To is now by default, From an hour before,
	// and From is moved to where its slot begins.
	From, To time.Time
	// Limit is how many are listed, the oldest. Read: 10,000 by default and at the most.
	Limit int
}

// Slots give the three kinds of slots, the shortest first, and how long each is kept.
func Slots() []SlotKind {
	return []SlotKind{{Fine, FineKept}, {Minute, MinuteKept}, {Hour, HourKept}}
}

// SlotKind is a kind of slot.
type SlotKind struct{ Every, Kept time.Duration }

// maxSlots is how many slots Read lists at the most.
const maxSlots = 10_000

// usualSlots is how many slots make a picture.
const usualSlots = 60

// Every is the slot for a picture or a figure of a window: the longest of which it has 60 or more, or Fine.
func Every(window time.Duration) time.Duration {
	for _, slot := range slices.Backward(Slots()) {
		if window >= usualSlots*slot.Every {
			return slot.Every
		}
	}
	return Fine
}

// DefaultWindow is the window of which figures are told where nobody says another.
const DefaultWindow = time.Hour

// Read lists statistics by slot; see [Filter] for the defaults. A filter that breaks a rule is a [sluice.ErrInvalid].
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
		filter.Limit = maxSlots
	}
	if err := filter.check(); err != nil {
		return nil, err
	}
	filter.From = filter.From.Truncate(filter.Every)
	return Given(store).Stats(ctx, filter)
}

// until fills in the window.
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
	if !slices.ContainsFunc(Slots(), func(s SlotKind) bool { return s.Every == f.Every }) {
		return feature.Invalid("every", fmt.Sprintf("%s is not 10s, 1m or 1h", f.Every))
	}
	if f.Limit < 1 || f.Limit > maxSlots {
		return feature.Invalid("limit", fmt.Sprintf("%d is not from 1 to %d", f.Limit, maxSlots))
	}
	return nil
}

// Compare orders by when slots begin, then by queue and tenant.
func Compare(a, b Stat) int {
	if c := a.At.Compare(b.At); c != 0 {
		return c
	}
	if c := strings.Compare(a.Queue, b.Queue); c != 0 {
		return c
	}
	return strings.Compare(a.Tenant, b.Tenant)
}
