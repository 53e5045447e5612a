package httpapi

import (
	"net/http"
	"sync"
	"time"
)

// crowd bounds the requests of each caller, so that no caller starves others.
type crowd struct {
	bounds Bounds

	mu      sync.Mutex
	callers map[string]*use
}

// use is what a caller uses now.
type use struct {
	running, waiting int
	tokens           float64 // requests that may begin now
	at               time.Time
}

// maxCallers is how many callers are remembered; idle ones are forgotten first.
const maxCallers = 10_000

// enter begins a request, or says why it must not begin. The caller must call leave.
func (c *crowd) enter(name string, waits bool, now time.Time) (leave func(), refused *Problem) {
	c.mu.Lock()
	defer c.mu.Unlock()
	u := c.of(name, now)
	if passed := now.Sub(u.at); passed > 0 { // a request that took its time before another may enter after it
		u.tokens = min(u.tokens+passed.Seconds()*float64(c.bounds.Rate), float64(c.bounds.Burst))
		u.at = now
	}
	if u.tokens < 1 {
		wait := time.Duration((1 - u.tokens) / float64(c.bounds.Rate) * float64(time.Second))
		return nil, problemOf(http.StatusTooManyRequests, "too_many_requests", "the caller sends too many requests", "send them later, and more jobs in one request").after(wait)
	}
	count, most := &u.running, c.bounds.Concurrency
	if waits {
		count, most = &u.waiting, c.bounds.Waiting
	}
	if *count >= most {
		return nil, problemOf(http.StatusTooManyRequests, "too_many_at_once", "too many requests of the caller are under way", "wait for the answers first").after(time.Second)
	}
	u.tokens--
	*count++
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		*count--
	}, nil
}

// of returns the use of a caller.
func (c *crowd) of(name string, now time.Time) *use {
	if u := c.callers[name]; u != nil {
		return u
	}
	if c.callers == nil || len(c.callers) >= maxCallers {
		kept := make(map[string]*use)
		for name, u := range c.callers {
			if u.running+u.waiting > 0 {
				kept[name] = u
			}
		}
		c.callers = kept
	}
	u := &use{tokens: float64(c.bounds.Burst), at: now}
	c.callers[name] = u
	return u
}
