package postgres

import (
	"bytes"
	"slices"
	"sync"
	"time"

	"github.com/sluice-queue/sluice"
)

// priorities in the order in which they are served.
var priorities = []int16{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}

const (
	// markSlack keeps the marks this much behind the store's clock. A job that is enqueued while
	// a claim runs may become visible behind jobs that were claimed already.
	markSlack = 100 * time.Millisecond
	// walkShare bounds what walking from the very front may cost: a claim does so again when this
	// many times what it costs has passed since the last such walk, so that it takes at most a
	// twentieth of the time, however many dead index entries an old transaction keeps.
	walkShare = 20
	// maxMarked is of how many queues or lines marks are remembered. Without them a claim walks from the
	// front, which costs little where few jobs were claimed.
	maxMarked = 4096
	// cheapWalk is what a walk from the front may cost to be made at once when this process itself
	// put a job behind the marks.
	cheapWalk = 20 * time.Millisecond
)

// marks remembers, for each queue and priority, up to where the claim index was emptied by claims of
// this process. Claims go on from there instead of stepping over dead entries. Every now and then
// a claim walks from the front, and finds what came in behind a mark: jobs that were released,
// recovered or enqueued with a due_at in the past.
type marks struct {
	mu     sync.Mutex
	queues map[string]*queueMarks
}

type queueMarks struct {
	place     [10]place
	walkedAt  time.Time                // when a claim last walked from the front
	walks     [keptWalks]time.Duration // how long the last of these walks took, the latest first
	walked    int                      // how many of them there were
	peekedAt  time.Time                // when a look last walked from the front
	disturbed bool                     // this process put a job behind the marks since
	usual     time.Duration            // how long walks from the marks take: what any statement takes here
}

// keptWalks is of how many walks from the front it is remembered how long they took. The shortest counts: one that was
// held up by something else says nothing of what lies in its way.
const keptWalks = 3

// cost is what a walk from the front takes beyond one from the marks. On a slow network, or beside a busy server, both
// take long, and the difference is what dead index entries cost.
func (q *queueMarks) cost() time.Duration {
	return max(q.shortest()-q.usual, 0)
}

// shortest is how long the shortest of the walks from the front took.
func (q *queueMarks) shortest() time.Duration {
	if q.walked == 0 {
		return 0
	}
	return slices.Min(q.walks[:min(q.walked, keptWalks)])
}

// cheap reports whether a walk from the front may be made at once, because a job is known to lie behind the marks. The
// first walks are: they also take what a new connection and a new statement do.
func (q *queueMarks) cheap() bool {
	return q.walked < keptWalks || q.cost() <= cheapWalk || q.shortest() <= 2*q.usual
}

// place is a position in the claim index.
type place struct {
	dueAt time.Time
	id    sluice.ID
}

func (p place) before(q place) bool {
	if !p.dueAt.Equal(q.dueAt) {
		return p.dueAt.Before(q.dueAt)
	}
	return bytes.Compare(p.id[:], q.id[:]) < 0
}

// front is before every position: PostgreSQL's times begin where Go's do not reach.
var front = place{dueAt: time.Date(-4000, 1, 1, 0, 0, 0, 0, time.UTC)}

// start says where a claim begins in each priority, and how long until one may walk from the very
// front; 0: this one does.
func (m *marks) start(queue string) (from [10]place, untilFront time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	q := m.queue(queue)
	if wait := walkShare*q.cost() - time.Since(q.walkedAt); wait > 0 && (!q.disturbed || !q.cheap()) {
		return q.place, wait
	}
	q.disturbed = false // what is behind the marks is found by this walk
	for i := range from {
		from[i] = front
	}
	return from, 0
}

// walked notes how long a claim took, from the front or from the marks.
func (m *marks) walked(queue string, took time.Duration, fromFront bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	q := m.queue(queue)
	if !fromFront {
		if q.usual == 0 {
			q.usual = took
		}
		q.usual += (took - q.usual) / 4
		return
	}
	copy(q.walks[1:], q.walks[:])
	q.walks[0], q.walkedAt = took, time.Now()
	q.walked++
}

// aheadOf names the marks of claims that take jobs of a queue before they are due. Those lie beyond now, and
// would hide from other claims what falls due in between.
func aheadOf(queue string) string { return queue + " ahead" }

// disturb notes that this process put a job behind the marks of a queue: the next claim walks from
// the front, as soon as that is known to be cheap.
func (m *marks) disturb(queue string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.queue(queue)
	for _, key := range []string{queue, aheadOf(queue)} {
		if q := m.queues[key]; q != nil {
			q.disturbed = true
		}
	}
}

// advance notes that the index is emptied up to a claimed job, or up to a little before now. For
// claims with a lead, now is that much later.
func (m *marks) advance(queue string, priority int, claimed place, now time.Time) {
	if edge := (place{dueAt: now.Add(-markSlack)}); edge.before(claimed) {
		claimed = edge
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	q := m.queue(queue)
	if q.place[priority-1].before(claimed) {
		q.place[priority-1] = claimed
	}
}

func (m *marks) queue(name string) *queueMarks {
	q := m.queues[name]
	if q == nil {
		for forgotten := range m.queues {
			if len(m.queues) < maxMarked {
				break
			}
			delete(m.queues, forgotten)
		}
		q = &queueMarks{}
		for i := range q.place {
			q.place[i] = front
		}
		if m.queues == nil {
			m.queues = make(map[string]*queueMarks)
		}
		m.queues[name] = q
	}
	return q
}

// arguments gives the marks as the claim statement takes them.
func arguments(from [10]place) (dueAts []time.Time, ids uuidArray) {
	dueAts, ids = make([]time.Time, len(from)), make(uuidArray, len(from))
	for i, p := range from {
		dueAts[i], ids[i] = p.dueAt, p.id
	}
	return dueAts, ids
}
