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
	// lowWaterSlack is how far the marks stay behind the store's clock. A job that is enqueued during a claim may
	// become visible behind jobs that were already claimed.
	lowWaterSlack = 100 * time.Millisecond
	// walkShare limits the cost of walks from the front. A claim walks from the front only when walkShare times the
	// cost of such a walk has passed since the last one. So these walks take at most a twentieth of the time, even
	// if an old transaction keeps many dead index entries. The first keptWalks walks take at most half of the time.
	walkShare = 20
	// maxLowWater is how many queues or tenant queues have marks. Without marks, a claim walks from the front, which is cheap
	// where few jobs were claimed.
	maxLowWater = 4096
	// cheapWalk is the cost up to which a claim walks from the front at once after this process put a job behind
	// the marks.
	cheapWalk = 20 * time.Millisecond
	// fullWalk is how long after a walk from the front the next one may begin while claims are full. The durations of
	// such claims say more of their jobs than of the dead entries. A job behind the marks waits that much longer.
	fullWalk = 100 * time.Millisecond
)

// lowWater remembers, for each queue and priority, the low-water mark in the claim index up to which claims of this
// process have emptied it. Claims begin there instead of stepping over dead entries. Now and then a claim walks
// from the front, and finds jobs that came behind a mark: released, recovered or enqueued late.
type lowWater struct {
	mu     sync.Mutex
	queues map[string]*queueLowWater
}

type queueLowWater struct {
	place     [10]place
	walkedAt  time.Time                // when a claim last walked from the front
	walks     [keptWalks]time.Duration // durations of the last walks from the front, latest first
	walked    int                      // how many walks from the front there were
	peekedAt  time.Time                // when a look last walked from the front
	peeked    int                      // how many looks from the front there were
	disturbed bool                     // this process has put a job behind the marks since
	full      bool                     // the last claim got as many jobs as it asked for
	usual     time.Duration            // duration of walks from the marks, as of any statement here
}

// keptWalks is how many walks from the front have their durations kept. The shortest counts: a walk that something
// else held up says nothing about dead entries.
const keptWalks = 3

// cost returns how much longer a walk from the front takes than one from the marks. A slow network or a busy server
// delays both, so the difference is the cost of dead index entries.
func (q *queueLowWater) cost() time.Duration {
	return max(q.shortest()-q.usual, 0)
}

// frontEvery returns the least time between two walks from the front.
func (q *queueLowWater) frontEvery() time.Duration {
	if q.full {
		return max(q.rest(q.walked), fullWalk)
	}
	return q.rest(q.walked)
}

// lookEvery returns the least time between two looks from the front.
func (q *queueLowWater) lookEvery() time.Duration { return q.rest(max(q.walked, q.peeked)) }

// rest returns the least time from the last of some walks from the front to the next one. After few walks the rest is
// as long as a walk: a new connection or a busy machine may have made them slow, rather than dead entries.
func (q *queueLowWater) rest(walks int) time.Duration {
	if walks < keptWalks {
		return q.cost()
	}
	return walkShare * q.cost()
}

// shortest returns the duration of the shortest kept walk from the front.
func (q *queueLowWater) shortest() time.Duration {
	if q.walked == 0 {
		return 0
	}
	return slices.Min(q.walks[:min(q.walked, keptWalks)])
}

// cheap reports whether a claim may walk from the front at once, because a job is known to lie behind the marks.
// The first walks always may: they include the cost of a new connection and a new statement.
func (q *queueLowWater) cheap() bool {
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

// front is before every position: PostgreSQL's times begin before Go's.
var front = place{dueAt: time.Date(-4000, 1, 1, 0, 0, 0, 0, time.UTC)}

// start returns where a claim begins in each priority, and how long until a claim may walk from the front. 0: this
// one does.
func (m *lowWater) start(queue string) (from [10]place, untilFront time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	q := m.queue(queue)
	if wait := q.frontEvery() - time.Since(q.walkedAt); wait > 0 && (!q.disturbed || !q.cheap()) {
		return q.place, wait
	}
	q.disturbed = false // this walk finds the jobs behind the marks
	for i := range from {
		from[i] = front
	}
	return from, 0
}

// walked records how long a claim took, from the front or from the marks.
func (m *lowWater) walked(queue string, took time.Duration, fromFront bool) {
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

// filled records whether a claim got as many jobs as it asked for.
func (m *lowWater) filled(queue string, full bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.queue(queue).full = full
}

// aheadOf names the marks of claims that take a queue's jobs before they are due. These marks lie in the future,
// and would hide jobs that fall due in between from other claims.
func aheadOf(queue string) string { return queue + " ahead" }

// disturb records that this process put a job behind the marks of a queue. The next claim walks from the front if
// such walks are cheap.
func (m *lowWater) disturb(queue string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.queue(queue)
	for _, key := range []string{queue, aheadOf(queue)} {
		if q := m.queues[key]; q != nil {
			q.disturbed = true
		}
	}
}

// advance moves a mark up to a claimed job, or up to lowWaterSlack before now. For claims ahead of the due time, the
// caller adds claim_ahead to now.
func (m *lowWater) advance(queue string, priority int, claimed place, now time.Time) {
	if edge := (place{dueAt: now.Add(-lowWaterSlack)}); edge.before(claimed) {
		claimed = edge
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	q := m.queue(queue)
	if q.place[priority-1].before(claimed) {
		q.place[priority-1] = claimed
	}
}

func (m *lowWater) queue(name string) *queueLowWater {
	q := m.queues[name]
	if q == nil {
		for forgotten := range m.queues {
			if len(m.queues) < maxLowWater {
				break
			}
			delete(m.queues, forgotten)
		}
		q = &queueLowWater{}
		for i := range q.place {
			q.place[i] = front
		}
		if m.queues == nil {
			m.queues = make(map[string]*queueLowWater)
		}
		m.queues[name] = q
	}
	return q
}

// arguments returns the marks as the claim statement takes them.
func arguments(from [10]place) (dueAts []time.Time, ids uuidArray) {
	dueAts, ids = make([]time.Time, len(from)), make(uuidArray, len(from))
	for i, p := range from {
		dueAts[i], ids[i] = p.dueAt, p.id
	}
	return dueAts, ids
}
