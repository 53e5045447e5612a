// Package began counts when claimed jobs begin, so that their holder can tell a store that keeps a rate.
package began

import (
	"sync"
	"time"

	"github.com/sluice-queue/sluice"
)

// Tally is what a holder has to tell of its claims. The zero value is one with nothing to tell.
type Tally struct {
	mu     sync.Mutex
	claims map[sluice.Token]*claim
}

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

// Began notes that a job of a claim begins when this returns, or that it will at an instant to come.
func (t *Tally) Began(token sluice.Token, at time.Time) {
	t.note(token, func(c *claim) {
		c.begun++
		if at.IsZero() {
			at = time.Now() // not before the lock was free
		}
		if at.After(c.last) {
			c.last = at
		}
	})
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
		c.since = time.Now()
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
			b.Ago = time.Since(c.last)
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
			c.since = time.Now()
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
		if !c.since.IsZero() && !seen[c.queue] && time.Since(c.since) >= since {
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
		if left := max(while-time.Since(c.since), 0); wait < 0 || left < wait {
			wait = left
		}
	}
	return wait
}
