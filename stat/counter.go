package stat

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sluice-queue/sluice"
)

// Unknown is an unknown time in [Counter.Moved].
const Unknown time.Duration = -1

// Counter counts the moves of one process, by slot, queue and tenant, for AddStats of [Store]. It does not call the
// store. The zero value is ready. Many goroutines may share a Counter, but nobody may copy it.
//
// A count costs less than 0.1 µs per job. It allocates nothing once a slot has seen its queues, tenants and times.
type Counter struct {
	mu     sync.Mutex
	begun  time.Time     // by the clock of this machine, when the Counter last aligned its slots
	until  time.Duration // how long the present slot lasts after begun
	bucket time.Time     // when the present slot begins, by the clock of the caller of Take
	taken  bool
	queues map[string]*queueTally
	last   *queueTally // the queue of the last move: the next move is often of the same queue
	over   []Stat
}

// queueTally has the counts of a queue in the present slot.
type queueTally struct {
	name    string
	whole   tally
	tenants map[string]*tally
	spare   []*tally
}

// tally has the counts of a queue, or of one tenant in the queue.
type tally struct {
	counts           Counts
	wait, run, total Histogram
}

// heldTenants is how many tenants of a queue the Counter counts at once. If there are more, it forgets the half
// that moved the least. A busy tenant soon counts again, and has lost less than it has.
const heldTenants = 256

// Moved counts n jobs of a queue that made a move. Wait is from due to claim, for claims. Run is from claim to end
// and total from due to end, for ends and failures. The times are the same for all n jobs; [Unknown] if a time is
// unknown or meaningless.
//
// A bury with a known run time is a failed attempt too. A lost job, or a job that a person buried, has no run time.
// An empty tenant is none. Moved ignores jobs without a queue.
func (c *Counter) Moved(queue, tenant string, event sluice.Event, n int, wait, run, total time.Duration) {
	c.Batch(func(moved Moved) { moved(queue, tenant, event, n, wait, run, total) })
}

// Moved counts a move, with the arguments of [Counter.Moved].
type Moved func(queue, tenant string, event sluice.Event, n int, wait, run, total time.Duration)

// Batch counts several moves at one instant, for a third of the cost of single counts. The function count must not
// use the Counter.
func (c *Counter) Batch(count func(moved Moved)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now()
	count(c.moved)
}

func (c *Counter) moved(queue, tenant string, event sluice.Event, n int, wait, run, total time.Duration) {
	if queue == "" {
		return
	}
	q := c.queue(queue)
	q.whole.moved(event, int64(n), wait, run, total)
	if tenant != "" {
		q.tenant(tenant).moved(event, int64(n), wait, run, total)
	}
}

// StartFailed counts runs that an engine did not start.
func (c *Counter) StartFailed(queue, tenant string, n int) {
	if queue == "" {
		return
	}
	c.mu.Lock()
	c.now()
	q := c.queue(queue)
	q.whole.counts.StartFailed += int64(n)
	if tenant != "" {
		q.tenant(tenant).counts.StartFailed += int64(n)
	}
	c.mu.Unlock()
}

// CountStartFailed counts a run that an engine did not start, in a store or a store that it decorates. No verb of
// the store shows such a run, so dispatchers call it. A store without statistics ignores it.
func CountStartFailed(store sluice.Store, queue, tenant string) {
	if counts, is := sluice.StoreAs[interface{ CountStartFailed(queue, tenant string) }](store); is {
		counts.CountStartFailed(queue, tenant)
	}
}

// Take returns the slots that are over at an instant, and forgets them. The instant is by the store's clock. From
// then on, slots begin by that clock, even if the clock of this machine is wrong. The Counter never counts in a
// slot that it has returned, or in an earlier one, unless that clock was set back by more than a minute.
func (c *Counter) Take(now time.Time) []Stat { return c.take(now, false) }

// TakeAll returns and ends the present slot too, for a process that ends.
func (c *Counter) TakeAll(now time.Time) []Stat { return c.take(now, true) }

// take is Take, or TakeAll if all is true.
func (c *Counter) take(now time.Time, all bool) []Stat {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.turn()
	here := now.UTC().Truncate(Fine)
	if !c.taken || c.bucket.Sub(here) > Minute {
		c.shift(here.Sub(c.bucket))
		c.taken = true
	}
	if here.After(c.bucket) {
		c.close(here)
	}
	if all {
		c.close(c.bucket.Add(Fine))
	}
	c.begun, c.until = time.Now(), c.bucket.Add(Fine).Sub(now)
	over := c.over
	c.over = nil
	return over
}

// Empty reports whether there is nothing to take.
func (c *Counter) Empty() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, q := range c.queues {
		if q.whole.counts != (Counts{}) {
			return false
		}
	}
	return len(c.over) == 0
}

// shift moves counts to their slots: those from before the first known time, or by a clock that was set back since.
func (c *Counter) shift(by time.Duration) {
	for i := range c.over {
		c.over[i].At = c.over[i].At.Add(by)
	}
	c.bucket = c.bucket.Add(by)
}

// turn begins the next slot if the present slot is over.
func (c *Counter) turn() {
	if c.begun.IsZero() {
		c.begun = time.Now()
		c.bucket = c.begun.UTC().Truncate(Fine)
		c.until = c.bucket.Add(Fine).Sub(c.begun)
		return
	}
	since := time.Since(c.begun)
	if since < c.until {
		return
	}
	buckets := 1 + (since-c.until)/Fine
	c.close(c.bucket.Add(buckets * Fine))
	c.until += buckets * Fine
}

// close ends the present slot and begins another.
func (c *Counter) close(next time.Time) {
	for name, q := range c.queues {
		if q.whole.counts == (Counts{}) {
			delete(c.queues, name) // the queue rests
			continue
		}
		c.over = q.take(c.over, c.bucket)
	}
	c.last, c.bucket = nil, next
}

// now begins the next slot if the present slot is over.
func (c *Counter) now() {
	if c.begun.IsZero() || time.Since(c.begun) >= c.until {
		c.turn()
	}
}

// queue returns the counts of a queue in the present slot.
func (c *Counter) queue(name string) *queueTally {
	if c.last != nil && c.last.name == name {
		return c.last
	}
	q := c.queues[name]
	if q == nil {
		if c.queues == nil {
			c.queues = make(map[string]*queueTally)
		}
		name = strings.Clone(name) // it may be a part of a large text
		q = &queueTally{name: name}
		c.queues[name] = q
	}
	c.last = q
	return q
}

// tenant returns the counts of a tenant in the present slot.
func (q *queueTally) tenant(name string) *tally {
	if t := q.tenants[name]; t != nil {
		return t
	}
	if q.tenants == nil {
		q.tenants = make(map[string]*tally)
	}
	if len(q.tenants) >= heldTenants {
		for _, small := range q.ranked()[heldTenants/2:] {
			q.free(small)
		}
	}
	t := &tally{}
	if last := len(q.spare) - 1; last >= 0 {
		t, q.spare = q.spare[last], q.spare[:last]
	}
	q.tenants[strings.Clone(name)] = t
	return t
}

// ranked returns the tenants by jobs moved, the most first.
func (q *queueTally) ranked() []string {
	names := make([]string, 0, len(q.tenants))
	for name := range q.tenants {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(q.tenants[b].counts.Sum(), q.tenants[a].counts.Sum()), strings.Compare(a, b))
	})
	return names
}

func (q *queueTally) free(tenant string) {
	t := q.tenants[tenant]
	delete(q.tenants, tenant)
	t.empty()
	q.spare = append(q.spare, t)
}

// take appends the counts of the queue and of its largest tenants, and resets them.
func (q *queueTally) take(stats []Stat, at time.Time) []Stat {
	stats = append(stats, q.whole.stat(q.name, "", at))
	q.whole.empty()
	ranked := q.ranked()
	for _, tenant := range ranked[:min(len(ranked), MaxTenants)] {
		stats = append(stats, q.tenants[tenant].stat(q.name, tenant, at))
	}
	for _, tenant := range ranked {
		q.free(tenant)
	}
	return stats
}

func (t *tally) stat(queue, tenant string, at time.Time) Stat {
	return Stat{
		Queue: queue, Tenant: tenant, At: at, Every: Fine, Counts: t.counts,
		Wait: t.wait.clone(), Run: t.run.clone(), Total: t.total.clone(),
	}
}

func (t *tally) empty() {
	t.counts = Counts{}
	t.wait.empty()
	t.run.empty()
	t.total.empty()
}

func (t *tally) moved(event sluice.Event, n int64, wait, run, total time.Duration) {
	c := &t.counts
	switch event {
	case sluice.EventEnqueue:
		c.Enqueued += n
	case sluice.EventRequeue:
		c.Requeued += n
	case sluice.EventClaim:
		c.Claimed += n
		add(&t.wait, wait, n)
	case sluice.EventDispatch:
		c.Dispatched += n
	case sluice.EventComplete:
		c.Completed += n
		add(&t.run, run, n)
		add(&t.total, total, n)
	case sluice.EventRetry:
		c.Failed += n
	case sluice.EventBury:
		c.Dead += n
		if run >= 0 {
			c.Failed += n
		}
	case sluice.EventUndo:
		c.Dead += n
	case sluice.EventRelease:
		c.Released += n
	case sluice.EventRecover:
		c.Recovered += n
	case sluice.EventCancel:
		c.Cancelled += n
	case sluice.EventDoubt:
		c.Uncertain += n
	}
}

func add(h *Histogram, d time.Duration, n int64) {
	if d >= 0 {
		h.add(bucketOf(d), n)
	}
}
