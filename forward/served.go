package forward

import (
	"context"
	"sync"
	"time"

	"github.com/sluice-queue/sluice"
)

// servedQueue is the state of one queue in a forwarder.
type servedQueue struct {
	queue    string
	wake     chan struct{}
	strayAt  time.Time // when to look for cancelled jobs again
	refused  error     // why the centre refused to cancel those of the last look; nil: it did not
	othersAt time.Time // when jobs for another centre were last logged
	more     bool      // the last cycle found jobs that were on their way, so that there may be more of them

	mu   sync.Mutex
	held map[sluice.ID]*hold
}

// hold is a claimed job being sent to the centre.
type hold struct {
	claim *sluice.Claim
	// doubtful is true if the centre may have the job already: it was sent, and no answer came.
	doubtful bool
	full     bool // the claim holds the whole job, as looked up
}

func (l *servedQueue) hold(holds []*hold) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held == nil {
		l.held = make(map[sluice.ID]*hold)
	}
	for _, h := range holds {
		l.held[h.claim.ID] = h
	}
}

func (l *servedQueue) let(id sluice.ID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.held, id)
}

func (l *servedQueue) holding() []*hold {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make([]*hold, 0, len(l.held))
	for _, h := range l.held {
		all = append(all, h)
	}
	return all
}

// unsent returns the jobs that the centre does not have, because no call that sends them went unanswered.
func (l *servedQueue) unsent() (claims []*sluice.Claim) {
	for _, h := range l.holding() {
		if !h.doubtful {
			claims = append(claims, h.claim)
		}
	}
	return claims
}

func (l *servedQueue) holds(id sluice.ID) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.held[id] != nil
}

func (l *servedQueue) nudge() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// rest waits. With forJobs, an incoming job ends the wait.
func (l *servedQueue) rest(ctx context.Context, wait time.Duration, forJobs bool) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	wake := l.wake
	if !forJobs {
		wake = nil
	}
	select {
	case <-ctx.Done():
	case <-wake:
	case <-timer.C:
	}
}
