package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/sluice-queue/sluice"
)

// signalView is a signal, as streams tell it. Without any field, some queue may have jobs.
type signalView struct {
	// Queue has jobs to claim. Cancelled is a claimed job that somebody cancelled, and Ended an awaited job that has ended.
	Queue     string    `json:"queue,omitempty"`
	Cancelled sluice.ID `json:"cancelled,omitzero"`
	Ended     sluice.ID `json:"ended,omitzero"`
}

// heed tells of a signal of the store.
func (c *collector) heed(ctx context.Context, s sluice.Signal) {
	if s.Hearing != "" {
		c.hear(ctx, s.Hearing)
	}
	job := s.Cancelled
	if !job.IsZero() {
		c.tellOf(ctx, streamEvent{topic: topicCancelled, data: fmt.Appendf(nil, `{"id":%q}`, job), job: job})
	} else {
		job = s.Ended
	}
	view := signalView{s.Queue, s.Cancelled, s.Ended}
	if s.Hearing != "" && view == (signalView{}) {
		return
	}
	data, _ := json.Marshal(view) // its fields can be written
	c.tellOf(ctx, streamEvent{topic: topicSignals, data: data, queue: s.Queue, job: job})
}

// hear notes how far the store hears from now on. What it did not hear before is missed by those who follow signals.
func (c *collector) hear(ctx context.Context, hearing sluice.Hearing) {
	c.tell(ctx, topicHearing, hearingData(hearing))
	c.mu.Lock()
	defer c.mu.Unlock()
	if ctx.Err() != nil {
		return
	}
	if c.hearing == "" {
		close(c.hears)
	}
	if c.hearing, hearing = hearing, c.hearing; c.hearing != sluice.HearsAll || hearing == sluice.HearsAll {
		return
	}
	for _, topic := range []string{topicCancelled, topicSignals} {
		if state := c.topics[topic]; state != nil {
			c.last++
			state.since = c.last
		}
	}
	for l := range c.listeners {
		if l.begun && (l.topics[topicCancelled] || l.topics[topicSignals]) {
			l.behind = true
			signal(l.woken)
		}
	}
}

// findOwners says whose the jobs of events are, when a listener with bounds needs to know: once for all of them.
func (c *collector) findOwners(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.asked:
		}
		for job := c.ownerless(); !job.IsZero() && ctx.Err() == nil; job = c.ownerless() {
			c.own(job, c.ownerOf(ctx, job))
		}
	}
}

// ownerless returns the job of the first event that has no owner yet, and that some listener with bounds has not looked at. Zero:
// there is none.
func (c *collector) ownerless() sluice.ID {
	c.mu.Lock()
	defer c.mu.Unlock()
	from := c.last
	for l := range c.listeners {
		if l.bounds != nil && l.begun {
			from = min(from, l.at)
		}
	}
	for _, e := range c.kept {
		if e.number > from && !e.job.IsZero() && e.owner == nil {
			return e.job
		}
	}
	return sluice.ID{}
}

// ownerOf asks the store whose a job is.
func (c *collector) ownerOf(ctx context.Context, id sluice.ID) *owner {
	ctx, stop := context.WithTimeout(ctx, claimTime)
	defer stop()
	job, err := c.store.Job(ctx, id) // one that is deleted concerns nobody: whoever held it learns so when it renews the lease
	return &owner{job.Queue, job.Tenant, err != nil && !errors.Is(err, sluice.ErrNotFound)}
}

// own notes whose a job is, and wakes the listeners who wait to know.
func (c *collector) own(job sluice.ID, o *owner) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, e := range c.kept {
		if e.job == job && e.owner == nil {
			known := *e // a stream may be reading the event
			known.owner = o
			c.kept[i] = &known
		}
	}
	for l := range c.listeners {
		if l.bounds != nil {
			signal(l.woken)
		}
	}
}

// hearingData says how far a listener may rely on signals.
func hearingData(hearing sluice.Hearing) []byte {
	if hearing != sluice.HearsAll {
		hearing = sluice.HearsLess
	}
	return fmt.Appendf(nil, `{"hearing":%q}`, hearing)
}
