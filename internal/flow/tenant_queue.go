package flow

import (
	"cmp"
	"container/heap"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/tenancy"
)

// TenantQueue is the waiting jobs of one tenant, in a queue that serves its tenants in turns. Claims serve
// active tenant queues. Other tenant queues sleep until an instant, or until a job arrives or ends.
type TenantQueue struct {
	Tenant string
	// Turn is the tenant queue's virtual start: the active tenant queue with the least turn is served first. Each
	// job adds the inverse of the tenant's weight.
	VirtualStart float64
	// Jobs has a bit, counted from 1, for each priority with jobs that may wait.
	Jobs uint16
	// Active tenant queues are in the order of virtual starts. Full tenant queues sleep until a job of the tenant ends.
	Active, Full bool
	// WakeAt is when a sleeping tenant queue wakes by itself. Zero: never.
	WakeAt time.Time
	// Bucket is the tenant's tokens.
	Bucket Bucket
	// EffectiveLimits are the limits in effect.
	EffectiveLimits sluice.EffectiveLimits
	// Held is how many of the tenant's jobs are in flight.
	Held int

	// Share is how many jobs a claim is to take from the tenant queue, and Got how many it took.
	Share, Got int
	// NextDue is when the first job is due that still waits after the claim, as Look found it.
	// Zero: none waits.
	NextDue time.Time
}

// EffectiveLimitsOf returns a tenant's limits in effect. Each value comes from the first of the limits that
// sets it. Jobs without a tenant have no limits.
func EffectiveLimitsOf(tenant string, s sluice.Settings, now time.Time, nearestFirst ...tenancy.Limits) sluice.EffectiveLimits {
	if tenant == "" {
		return sluice.EffectiveLimits{Weight: 1}
	}
	terms := sluice.EffectiveLimits{Concurrency: s.TenantConcurrency, Rate: s.TenantRate, Burst: s.TenantBurst, Weight: 1}
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
		take(&terms.Concurrency, l.Concurrency)
		take(&terms.Rate, l.Rate)
		take(&terms.Burst, l.Burst)
		take(&terms.Weight, l.Weight)
	}
	return terms
}

// later returns the later end of two pauses. Zero, for no end, is the latest.
func later(t sluice.EffectiveLimits, until time.Time) time.Time {
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

// pace returns a tenant's rate as a bucket takes it. A tenant has a bucket and no window. So the
// bucket is filled more slowly, by its size, and no window can have more claims than the rate and
// the burst allow.
func pace(t sluice.EffectiveLimits) sluice.Settings {
	full := t.Rate.Tokens(t.Burst)
	refill := sluice.Rate{Jobs: min(t.Rate.Jobs, t.Rate.Jobs+t.Burst-int(full)+1), Per: t.Rate.Per}
	return sluice.Settings{Rate: refill, Burst: int(full)}
}

// room returns how many jobs the limits let a claim take. The bucket must be filled.
func (l *TenantQueue) room() int {
	room := math.MaxInt
	switch {
	case l.EffectiveLimits.Paused:
		return 0
	case l.EffectiveLimits.Concurrency > 0:
		room = max(0, l.EffectiveLimits.Concurrency-l.Held)
	}
	if !l.EffectiveLimits.Rate.IsZero() {
		room = min(room, max(0, l.Bucket.whole()))
	}
	return room
}

// LowWater is the low-water mark of the virtual starts: no active tenant queue is before it. Claims only move it
// forward, so that they need not step over tenant queues that were left behind.
type LowWater struct {
	VirtualStart float64
	Tenant       string
}

// Behind returns a virtual start right behind the mark.
func (m LowWater) Behind() float64 {
	return math.Max(m.VirtualStart+nudge, math.Nextafter(m.VirtualStart, math.Inf(1)))
}

// nudge is how far a waking tenant queue stands behind the mark. The step is tiny compared with a job's
// turn. After 2^32 turns, rounding would lose it; then the smallest possible step counts.
const nudge = 1.0 / (1 << 20)

// Wake makes a sleeping tenant queue active. Its turn is not before the other tenant queues': time in which the
// tenant queue had no jobs, or was held back, earns no credit.
func (l *TenantQueue) Wake(mark LowWater) {
	if !l.Active {
		l.VirtualStart = math.Max(l.VirtualStart, mark.Behind())
	}
	l.Active, l.Full, l.WakeAt = true, false, time.Time{}
}

// Arrive records a new job. A tenant queue that sleeps until a later instant wakes when the job is due; a
// full tenant queue sleeps on.
func (l *TenantQueue) Arrive(due, now time.Time, mark LowWater) {
	switch {
	case l.Active, l.Full:
	case !due.After(now):
		l.Wake(mark)
	case l.WakeAt.IsZero() || due.Before(l.WakeAt):
		l.WakeAt = due
	}
}

// TenantQueues is a store's tenant queues of one queue. No other claim may change them meanwhile.
type TenantQueues interface {
	// First returns up to limit active tenant queues from the mark on, in the order of virtual starts, with their
	// limits and their jobs in flight.
	First(mark LowWater, limit int) ([]*TenantQueue, error)
	// Claim claims jobs of each tenant queue, up to its share, and sets Got.
	Claim(lines []*TenantQueue) error
	// Look sets the priorities that still wait in each tenant queue, and when the first job is due.
	Look(lines []*TenantQueue) error
	// Keep stores tenant queues after they were served.
	Keep(lines []*TenantQueue) error
}

const (
	// MaxTenantQueues is how many tenant queues are served per look. Larger claims take several jobs of each.
	MaxTenantQueues = 128
	// FirstTenantQueues is how many tenant queues are served at the first look, if there are that many. Each tenant queue
	// costs as much as some jobs, and tenant queues that are left out come first at the next claim.
	FirstTenantQueues = 32
	// JobsPerTenantQueue is how many more jobs a claim must ask for to serve one more tenant queue at the first
	// look.
	JobsPerTenantQueue = 16
	// MaxReads is how often a claim looks for further tenant queues when the tenant queues before had less than
	// their share.
	MaxReads = 4
	// Plenty is the share from which a claim does not check whether a tenant queue has more: its next turn
	// finds out cheaply.
	Plenty = 4
)

// Width is how many more tenant queues than usual the claims of a queue serve first, because each tenant queue had
// little at earlier claims. Another look costs as many statements as the first. The zero value
// works.
type Width struct{ doublings atomic.Int32 }

// Lines returns how many tenant queues a claim of this many jobs reads first.
func (w *Width) Lines(jobs int) int {
	return min(jobs, MaxTenantQueues, max(FirstTenantQueues, jobs/JobsPerTenantQueue)<<w.doublings.Load())
}

// note adapts the width to the tenant queues of a first look: wider if they had too few jobs, narrower if
// each could have given more.
func (w *Width) note(jobs int, served []*TenantQueue) {
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

// Serve claims jobs that are due within the lead, up to the number in jobs, and divides them among
// the tenant queues by their virtual starts. The result is the new mark.
func Serve(jobs int, mark LowWater, now time.Time, lead time.Duration, width *Width, lines TenantQueues) (next LowWater, err error) {
	got := 0
	for look := 0; look < MaxReads && got < jobs; look++ {
		limit := MaxTenantQueues
		if look == 0 {
			limit = width.Lines(jobs)
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

// share divides jobs among tenant queues in the order of their turns. The result is the tenant queues to claim
// from, and the tenant queues that must sleep because they have no room: a prefix of the tenant queues.
func share(jobs int, lines []*TenantQueue, now time.Time) []*TenantQueue {
	var order turns
	looked := 0
	for _, l := range lines {
		l.Bucket = l.Bucket.filledFor(l.EffectiveLimits, now)
		l.Share, l.Got, l.NextDue = 0, 0, time.Time{}
	}
	for jobs > 0 {
		// The next tenant queue joins when its turn is not after the first turn of the joined tenant queues.
		if looked < len(lines) && (len(order) == 0 || lines[looked].VirtualStart <= order[0].turn) {
			if room := lines[looked].room(); room > 0 {
				heap.Push(&order, &turn{lines[looked], lines[looked].VirtualStart, room})
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
		next.turn += 1 / float64(next.line.EffectiveLimits.Weight)
		if next.room--; next.room == 0 {
			heap.Pop(&order)
			continue
		}
		heap.Fix(&order, 0)
	}
	return slices.DeleteFunc(slices.Clone(lines[:looked]), func(l *TenantQueue) bool { return l.Share == 0 && l.room() > 0 })
}

// TokenWait returns how long until a tenant's rate has a token. 0: it has one, or there is no rate.
func TokenWait(t sluice.EffectiveLimits, b Bucket, now time.Time) time.Duration {
	return b.filledFor(t, now).UntilNext(pace(t))
}

func (b Bucket) filledFor(t sluice.EffectiveLimits, now time.Time) Bucket {
	if t.Rate.IsZero() {
		return b
	}
	return b.filled(pace(t).Rate.PerSecond(), t.Rate.Tokens(t.Burst), now)
}

// serve claims from the tenant queues that have a share, and looks what remains in tenant queues that gave little.
// A tenant queue without due jobs must not stand before the others.
func serve(lines []*TenantQueue, store TenantQueues) error {
	wanted := slices.DeleteFunc(slices.Clone(lines), func(l *TenantQueue) bool { return l.Share == 0 })
	if len(wanted) == 0 {
		return nil
	}
	if err := store.Claim(wanted); err != nil {
		return err
	}
	doubtful := slices.DeleteFunc(wanted, func(l *TenantQueue) bool { return l.Got == l.Share && (l.Share >= Plenty || l.room() <= l.Got) })
	if len(doubtful) == 0 {
		return nil
	}
	return store.Look(doubtful)
}

// after returns the mark: the first tenant queue that was not served or, if all were, the last one.
func after(lines, served []*TenantQueue) LowWater {
	for _, l := range lines {
		if !slices.Contains(served, l) {
			return l.mark()
		}
	}
	return lines[len(lines)-1].mark()
}

// upTo moves the mark to the first tenant queue that is still active, or to the last of all tenant queues. So a
// tenant owes nothing for jobs that ran while no other tenant had work.
func upTo(lines []*TenantQueue, mark LowWater) LowWater {
	to := slices.MaxFunc(lines, InTurns).mark()
	active := slices.DeleteFunc(slices.Clone(lines), func(l *TenantQueue) bool { return !l.Active })
	if len(active) > 0 {
		to = slices.MinFunc(active, InTurns).mark()
	}
	if to.before(mark) {
		return mark
	}
	return to
}

// InTurns compares tenant queues by their virtual starts, and equal turns by their tenants.
func InTurns(a, b *TenantQueue) int { return a.mark().compare(b.mark()) }

func (l *TenantQueue) mark() LowWater { return LowWater{l.VirtualStart, l.Tenant} }

// rest updates a tenant queue after a claim served it or could not: its turn, tokens and sleep.
func (l *TenantQueue) rest(mark LowWater, now time.Time, lead time.Duration) {
	l.Held += l.Got
	l.VirtualStart += float64(l.Got) / float64(l.EffectiveLimits.Weight)
	if !l.EffectiveLimits.Rate.IsZero() {
		l.Bucket = l.Bucket.Take(l.Got)
	}
	if l.mark().before(mark) {
		l.VirtualStart = mark.Behind()
	}
	switch {
	case l.EffectiveLimits.Paused:
		l.sleep(l.EffectiveLimits.PausedUntil)
	case l.EffectiveLimits.Concurrency > 0 && l.Held >= l.EffectiveLimits.Concurrency:
		l.sleep(l.EffectiveLimits.Until)
		l.Full = true
	case l.room() == 0:
		l.sleep(sooner(now.Add(l.Bucket.untilUseful(pace(l.EffectiveLimits))), l.EffectiveLimits.Until))
	case l.Jobs == 0:
		l.sleep(time.Time{})
	case l.NextDue.After(now.Add(lead)):
		l.sleep(l.NextDue)
	case l.Got < l.Share:
		l.sleep(now.Add(lockedWait))
	}
}

// sooner returns the earlier instant. A zero other is none.
func sooner(at, other time.Time) time.Time {
	if !other.IsZero() && other.Before(at) {
		return other
	}
	return at
}

// lockedWait is when to look again at a tenant queue whose next job another transaction has locked. If the
// tenant queue stayed awake, each claim would look at it first, and small claims look at few tenant queues.
const lockedWait = 10 * time.Millisecond

// offRate is how long to keep a tenant queue with used tokens after its tenant's rate was removed. If the
// rate returns within this time, its bucket continues.
const offRate = 24 * time.Hour

// Spare reports whether deleting a tenant queue loses nothing: a new tenant queue would have the same turn and as
// many tokens. No job may wait in the tenant queue or be in flight. The queue serves tenants in turns, or
// did so once.
func (l *TenantQueue) Spare(mark LowWater, inTurns bool, now time.Time) bool {
	if inTurns && (l.Active || l.Full || !l.WakeAt.IsZero() || l.VirtualStart > mark.Behind()) {
		return false
	}
	switch {
	case l.Bucket.FilledAt.IsZero():
		return true
	case !l.EffectiveLimits.Until.IsZero(): // the next limits may have another burst
		return false
	case l.EffectiveLimits.Rate.IsZero():
		return now.Sub(l.Bucket.FilledAt) > offRate
	}
	return l.Bucket.filledFor(l.EffectiveLimits, now).Tokens >= l.EffectiveLimits.Rate.Tokens(l.EffectiveLimits.Burst)
}

func isActive(l *TenantQueue) bool { return l.Active }

func (l *TenantQueue) sleep(until time.Time) { l.Active, l.WakeAt = false, until }

func (m LowWater) before(other LowWater) bool { return m.compare(other) < 0 }

func (m LowWater) compare(other LowWater) int {
	return cmp.Or(cmp.Compare(m.VirtualStart, other.VirtualStart), cmp.Compare(m.Tenant, other.Tenant))
}

// turn is a tenant queue's turn while jobs are divided.
type turn struct {
	line *TenantQueue
	turn float64
	room int
}

// turns is a heap of turns, the first on top.
type turns []*turn

func (t turns) Len() int { return len(t) }

func (t turns) Less(i, k int) bool {
	return LowWater{t[i].turn, t[i].line.Tenant}.before(LowWater{t[k].turn, t[k].line.Tenant})
}

func (t turns) Swap(i, k int) { t[i], t[k] = t[k], t[i] }

func (t *turns) Push(x any) { *t = append(*t, x.(*turn)) }

func (t *turns) Pop() any {
	last := (*t)[len(*t)-1]
	*t = (*t)[:len(*t)-1]
	return last
}

// againAhead is how long a claim that takes jobs ahead waits for a tenant queue that has slept again.
const againAhead = time.Second

// UntilWake returns how long until a claim may find jobs in a tenant queue that wakes then, if claims take jobs so long before they
// are due. Served: the claim has woken what wakes within that time. What sleeps again mostly waits for something else than a job to
// fall due, such as the end of a pause or a token: claims at once would find nothing, and be followed by others without end.
func UntilWake(wakes, ahead time.Duration, served bool) time.Duration {
	wakes = max(wakes, 0) // a store without an instant tells of one so long ago that no duration is left of it without ahead
	if served && wakes <= ahead {
		return min(wakes, againAhead)
	}
	return max(wakes-ahead, 0)
}
