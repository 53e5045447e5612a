// Package room decides for an open store whether jobs fit into their queues, by the settings max_waiting,
// tenant_max_waiting and shed.
//
// Begin with [Room.Enter], which a store calls before each enqueue. An exact count would make all enqueues of a queue
// wait for each other. So a Room counts now and then, and adds what its own store enqueues in between.
//
// Read next: docs/guide/back-pressure.md, which states the slack.
package room

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/pressure"
)

const (
	// Every is the age from which a count is renewed. Other processes may enqueue unseen for so long.
	Every = 250 * time.Millisecond
	// rest is how many times as long as the last count a Room waits before the next, if the place is nearly full: so
	// counting takes at most 5 % of the time. In a place that is half full or less, it waits restHalf times as long:
	// on SQLite, where the caller itself counts, 5 % of its time was 20 % of its work.
	rest, restHalf = 20, 100
	// many is how many places a Room remembers before it forgets idle ones, and idle is when a place is idle.
	many = 1000
	idle = time.Minute
)

// Source counts and sheds for one enqueue.
type Source struct {
	// Waiting counts the waiting jobs of a queue, or of a tenant in it. The count may stop at limit.
	Waiting func(ctx context.Context, queue, tenant string, limit int) (int, error)
	// Shed cancels waiting jobs whose priority number is above below. It cancels as many as jobs says, or none of them.
	Shed func(ctx context.Context, shed Shedding) (done bool, err error)
	// Stored returns those of these jobs that are stored already, or whose key keeps them out.
	Stored func(ctx context.Context, jobs []sluice.Insert) (map[sluice.ID]bool, error)
	// InTx says that the functions use a transaction of the caller. Then nobody may wait for another caller.
	InTx bool
}

// Shedding says which jobs to shed.
type Shedding struct {
	// Queue has the jobs. Tenant is their tenant. Empty: any.
	Queue, Tenant string
	// ByTenant says that the queue serves its tenants in turns.
	ByTenant bool
	// Below is the priority of the jobs that need room. Only jobs of a higher number are shed.
	Below int
	// Jobs is how many to shed.
	Jobs int
}

// Reason is the reason of the cancels in the audit.
const Reason = "shed: too many jobs waited"

// Room knows about how many jobs wait in the queues that have a limit. The zero value works. Many goroutines may use a
// Room.
type Room struct {
	mu     sync.Mutex
	places map[place]*level
	counts map[string]pressure.Counts
	swept  time.Time
}

// place is a queue, or a tenant in a queue.
type place struct{ queue, tenant string }

// level is how many jobs wait in a place.
type level struct {
	known   bool
	waiting int // the last count, with the changes since
	changes int // all changes ever; a count ignores those before it
	flying  int // jobs of enqueues under way
	at      time.Time
	took    time.Duration
	under   chan struct{} // closed when the count under way ends; nil: none
}

// change adds jobs that this store has enqueued or shed.
func (l *level) change(by int) {
	l.waiting = max(l.waiting+by, 0)
	l.changes += by
}

// resting reports whether it is too soon for another count, if so many more jobs may wait. Below 0: too many wait.
func (l *level) resting(now time.Time, left, limit int) bool {
	share := 2 * float64(min(max(left, 0), limit/2)) / float64(limit)
	return now.Sub(l.at) < time.Duration((rest+(restHalf-rest)*share)*float64(l.took))
}

// Stay is an enqueue under way. A nil Stay does nothing.
type Stay struct {
	room  *Room
	wants []want
}

// want is what an enqueue wants of one place.
type want struct {
	place
	jobs, limit, below int
	shed, byTenant     bool
}

// Enter reserves room for jobs. After the enqueue, the caller must call End of the stay. A nil Stay means that no
// limit applies. A full queue is a [*sluice.BatchError] that has a [*pressure.FullError] for each job.
//
// Jobs that are stored already need no room: a caller whose answer was lost sends them again, and they may be what fills
// the queue. Neither does a job that only keeps the one with its key: nothing may be shed for it. Enter looks for them
// only if there is no room.
func (r *Room) Enter(ctx context.Context, jobs []sluice.Insert, from Source) (*Stay, error) {
	stay, full, err := r.enter(ctx, wantsOf(jobs), from, false)
	if full == nil || err != nil {
		return stay, err
	}
	fresh, err := unstored(ctx, jobs, from)
	if err != nil {
		return nil, err
	}
	if stay, full, err = r.enter(ctx, wantsOf(fresh), from, true); full == nil || err != nil {
		return stay, err
	}
	failed := make(map[int]error, len(jobs))
	for i := range jobs {
		failed[i] = full
	}
	return nil, &sluice.BatchError{Failed: failed, Total: len(jobs)}
}

// Keeps reports whether a job is not stored if another job holds its key.
func Keeps(in *sluice.Insert) bool { return in.Key != "" && in.OnDuplicate == sluice.Keep }

// unstored returns the jobs that an enqueue would store.
func unstored(ctx context.Context, jobs []sluice.Insert, from Source) ([]sluice.Insert, error) {
	stored, err := from.Stored(ctx, jobs)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(jobs), func(in sluice.Insert) bool { return stored[in.ID] }), nil
}

// enter reserves the room that an enqueue wants in all places, or returns why there is none. Only at last it sheds and
// counts refusals.
func (r *Room) enter(ctx context.Context, wants []want, from Source, last bool) (*Stay, *pressure.FullError, error) {
	if len(wants) == 0 {
		return nil, nil, nil
	}
	stay := &Stay{room: r}
	for _, w := range wants {
		if full, err := r.take(ctx, w, from, last); err != nil || full != nil {
			stay.End(nil, nil)
			return nil, full, err
		}
		stay.wants = append(stay.wants, w)
	}
	return stay, nil, nil
}

// EnterEach is Enter for jobs one by one, in a transaction. Enter reserves room for the next job. End ends the stays of
// all jobs that had room; see [Stay.End].
func (r *Room) EnterEach(ctx context.Context, from Source) (enter func(job sluice.Insert) error, end func(jobs []sluice.Insert, receipts []sluice.Receipt)) {
	stays := make(map[sluice.ID]*Stay)
	enter = func(job sluice.Insert) error {
		stay, err := r.Enter(ctx, []sluice.Insert{job}, from)
		if stay != nil {
			stays[job.ID] = stay
		}
		return err
	}
	end = func(jobs []sluice.Insert, receipts []sluice.Receipt) {
		for i := range receipts {
			if stay := stays[jobs[i].ID]; stay != nil {
				stay.End(jobs[i:i+1], receipts[i:i+1])
				delete(stays, jobs[i].ID)
			}
		}
		for _, stay := range stays {
			stay.End(nil, nil)
		}
	}
	return enter, end
}

// wantsOf lists the limited places of jobs, tenants before their queues.
func wantsOf(jobs []sluice.Insert) []want {
	var wants, queues []want
	at := make(map[place]int)
	add := func(list *[]want, p place, limit int, in *sluice.Insert) {
		i, known := at[p]
		if !known {
			i = len(*list)
			at[p] = i
			*list = append(*list, want{place: p, limit: limit, shed: in.Shed, byTenant: in.ByTenant})
		}
		w := &(*list)[i]
		w.jobs++
		w.below = max(w.below, in.Priority)
	}
	for i := range jobs {
		in := &jobs[i]
		if in.TenantMaxWaiting > 0 && in.Tenant != "" {
			add(&wants, place{in.Queue, in.Tenant}, in.TenantMaxWaiting, in)
		}
		if in.MaxWaiting > 0 {
			add(&queues, place{in.Queue, ""}, in.MaxWaiting, in)
		}
	}
	return append(wants, queues...)
}

// take reserves the room that one place has for an enqueue, or returns why there is none.
func (r *Room) take(ctx context.Context, w want, from Source, last bool) (*pressure.FullError, error) {
	for decide := false; ; decide = true {
		r.mu.Lock()
		l, now := r.level(w.place), time.Now()
		need := l.waiting + l.flying + w.jobs - w.limit
		fresh := l.known && (now.Sub(l.at) < Every || l.resting(now, -need, w.limit))
		switch {
		case l.known && need <= 0 && (decide || fresh || l.under != nil):
			l.flying += w.jobs
			r.mu.Unlock()
			return nil, nil
		case l.known && need > 0 && (decide || l.resting(now, 0, w.limit)) || w.jobs > w.limit:
			return r.full(ctx, l, w, from, last) // it unlocks
		case l.under != nil && !from.InTx:
			under := l.under
			r.mu.Unlock()
			select {
			case <-under:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		default:
			if err := r.count(ctx, l, w, from); err != nil { // it unlocks
				return nil, err
			}
		}
	}
}

// level finds a place's level. The caller holds the mutex.
func (r *Room) level(p place) *level {
	if l := r.places[p]; l != nil {
		return l
	}
	if r.places == nil {
		r.places = make(map[place]*level)
	}
	if now := time.Now(); len(r.places) >= many && now.Sub(r.swept) > idle {
		r.swept = now
		maps.DeleteFunc(r.places, func(_ place, l *level) bool {
			return l.flying == 0 && l.under == nil && now.Sub(l.at) > idle
		})
	}
	l := &level{}
	r.places[p] = l
	return l
}

// count counts the waiting jobs of a place. The caller holds the mutex, which count unlocks.
func (r *Room) count(ctx context.Context, l *level, w want, from Source) error {
	under, changes, began := make(chan struct{}), l.changes, time.Now()
	mine := l.under == nil
	if mine {
		l.under = under
	}
	r.mu.Unlock()
	waiting, err := 0, context.Canceled
	defer func() { // even if the store panics
		r.mu.Lock()
		defer r.mu.Unlock()
		if mine {
			l.under = nil
			close(under)
		}
		if err == nil {
			l.known, l.waiting = true, max(waiting+l.changes-changes, 0)
			l.at, l.took = time.Now(), time.Since(began)
		}
	}()
	waiting, err = from.Waiting(ctx, w.queue, w.tenant, w.limit)
	return err
}

// full sheds jobs of a full place to make room, or returns the error. Before last it does no more than return the error.
// The caller holds the mutex, which full unlocks.
func (r *Room) full(ctx context.Context, l *level, w want, from Source, last bool) (*pressure.FullError, error) {
	need := l.waiting + l.flying + w.jobs - w.limit
	refusal := &pressure.FullError{Queue: w.queue, Tenant: w.tenant, Waiting: l.waiting + l.flying, Limit: w.limit, Jobs: w.jobs}
	if w.jobs <= w.limit {
		refusal.RetryAfter = max(Every, rest*l.took)
	}
	if !last {
		r.mu.Unlock()
		return refusal, nil
	}
	if !w.shed || refusal.RetryAfter == 0 {
		r.note(w.queue, pressure.Counts{Refused: w.jobs})
		r.mu.Unlock()
		return refusal, nil
	}
	l.flying += w.jobs
	l.change(-need) // at once, so that another caller does not shed for these jobs too
	r.mu.Unlock()
	done, err := from.Shed(ctx, Shedding{Queue: w.queue, Tenant: w.tenant, ByTenant: w.byTenant, Below: w.below, Jobs: need})
	r.mu.Lock()
	defer r.mu.Unlock()
	if !done || err != nil {
		l.flying -= w.jobs
		l.change(need)
		r.note(w.queue, pressure.Counts{Refused: w.jobs})
		return refusal, err
	}
	r.note(w.queue, pressure.Counts{Shed: need})
	if whole := r.places[place{w.queue, ""}]; w.tenant != "" && whole != nil {
		whole.change(-need)
	}
	return nil, nil
}

// note adds to the counts of a queue. The caller holds the mutex.
func (r *Room) note(queue string, more pressure.Counts) {
	if r.counts == nil {
		r.counts = make(map[string]pressure.Counts)
	}
	counts := r.counts[queue]
	counts.Refused += more.Refused
	counts.Shed += more.Shed
	r.counts[queue] = counts
}

// Counts returns what the store has refused and shed, by queue.
func (r *Room) Counts() map[string]pressure.Counts {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.counts)
}

// End ends an enqueue. The receipts say which of the jobs were stored; nil: none.
func (s *Stay) End(jobs []sluice.Insert, receipts []sluice.Receipt) {
	if s == nil {
		return
	}
	r := s.room
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, w := range s.wants {
		stored := 0
		for i, receipt := range receipts {
			in := &jobs[i]
			inPlace := in.Queue == w.queue && (w.tenant == "" || in.Tenant == w.tenant)
			if inPlace && !receipt.ID.IsZero() && !receipt.Duplicate && receipt.Replaced.IsZero() {
				stored++
			}
		}
		l := r.level(w.place)
		l.flying = max(l.flying-w.jobs, 0)
		l.change(stored)
	}
}
