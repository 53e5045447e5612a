// Package began counts when claimed jobs begin. A store that keeps a rate counts a claimed job
// until its holder reports the start. Workers and dispatchers report starts with their next claim.
//
// Begin with [Tally]: call Claimed after each claim, Begins when a job starts and Gone when it
// never will. Report returns the news for the store, and Heard confirms them.
//
// Read next: package internal/flow, whose Window is the store's side of the count.
package began

import (
	"sync"
	"time"

	"github.com/sluice-queue/sluice"
)

// Tally counts the begun jobs of a holder's claims. The zero value is an empty tally.
type Tally struct {
	// Now returns the time. Default: time.Now.
	Now func() time.Time

	mu     sync.Mutex
	claims map[sluice.Token]*claim
}

// stall is the longest time in which Begins returns, unless the process was suspended meanwhile.
const stall = 50 * time.Microsecond

// claim is the state of the jobs of one claim.
type claim struct {
	queue string
	jobs  int
	begun int
	gone  int
	last  time.Time // when its last job began, or will begin
	since time.Time // since when there are news to report; zero: there are none
}

// Claimed records a claim. The store wants to know when its jobs begin.
func (t *Tally) Claimed(queue string, token sluice.Token, jobs int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.claims == nil {
		t.claims = make(map[sluice.Token]*claim)
	}
	t.claims[token] = &claim{queue: queue, jobs: jobs}
}

func (t *Tally) now() time.Time {
	if t.Now == nil {
		return time.Now()
	}
	return t.Now()
}

// Begins records that a job of a claim begins when Begins returns. If the process was suspended, or
// got no processor, in between, Begins records the later instant.
func (t *Tally) Begins(token sluice.Token) {
	at := t.began(token, 1, t.now)
	for !at.IsZero() && t.now().Sub(at) > stall {
		at = t.began(token, 0, t.now)
	}
}

// Began records that a job of a claim began, or will begin, at an instant.
func (t *Tally) Began(token sluice.Token, at time.Time) {
	t.began(token, 1, func() time.Time { return at })
}

// began records when the last job of a claim began. The clock is read under the lock, so no wait
// follows the reading. Zero: the store does not want to know of the claim.
func (t *Tally) began(token sluice.Token, jobs int, clock func() time.Time) (at time.Time) {
	t.note(token, func(c *claim) {
		c.begun += jobs
		if at = clock(); at.After(c.last) {
			c.last = at
		}
	})
	return at
}

// Gone records that this many jobs of a claim will never begin.
func (t *Tally) Gone(token sluice.Token, jobs int) { t.note(token, func(c *claim) { c.gone += jobs }) }

func (t *Tally) note(token sluice.Token, what func(*claim)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.claims[token]
	if c == nil {
		return
	}
	what(c)
	if c.since.IsZero() {
		c.since = t.now()
	}
}

// Report returns the news of a queue's claims.
func (t *Tally) Report(queue string) []sluice.Begun {
	t.mu.Lock()
	defer t.mu.Unlock()
	var news []sluice.Begun
	for token, c := range t.claims {
		if c.queue != queue || c.since.IsZero() {
			continue
		}
		b := sluice.Begun{Token: token, Jobs: c.begun, Gone: c.gone}
		if c.begun > 0 {
			b.Ago = t.now().Sub(c.last)
		}
		news = append(news, b)
	}
	return news
}

// Heard records that the store knows the news that Report returned.
func (t *Tally) Heard(told []sluice.Begun) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, b := range told {
		c := t.claims[b.Token]
		switch {
		case c == nil:
		case b.Jobs+b.Gone >= c.jobs:
			delete(t.claims, b.Token)
		case b.Jobs == c.begun && b.Gone == c.gone:
			c.since = time.Time{}
		default:
			c.since = t.now()
		}
	}
}

// Queues lists the queues whose news are at least this old.
func (t *Tally) Queues(since time.Duration) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var queues []string
	seen := make(map[string]bool)
	for _, c := range t.claims {
		if !c.since.IsZero() && !seen[c.queue] && t.now().Sub(c.since) >= since {
			seen[c.queue] = true
			queues = append(queues, c.queue)
		}
	}
	return queues
}

// Waits returns how long until the news of a queue are as old as while. Negative: there are no
// news.
func (t *Tally) Waits(queue string, while time.Duration) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	wait := time.Duration(-1)
	for _, c := range t.claims {
		if c.queue != queue || c.since.IsZero() {
			continue
		}
		if left := max(while-t.now().Sub(c.since), 0); wait < 0 || left < wait {
			wait = left
		}
	}
	return wait
}
