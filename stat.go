package sluice

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// The slots of statistics, how long each kind is kept, and how many tenants of a queue are told apart in one.
const (
	StatFine   = 10 * time.Second
	StatMinute = time.Minute
	StatHour   = time.Hour

	StatFineKept   = 2 * time.Hour
	StatMinuteKept = 48 * time.Hour
	StatHourKept   = 90 * 24 * time.Hour

	// StatTenants are the tenants of a queue that moved the most jobs in a slot. All others are only counted in the
	// whole queue.
	StatTenants = 20
)

// StatCounts is how many jobs made each move.
type StatCounts struct {
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
func (c *StatCounts) Add(other StatCounts) {
	mine, theirs := c.figures(), other.figures()
	for i := range mine {
		*mine[i] += *theirs[i]
	}
}

// Sum is all that was counted: by it tenants are ranked.
func (c StatCounts) Sum() (sum int64) {
	for _, n := range c.figures() {
		sum += *n
	}
	return sum
}

// statFigures is how many figures StatCounts has.
const statFigures = 12

// figures are all counts, in the order of StatColumns.
func (c *StatCounts) figures() [statFigures]*int64 {
	return [statFigures]*int64{
		&c.Enqueued, &c.Requeued, &c.Claimed, &c.Dispatched, &c.Completed, &c.Dead, &c.Cancelled, &c.Uncertain,
		&c.Failed, &c.Released, &c.Recovered, &c.StartFailed,
	}
}

// Figures are all counts, in the order of the fields. Stores keep them in that order.
func (c *StatCounts) Figures() []*int64 {
	all := c.figures()
	return all[:]
}

// Stat is what happened in a queue, or of one tenant in it, during a slot of time.
type Stat struct {
	Queue string `json:"queue"`
	// Tenant; empty: the whole queue.
	Tenant string `json:"tenant,omitempty"`
	// At is when the slot begins, Every how long it is: StatFine, StatMinute or StatHour. Slots begin at whole multiples
	// of that, in UTC.
	At     time.Time     `json:"at"`
	Every  time.Duration `json:"-"`
	Counts StatCounts    `json:"counts"`
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

// Moved counts jobs that made a move; see StatCounter.Moved.
func (s *Stat) Moved(event Event, jobs int, wait, run, total time.Duration) {
	t := tally{s.Counts, s.Wait, s.Run, s.Total}
	t.moved(event, int64(jobs), wait, run, total)
	s.Counts, s.Wait, s.Run, s.Total = t.counts, t.wait, t.run, t.total
}

// Equal reports whether both tell the same.
func (s Stat) Equal(other Stat) bool {
	return s.Queue == other.Queue && s.Tenant == other.Tenant && s.At.Equal(other.At) && s.Every == other.Every && s.Counts == other.Counts &&
		s.Wait.Equal(other.Wait) && s.Run.Equal(other.Run) && s.Total.Equal(other.Total)
}

// CheckNew says whether a store can take what a process counted: a slot of StatFine that begins where such slots do, in
// a queue that can have that name, with nothing counted below 0.
func (s Stat) CheckNew() error {
	if err := CheckQueueName(s.Queue); err != nil {
		return err
	}
	if err := checkName("tenant", s.Tenant, MaxTenantBytes); err != nil {
		return err
	}
	if s.Every != StatFine || !s.At.Equal(s.At.Truncate(StatFine)) {
		return invalid("at", fmt.Sprintf("%s for %s is no slot of %s", s.At.Format(time.RFC3339Nano), s.Every, StatFine))
	}
	for _, n := range s.Counts.figures() {
		if *n < 0 {
			return invalid("counts", fmt.Sprintf("%d of queue %q is below 0", *n, s.Queue))
		}
	}
	return nil
}

// StatFilter chooses what Stats lists.
type StatFilter struct {
	// Queues are those whose slots are listed. Default: all.
	Queues []string
	// Tenant lists the slots of one tenant instead of those of whole queues. Tenants lists those of the largest tenants
	// beside those of whole queues.
	Tenant  string
	Tenants bool
	// Every is StatFine, StatMinute or StatHour. Client: by default the longest that gives From to To 60 slots or more,
	// as far as such slots are kept.
	Every time.Duration
	// From and To: slots that begin at From or later, and before To. Client: To is now by default, From an hour before,
	// and From is moved to where its slot begins.
	From, To time.Time
	// Limit is how many are listed, the oldest. Client: 10,000 by default and at the most.
	Limit int
}

// Statistics keeps what happened, by queue and slot of time. It is a part of Store. Every open store counts for itself (see
// StatCounter) and adds what it counted; nobody counts jobs for it.
type Statistics interface {
	// AddStats keeps what one process, the holder, counted, all or nothing of a slot. A slot that is not later than one
	// that the holder has added before changes nothing: so it may be sent again when an answer was lost, and a slot must be sent
	// at once. A slot that began longer ago than StatFineKept, or that begins more than a minute from now, is left out:
	// nobody could tell whether it was there before. What CheckNew refuses is an ErrInvalid.
	AddStats(ctx context.Context, holder string, stats []Stat) error
	// Stats lists slots, those of all holders merged, by when they begin, then by queue and tenant; also what was not
	// folded yet. A slot in which nothing happened is missing.
	Stats(ctx context.Context, filter StatFilter) ([]Stat, error)
	// FoldStats merges what holders added for minutes that are over, keeps it by slot, minute and hour, each with its
	// StatTenants largest tenants, and deletes slots that were kept long enough. It handles at most limit rows of the
	// holders and deletes at most limit slots, and returns how many of both it did: fewer than limit means that there is
	// nothing more to do now. Several at once do no harm.
	FoldStats(ctx context.Context, limit int) (int, error)
}

// Slots give the three kinds of slots, the shortest first, and how long each is kept.
func Slots() []StatSlot {
	return []StatSlot{{StatFine, StatFineKept}, {StatMinute, StatMinuteKept}, {StatHour, StatHourKept}}
}

// StatSlot is a kind of slot.
type StatSlot struct{ Every, Kept time.Duration }

// statLimit is how many slots Client.Stats lists at the most.
const statLimit = 10_000

// usualSlots is how many slots make a picture.
const usualSlots = 60

// StatEvery is the slot for a picture or a figure of a window: the longest of which it has 60 or more, or StatFine.
func StatEvery(window time.Duration) time.Duration {
	for _, slot := range slices.Backward(Slots()) {
		if window >= usualSlots*slot.Every {
			return slot.Every
		}
	}
	return StatFine
}

// StatWindow is the window of which figures are told where nobody says another.
const StatWindow = time.Hour

// Stats lists what happened in queues, slot by slot; see StatFilter for what is left open.
func (c *Client) Stats(ctx context.Context, filter StatFilter) ([]Stat, error) {
	if filter.To.IsZero() || filter.From.IsZero() {
		now, err := c.store.Now(ctx)
		if err != nil {
			return nil, err
		}
		filter = filter.until(now)
	}
	if filter.Every == 0 {
		filter.Every = StatEvery(filter.To.Sub(filter.From))
	}
	if filter.Limit == 0 {
		filter.Limit = statLimit
	}
	if err := filter.check(); err != nil {
		return nil, err
	}
	filter.From = filter.From.Truncate(filter.Every)
	return c.store.Stats(ctx, filter)
}

// until fills in the window.
func (f StatFilter) until(now time.Time) StatFilter {
	if f.To.IsZero() {
		f.To = now
	}
	if f.From.IsZero() {
		f.From = f.To.Add(-StatWindow)
	}
	return f
}

func (f StatFilter) check() error {
	for _, name := range f.Queues {
		if err := CheckQueueName(name); err != nil {
			return err
		}
	}
	if !slices.ContainsFunc(Slots(), func(s StatSlot) bool { return s.Every == f.Every }) {
		return invalid("every", fmt.Sprintf("%s is not 10s, 1m or 1h", f.Every))
	}
	if f.Limit < 1 || f.Limit > statLimit {
		return invalid("limit", fmt.Sprintf("%d is not from 1 to %d", f.Limit, statLimit))
	}
	return nil
}

// CompareStats orders by when slots begin, then by queue and tenant.
func CompareStats(a, b Stat) int {
	if c := a.At.Compare(b.At); c != 0 {
		return c
	}
	if c := strings.Compare(a.Queue, b.Queue); c != 0 {
		return c
	}
	return strings.Compare(a.Tenant, b.Tenant)
}
