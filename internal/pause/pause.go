// Package pause keeps jobs that were claimed from beginning once their queue or their tenant is paused.
package pause

import (
	"context"
	"fmt"
	"time"

	"github.com/sluice-queue/sluice"
)

const (
	// claimProves is for how long after it was asked for a claim shows that nothing is paused: no start begins later than a
	// second after a pause.
	claimProves = 800 * time.Millisecond
	// readProves is for how long what was read counts. The answer may have taken as long again.
	readProves = 400 * time.Millisecond
	// queuesKept is for how long a queue of which no job begins is still read with the others.
	queuesKept = 5 * time.Second
	// maxTenants bounds how many tenants of a queue are remembered to be looked at together.
	maxTenants = 1000
)

// Looker looks whether queues and tenants are paused. It may be used by many at once.
type Looker struct {
	store sluice.Store

	turn   chan struct{} // one at a time looks at what follows, also while it reads
	readAt time.Time
	queues map[string]*queue // those of which jobs began lately
}

// queue is what is known of a queue.
type queue struct {
	sluice.Queue
	known   bool            // else it was not read yet
	askedAt time.Time       // when a job of it was last to begin
	readAt  time.Time       // when its tenants were read
	tenants map[string]bool // whether each that was asked for is paused
}

// NewLooker makes a Looker. It reads nothing yet.
func NewLooker(store sluice.Store) *Looker {
	return &Looker{store: store, turn: make(chan struct{}, 1), queues: make(map[string]*queue)}
}

// Since is how long ago an instant was, by the clock that shows more: one stands still while the machine sleeps, the other
// can be set.
func Since(at time.Time) time.Duration {
	now := time.Now()
	return max(now.Sub(at), now.Round(0).Sub(at.Round(0)))
}

// Why says why a job that was claimed must not begin now; empty: it may. Asked is when its claim was asked for. After an
// error it is not known.
func (l *Looker) Why(ctx context.Context, c *sluice.Claim, asked time.Time) (string, error) {
	if Since(asked) < claimProves {
		return "", nil
	}
	select {
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
	case <-ctx.Done():
		return "", fmt.Errorf("look whether queues are paused: %w", ctx.Err())
	}
	q, err := l.queue(ctx, c.Queue)
	if err != nil {
		return "", err
	}
	if q.Settings.PausedAt(q.Now) {
		return "its queue was paused before it began", nil
	}
	if c.Tenant == "" {
		return "", nil
	}
	paused, known := q.tenants[c.Tenant]
	if !known || Since(q.readAt) >= readProves {
		if paused, err = l.tenant(ctx, q, c.Tenant); err != nil {
			return "", err
		}
	}
	if paused {
		return "its tenant was paused before it began", nil
	}
	return "", nil
}

// queue is a queue as it was stored just now. One that is gone is not paused.
func (l *Looker) queue(ctx context.Context, name string) (*queue, error) {
	q := l.queues[name]
	if q == nil {
		q = &queue{tenants: make(map[string]bool)}
		l.queues[name] = q
	}
	q.askedAt = time.Now()
	if q.known && Since(l.readAt) < readProves {
		return q, nil
	}
	if err := l.read(ctx); err != nil {
		q.known = false
		return nil, fmt.Errorf("look whether queues are paused: %w", err)
	}
	return q, nil
}

// read reads the queues that were asked for lately, and forgets the others.
func (l *Looker) read(ctx context.Context) error {
	var names []string
	for name, q := range l.queues {
		if Since(q.askedAt) > queuesKept {
			delete(l.queues, name)
			continue
		}
		names = append(names, name)
	}
	found, err := l.store.Queues(ctx, sluice.QueueFilter{Names: names})
	if err != nil {
		return err
	}
	for _, name := range names {
		l.queues[name].Queue, l.queues[name].known = sluice.Queue{Name: name, Settings: sluice.DefaultSettings()}, true
	}
	for _, stored := range found {
		l.queues[stored.Name].Queue = stored
	}
	l.readAt = time.Now()
	return nil
}

// tenant reports whether a tenant is paused. It looks at those with it that were asked for lately.
func (l *Looker) tenant(ctx context.Context, q *queue, tenant string) (bool, error) {
	if len(q.tenants) >= maxTenants {
		clear(q.tenants)
	}
	q.tenants[tenant] = false
	names := make([]string, 0, len(q.tenants))
	for name := range q.tenants {
		names = append(names, name)
	}
	terms, err := l.store.Terms(ctx, q.Queue, names, q.Now)
	if err != nil {
		delete(q.tenants, tenant)
		return false, fmt.Errorf("look whether tenants are paused: %w", err)
	}
	for name := range q.tenants {
		q.tenants[name] = terms[name].Paused && (terms[name].PausedUntil.IsZero() || terms[name].PausedUntil.After(q.Now))
	}
	q.readAt = time.Now()
	return q.tenants[tenant], nil
}
