package flow

import (
	"cmp"
	"container/heap"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/sluice-queue/sluice"
)

// Line is where the jobs of one tenant stand in a queue that serves its tenants in turns. A line is active
// while a claim should look at it; else it sleeps until an instant, or until something wakes it: a job that
// came in, or one that ended.
type Line struct {
	Tenant string
	// Turn is the line's place among the active ones: the least is served first. Each job puts it off by
	// the inverse of the tenant's weight.
	Turn float64
	// Jobs has a bit, counted from 1, for each priority of which jobs may wait.
	Jobs uint16
	// Active lines are in the order of turns. Full ones sleep until a job of the tenant ends.
	Active, Full bool
	// WakeAt is when a sleeping line wakes by itself; zero: it does not.
	WakeAt time.Time
	// Bucket are the tenant's tokens.
	Bucket Bucket
	// Terms are the limits in force.
	Terms sluice.Terms
	// Held is how many of the tenant's jobs are in flight.
	Held int

	// Share is how many jobs a claim is to take from the line, and Got how many it took.
	Share, Got int
	// NextDue is when the first job is due that waits after the claim, as Look found it; zero: none waits.
	NextDue time.Time
}

// TermsOf finds the limits that count for a tenant: each figure from the first of the limits that says it. Jobs
// without a tenant are nobody's, and have none.
func TermsOf(tenant string, s sluice.Settings, now time.Time, nearestFirst ...sluice.TenantLimits) sluice.Terms {
	if tenant == "" {
		return sluice.Terms{Weight: 1}
	}
	terms := sluice.Terms{Capacity: s.TenantCapacity, Rate: s.TenantRate, Burst: s.TenantBurst, Weight: 1}
	for _, l := range slices.Backward(nearestFirst) {
		if l.PausedAt(now) {
			terms.Paused, terms.PausedUntil = true, later(terms, l.PausedUntil)
		}
		if !l.Until.IsZero() && !l.Until.After(now) {
			continue
		}
		if !l.Until.IsZero() && (terms.Until.IsZero() || l.Until.Before(terms.Until)) {
			terms.Until = l.Until
		}
		take(&terms.Capacity, l.Capacity)
		take(&terms.Rate, l.Rate)
		take(&terms.Burst, l.Burst)
		take(&terms.Weight, l.Weight)
	}
	return terms
}

// later gives the later end of two pauses, of which none may be the latest.
func later(t sluice.Terms, until time.Time) time.Time {
	if t.Paused && (t.PausedUntil.IsZero() || !until.IsZero() && t.PausedUntil.After(until)) {
		return t.PausedUntil
	}
	return until
}

func take[T any](figure, said *T) {
	if said != nil {
		*figure = *said
	}
}

// pace gives the rate of the terms as a bucket takes it. Nothing but the bucket bounds a tenant's claims: it is filled
// more slowly, by what it holds, so that in no window there are more of them than the rate and the burst allow.
func pace(t sluice.Terms) sluice.Settings {
	full := t.Rate.Tokens(t.Burst)
	refill := sluice.Rate{Jobs: min(t.Rate.Jobs, t.Rate.Jobs+t.Burst-int(full)+1), Per: t.Rate.Per}
	return sluice.Settings{Rate: refill, Burst: int(full)}
}

// room is how many jobs the terms let a claim take; the bucket is filled.
func (l *Line) room() int {
	room := math.MaxInt
	switch {
	case l.Terms.Paused:
		return 0
	case l.Terms.Capacity > 0:
		room = max(0, l.Terms.Capacity-l.Held)
	}
	if !l.Terms.Rate.IsZero() {
		room = min(room, max(0, l.Bucket.whole()))
	}
	return room
}

// Mark is the place in the order of turns before which no active line is. Claims move it on, and never back,
// so that what they left behind need not be walked over.
type Mark struct {
	Turn   float64
	Tenant string
}

// Behind is a turn right behind the mark.
func (m Mark) Behind() float64 { return math.Max(m.Turn+nudge, math.Nextafter(m.Turn, math.Inf(1))) }

// nudge is by how much a line that wakes stands behind the mark. It is nothing beside a job's turn. After 2^32
// turns it would be lost by rounding; the step is then the least that there is.
const nudge = 1.0 / (1 << 20)

// Wake makes a sleeping line active. Its turn is not before those of the others: time in which it had
// nothing to do, or was held back, is no credit.
func (l *Line) Wake(mark Mark) {
	if !l.Active {
		l.Turn = math.Max(l.Turn, mark.Behind())
	}
	l.Active, l.Full, l.WakeAt = true, false, time.Time{}
}

// Arrive notes that a job came in. A line that sleeps until a later instant wakes when the job is due, one at
// its capacity sleeps on.
func (l *Line) Arrive(due, now time.Time, mark Mark) {
	switch {
	case l.Active, l.Full:
	case !due.After(now):
		l.Wake(mark)
	case l.WakeAt.IsZero() || due.Before(l.WakeAt):
		l.WakeAt = due
	}
}

// Lines are a store's lines of one queue, which no other claim touches meanwhile.
type Lines interface {
	// First gives up to limit active lines from the mark on, in the order of turns, with their terms and
	// with what they have in flight.
	First(mark Mark, limit int) ([]*Line, error)
	// Claim claims jobs of each line, up to its share, and says how many it got.
	Claim(lines []*Line) error
	// Look says of each line which priorities still wait, and when the first job is due.
	Look(lines []*Line) error
	// Keep stores lines after they were served.
	Keep(lines []*Line) error
}

const (
	// MaxLines bounds how many lines are served at one look. Larger claims take several jobs of each.
	MaxLines = 128
	// FirstLines is how many lines are served at the first look, if they have that many: each costs as much as some
	// jobs, and whoever is not served now is the first at the next claim.
	FirstLines = 32
	// JobsALine is how many jobs a claim must ask for to be served from one more line at the first look.
	JobsALine = 16
	// MaxLooks bounds how often a claim looks for further lines, where those before it had less than their
	// share.
	MaxLooks = 4
	// Plenty is how many jobs a line gives when nobody asks whether it has more: finding out at its next turn
	// costs little for each of so many.
	Plenty = 4
)

// Width is by how much more lines than usual claims of a queue look at first, because each had little at the claims
// before: another look costs as many statements as the first. The zero value works.
type Width struct{ doublings atomic.Int32 }

func (w *Width) lines(jobs int) int {
	return min(jobs, MaxLines, max(FirstLines, jobs/JobsALine)<<w.doublings.Load())
}

// note learns from the lines of a first look: it widens where they had too little, and narrows where each could have
// given more.
func (w *Width) note(jobs int, served []*Line) {
	got, emptied, doublings := 0, false, w.doublings.Load()
	for _, l := range served {
		got, emptied = got+l.Got, emptied || l.Jobs == 0
	}
	switch {
	case got < jobs && doublings < 2:
		w.doublings.Store(doublings + 1)
	case got >= jobs && !emptied && doublings > 0:
		w.doublings.Store(doublings - 1)
	}
}

// Serve claims up to so many jobs that are due, or will be within the lead, and shares them out among the lines by
// their turns. It gives the new mark.
func Serve(jobs int, mark Mark, now time.Time, lead time.Duration, width *Width, lines Lines) (next Mark, err error) {
	got := 0
	for look := 0; look < MaxLooks && got < jobs; look++ {
		limit := MaxLines
		if look == 0 {
			limit = width.lines(jobs)
		}
		first, err := lines.First(mark, limit)
		if err != nil || len(first) == 0 {
			return mark, err
		}
		served := share(jobs-got, first, now)
		if err := serve(served, lines); err != nil {
			return mark, err
		}
		mark = after(first, served)
		for _, l := range served {
			got += l.Got
			l.rest(mark, now, lead)
		}
		if look == 0 && len(first) == limit {
			width.note(jobs, served)
		}
		if len(first) < limit {
			mark = upTo(first, mark)
		}
		if err := lines.Keep(served); err != nil || len(first) < limit && !slices.ContainsFunc(served, isActive) {
			return mark, err
		}
	}
	return mark, nil
}

// share shares jobs out among lines in the order of their turns, and gives those that come into it: to be
// claimed from, or to be put to sleep because they have no room. They are the first of the lines.
func share(jobs int, lines []*Line, now time.Time) []*Line {
	var order turns
	looked := 0
	for _, l := range lines {
		l.Bucket = l.Bucket.filledFor(l.Terms, now)
		l.Share, l.Got, l.NextDue = 0, 0, time.Time{}
	}
	for jobs > 0 {
		// The next line comes into it when its turn is before those of the ones that are served already.
		if looked < len(lines) && (len(order) == 0 || lines[looked].Turn <= order[0].turn) {
			if room := lines[looked].room(); room > 0 {
				heap.Push(&order, &turn{lines[looked], lines[looked].Turn, room})
			}
			looked++
			continue
		}
		if len(order) == 0 {
			break
		}
		next := order[0]
		next.line.Share++
		jobs--
		next.turn += 1 / float64(next.line.Terms.Weight)
		if next.room--; next.room == 0 {
			heap.Pop(&order)
			continue
		}
		heap.Fix(&order, 0)
	}
	return slices.DeleteFunc(slices.Clone(lines[:looked]), func(l *Line) bool { return l.Share == 0 && l.room() > 0 })
}

// TokenWait is how long until a tenant's rate has a token; 0: it has one, or there is no rate.
func TokenWait(t sluice.Terms, b Bucket, now time.Time) time.Duration {
	return b.filledFor(t, now).UntilNext(pace(t))
}

func (b Bucket) filledFor(t sluice.Terms, now time.Time) Bucket {
	if t.Rate.IsZero() {
		return b
	}
	return b.filled(pace(t).Rate.PerSecond(), t.Rate.Tokens(t.Burst), now)
}

// serve claims from the lines that have a share, and looks what is left in those that gave little: a line in which
// nothing is due must not stand before the others.
func serve(lines []*Line, store Lines) error {
	wanted := slices.DeleteFunc(slices.Clone(lines), func(l *Line) bool { return l.Share == 0 })
	if len(wanted) == 0 {
		return nil
	}
	if err := store.Claim(wanted); err != nil {
		return err
	}
	doubtful := slices.DeleteFunc(wanted, func(l *Line) bool { return l.Got == l.Share && (l.Share >= Plenty || l.room() <= l.Got) })
	if len(doubtful) == 0 {
		return nil
	}
	return store.Look(doubtful)
}

// after gives the mark: the first line that was not served, or the last one that was looked at.
func after(lines, served []*Line) Mark {
	for _, l := range lines {
		if !slices.Contains(served, l) {
			return l.mark()
		}
	}
	return lines[len(lines)-1].mark()
}

// upTo moves the mark on to the first of all lines that are still active; if none is, to the last of them: what a
// tenant had while nobody else had work is no debt.
func upTo(lines []*Line, mark Mark) Mark {
	to := slices.MaxFunc(lines, InTurns).mark()
	active := slices.DeleteFunc(slices.Clone(lines), func(l *Line) bool { return !l.Active })
	if len(active) > 0 {
		to = slices.MinFunc(active, InTurns).mark()
	}
	if to.before(mark) {
		return mark
	}
	return to
}

// InTurns sorts lines by their turns, and by their tenants where these are the same.
func InTurns(a, b *Line) int { return a.mark().compare(b.mark()) }

func (l *Line) mark() Mark { return Mark{l.Turn, l.Tenant} }

// rest says where a line goes that was served, or could not be.
func (l *Line) rest(mark Mark, now time.Time, lead time.Duration) {
	l.Held += l.Got
	l.Turn += float64(l.Got) / float64(l.Terms.Weight)
	if !l.Terms.Rate.IsZero() {
		l.Bucket = l.Bucket.Take(l.Got)
	}
	if l.mark().before(mark) {
		l.Turn = mark.Behind()
	}
	switch {
	case l.Terms.Paused:
		l.sleep(l.Terms.PausedUntil)
	case l.Terms.Capacity > 0 && l.Held >= l.Terms.Capacity:
		l.sleep(l.Terms.Until)
		l.Full = true
	case l.room() == 0:
		l.sleep(sooner(now.Add(l.Bucket.untilUseful(pace(l.Terms))), l.Terms.Until))
	case l.Jobs == 0:
		l.sleep(time.Time{})
	case l.NextDue.After(now.Add(lead)):
		l.sleep(l.NextDue)
	case l.Got < l.Share:
		l.sleep(now.Add(lockedWait))
	}
}

// sooner gives the first of two instants, of which the second may be none.
func sooner(at, other time.Time) time.Time {
	if !other.IsZero() && other.Before(at) {
		return other
	}
	return at
}

// lockedWait is when to look again at a line of which somebody else holds the row of the next job in this moment.
// Awake it would be the first that each claim looks at, and a small one looks at few.
const lockedWait = 10 * time.Millisecond

// offRate is for how long a line is kept whose tokens were counted until its tenant's rate was lifted: if the rate is
// back by then, it goes on where it was.
const offRate = 24 * time.Hour

// Spare reports whether nothing is lost when a line is forgotten in which no job waits and of which none is in flight,
// in a queue that serves its tenants in turns or did so once: a line that is made anew would have the same turn and as
// many tokens.
func (l *Line) Spare(mark Mark, inTurns bool, now time.Time) bool {
	if inTurns && (l.Active || l.Full || !l.WakeAt.IsZero() || l.Turn > mark.Behind()) {
		return false
	}
	switch {
	case l.Bucket.FilledAt.IsZero():
		return true
	case !l.Terms.Until.IsZero(): // afterwards its burst may be another
		return false
	case l.Terms.Rate.IsZero():
		return now.Sub(l.Bucket.FilledAt) > offRate
	}
	return l.Bucket.filledFor(l.Terms, now).Tokens >= l.Terms.Rate.Tokens(l.Terms.Burst)
}

func isActive(l *Line) bool { return l.Active }

func (l *Line) sleep(until time.Time) { l.Active, l.WakeAt = false, until }

func (m Mark) before(other Mark) bool { return m.compare(other) < 0 }

func (m Mark) compare(other Mark) int {
	return cmp.Or(cmp.Compare(m.Turn, other.Turn), cmp.Compare(m.Tenant, other.Tenant))
}

// turn is a line's turn while jobs are shared out.
type turn struct {
	line *Line
	turn float64
	room int
}

// turns is a heap of them, the first on top.
type turns []*turn

func (t turns) Len() int { return len(t) }

func (t turns) Less(i, k int) bool {
	return Mark{t[i].turn, t[i].line.Tenant}.before(Mark{t[k].turn, t[k].line.Tenant})
}

func (t turns) Swap(i, k int) { t[i], t[k] = t[k], t[i] }

func (t *turns) Push(x any) { *t = append(*t, x.(*turn)) }

func (t *turns) Pop() any {
	last := (*t)[len(*t)-1]
	*t = (*t)[:len(*t)-1]
	return last
}
