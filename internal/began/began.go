// Package began counts when claimed jobs begin, so that their holder can tell a store that keeps a rate.
package began

import (
	"sync"
	"time"

	"github.com/sluice-queue/sluice"
)

// Tally is what a holder has to tell of its claims. The zero value is one with nothing to tell.
type Tally struct {
	// Now is what the time is. Default: time.Now.
	Now func() time.Time

	mu     sync.Mutex
	claims map[sluice.Token]*claim
}

// stall is how long it takes at most to return, unless the process stood still meanwhile.
const stall = 50 * time.Microsecond

// claim is what became of the jobs of one claim.
type claim struct {
	queue string
	jobs  int
	begun int
	gone  int
	last  time.Time // when the last of them began, or will
	since time.Time // since when there is something to tell; zero: there is nothing
}

// Claimed notes a claim that a store wants to be told of.
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

// Begins notes that a job of a claim begins when this returns. A process that is stopped, or gets no processor, between that
// and what it noted notes the later instant.
func (t *Tally) Begins(token sluice.Token) {
	at := t.began(token, 1, t.now)
	for !at.IsZero() && t.now().Sub(at) > stall {
		at = t.began(token, 0, t.now)
	}
}

// Began notes that a job of a claim began at an instant, or will.
func (t *Tally) Began(token sluice.Token, at time.Time) {
	t.began(token, 1, func() time.Time { return at })
}

// began notes when the last jobs of a claim began. It looks at the clock once nothing is left to wait for; zero: nobody asks
// for the claim.
func (t *Tally) began(token sluice.Token, jobs int, clock func() time.Time) (at time.Time) {
	t.note(token, func(c *claim) {
		c.begun += jobs
		if at = clock(); at.After(c.last) {
			c.last = at
		}
	})
	return at
}

// Gone notes that a job of a claim will never begin.
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

// Tell gives what is new of a queue's claims.
func (t *Tally) Tell(queue string) []sluice.Begun {
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

// Heard notes that the store knows what Tell gave.
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

// Queues lists those of which there has been something to tell for a while.
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

// Waits says how long until there has been something to tell of a queue for a while; negative: there is nothing.
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
