// Package pause keeps claimed jobs from starting after their queue or tenant was paused. A claim
// may have been made, or answered, before the pause.
//
// Begin with [Looker]: workers and dispatchers ask its method Why before they start a job. The
// Looker asks the store only if the claim is older than 0.8 s, and for many jobs together.
//
// Read next: packages worker and dispatcher, which hand such jobs back.
package pause

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/tenancy"
)

const (
	// claimProves is how long, after the request, a claim proves that nothing is paused. No job
	// starts later than 1 s after a pause.
	claimProves = 800 * time.Millisecond
	// readProves is how long a read counts. The answer may have taken as long again.
	readProves = 400 * time.Millisecond
	// queuesKept is how long a queue without starting jobs is still read with the others.
	queuesKept = 5 * time.Second
	// maxTenants is how many tenants of a queue are remembered, to be read together.
	maxTenants = 1000
)

// Looker finds out whether queues and tenants are paused. Many goroutines may use it.
type Watcher struct {
	store sluice.Store

	turn   chan struct{} // a lock for the following, held also while reading
	readAt time.Time
	queues map[string]*queue // queues with recent starts of jobs
}

// queue is the known state of a queue.
type queue struct {
	sluice.Queue
	known   bool            // false: not read yet
	askedAt time.Time       // when a job of it was last to start
	readAt  time.Time       // when its tenants were read
	tenants map[string]bool // by tenant asked for: whether it is paused
}

// NewWatcher makes a Looker. NewWatcher reads nothing.
func NewWatcher(store sluice.Store) *Watcher {
	return &Watcher{store: store, turn: make(chan struct{}, 1), queues: make(map[string]*queue)}
}

// Since returns how long ago an instant was, by the clock that shows more. One clock stops while
// the machine sleeps, the other can be set.
func Since(at time.Time) time.Duration {
	now := time.Now()
	return max(now.Sub(at), now.Round(0).Sub(at.Round(0)))
}

// Why returns the reason why a claimed job must not start now. Empty: the job may start. Asked is
// when its claim was requested. If Why returns an error, the answer is unknown.
func (l *Watcher) Why(ctx context.Context, c *sluice.Claim, asked time.Time) (string, error) {
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

// queue returns a queue as it was just stored. A deleted queue is not paused.
func (l *Watcher) queue(ctx context.Context, name string) (*queue, error) {
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

// read reads the queues with recent starts, and drops the others.
func (l *Watcher) read(ctx context.Context) error {
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

// tenant reports whether a tenant is paused, and reads all recently used tenants together.
func (l *Watcher) tenant(ctx context.Context, q *queue, tenant string) (bool, error) {
	if len(q.tenants) >= maxTenants {
		clear(q.tenants)
	}
	q.tenants[tenant] = false
	names := make([]string, 0, len(q.tenants))
	for name := range q.tenants {
		names = append(names, name)
	}
	if other, is := sluice.StoreAs[server](l.store); is {
		paused, err := other.PausedTenants(ctx, q.Name, names)
		if err != nil {
			delete(q.tenants, tenant)
			return false, fmt.Errorf("look whether tenants are paused: %w", err)
		}
		for name := range q.tenants {
			q.tenants[name] = slices.Contains(paused, name)
		}
		q.readAt = time.Now()
		return q.tenants[tenant], nil
	}
	terms, err := tenancy.Given(l.store).EffectiveLimits(ctx, q.Queue, names, q.Now)
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
