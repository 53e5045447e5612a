package httpapi

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/sluice-queue/sluice"
)

// board lets many callers wait for jobs at the cost of one: it alone asks the store, and hands queues with jobs to the
// callers that wait for them, the longest waiting first. While nobody waits, it does nothing.
type board struct {
	store sluice.Store
	slots chan struct{} // bounds the claims under way

	mu       sync.Mutex
	desks    map[string]*desk // of the queues for which somebody waits
	waiting  int
	stop     context.CancelFunc // ends the watch; nil: there is none
	deaf     bool               // signals of other processes may be lost
	look     bool               // some queue may have jobs
	nudged   chan struct{}      // room for one
	settings map[string]readSettings
	resting  map[string]time.Time           // until when queues rest between two claims
	tokens   map[sluice.Token]chan struct{} // of the claims under way; each is closed at the end of its claim
}

// desk is a queue for which callers wait.
type desk struct {
	line     []*waiter // first come, first served
	hungry   bool      // jobs may be due now
	claiming int       // callers of the line that claim now
	width    int       // how many may claim at once
	signals  int       // counts the signs of new jobs
	nextAt   time.Time // when jobs may be due again; zero: unknown
	held     bool      // limits hold jobs back until nextAt
}

// waiter is a caller who waits for jobs of some queues.
type waiter struct {
	queues []string
	turn   chan string // the queue from which to claim now; room for one
	called bool        // it has a turn
}

// readSettings are the settings of a queue, and when they were read.
type readSettings struct {
	settings sluice.Settings
	at       time.Time
}

const (
	// claimsAtOnce is how many claims of all callers may be under way, and claimsAtDesk how many from one queue for
	// callers who waited.
	claimsAtOnce, claimsAtDesk = 32, 8
	// hearingLook is the time between two looks at all queues while the store hears all signals, and deafLook while it
	// may not.
	hearingLook, deafLook = 5 * time.Second, time.Second
	// leastLook is the least time between two looks, and soonLook when a queue is looked at that gave some jobs.
	leastLook, soonLook = 5 * time.Millisecond, 10 * time.Millisecond
	// lookShare bounds the cost of looks: each is followed by this many times its duration.
	lookShare = 20
	// settingsAge is how long the settings of a queue are used, and settingsKept how many queues have theirs kept.
	settingsAge, settingsKept = time.Second, 1000
	// claimTime is the longest claim.
	claimTime = 10 * time.Second
)

func newBoard(store sluice.Store) *board {
	return &board{store: store, slots: make(chan struct{}, claimsAtOnce), desks: make(map[string]*desk), nudged: make(chan struct{}, 1), settings: make(map[string]readSettings), resting: make(map[string]time.Time), tokens: make(map[sluice.Token]chan struct{})}
}

// join puts a caller into the lines of its queues. The first caller of all starts the watch.
func (b *board) join(queues []string) *waiter {
	w := &waiter{queues: queues, turn: make(chan string, 1)}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.waiting++
	if b.stop == nil {
		ctx, stop := context.WithCancel(context.Background())
		b.stop, b.deaf = stop, true
		go b.watch(ctx)
	}
	for _, queue := range queues {
		d := b.desks[queue]
		if d == nil {
			d = &desk{hungry: true, width: 1} // nobody knows yet
			b.desks[queue] = d
		}
		d.line = append(d.line, w)
	}
	for _, queue := range queues {
		b.serve(queue)
	}
	return w
}

// leave takes a caller out of its lines. An unused turn goes to the next.
func (b *board) leave(w *waiter) {
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case queue := <-w.turn:
		b.desks[queue].claiming--
	default:
	}
	for _, queue := range w.queues {
		d := b.desks[queue]
		d.line = slices.DeleteFunc(d.line, func(other *waiter) bool { return other == w })
		b.serve(queue)
		if len(d.line) == 0 && d.claiming == 0 {
			delete(b.desks, queue)
		}
	}
	if b.waiting--; b.waiting == 0 {
		b.stop()
		b.stop = nil
		clear(b.desks)
	}
}

// serve gives turns to the first of a line while its queue may have jobs. The caller holds the lock.
func (b *board) serve(queue string) {
	d := b.desks[queue]
	if d == nil || !d.hungry {
		return
	}
	for _, w := range d.line {
		if d.claiming >= d.width {
			return
		}
		if !w.called {
			w.called = true
			d.claiming++
			w.turn <- queue
		}
	}
}

// served notes the outcome of a turn: got jobs of at most limit. Signals are those of the desk before the claim.
func (b *board) served(w *waiter, queue string, signals, got, limit int, claimed sluice.Claimed, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	d := b.desks[queue]
	w.called = got > 0 || err != nil // then it leaves
	d.claiming--
	d.held = false
	now := time.Now()
	switch {
	case errors.Is(err, context.Canceled): // the caller left, and handed its jobs back
		d.hungry = true
	case err != nil:
		d.hungry, d.nextAt = false, now.Add(deafLook)
	case got == limit: // more may be due
		d.hungry, d.width = true, min(2*d.width, claimsAtDesk)
	case claimed.Limited || claimed.Full:
		d.hungry, d.held, d.nextAt, d.width = false, true, now.Add(deafLook), 1
		if claimed.Limited && claimed.NextDue >= 0 {
			d.nextAt = now.Add(min(max(claimed.NextDue, leastLook), deafLook))
		}
	case d.signals != signals: // of jobs that the claim may have missed
		d.hungry, d.width = true, 1
	default:
		d.hungry, d.width, d.nextAt = false, 1, time.Time{}
		switch {
		case got > 0:
			d.nextAt = now.Add(soonLook)
		case claimed.NextDue >= 0:
			d.nextAt = now.Add(max(claimed.NextDue, leastLook))
		}
	}
	b.serve(queue)
	for _, other := range w.queues { // which may have passed it over
		b.serve(other)
	}
	b.nudge()
}

// ended notes that jobs have ended. Queues whose limits were in use may go on.
func (b *board) ended() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for queue, d := range b.desks {
		if d.held {
			d.held, d.hungry = false, true
			b.serve(queue)
		}
	}
}

// signalsOf counts the signs of new jobs in a queue.
func (b *board) signalsOf(queue string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	if d := b.desks[queue]; d != nil {
		return d.signals
	}
	return 0
}

func (b *board) nudge() { signal(b.nudged) }

// watch hears signals and looks at queues, until nobody waits.
func (b *board) watch(ctx context.Context) {
	var listening sync.WaitGroup
	defer listening.Wait()
	listening.Go(func() { _ = b.store.Watch(ctx, func(s sluice.Signal) { b.heed(ctx, s) }) }) // looks replace lost signals
	timer := time.NewTimer(0)
	defer timer.Stop()
	last, least := time.Now(), time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-b.nudged:
		}
		queues, next := b.due(ctx, last, least)
		if len(queues) > 0 {
			asked := time.Now()
			due, err := b.store.NextDue(ctx, queues)
			last = time.Now()
			least = last.Add(max(leastLook, lookShare*last.Sub(asked)))
			b.found(ctx, queues, due, err, last)
			_, next = b.due(ctx, last, least)
		}
		timer.Reset(max(time.Until(next), time.Millisecond))
	}
}

// heed notes a signal.
func (b *board) heed(ctx context.Context, s sluice.Signal) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if ctx.Err() != nil {
		return
	}
	if s.Hearing != "" {
		b.deaf, b.look = s.Hearing != sluice.HearsAll, true
		b.nudge()
	}
	switch d := b.desks[s.Queue]; {
	case d != nil:
		d.signals++
		if !d.held {
			d.hungry = true
			b.serve(s.Queue)
		}
	case s.Queue == "" && s.Cancelled.IsZero() && s.Ended.IsZero() && s.Hearing == "":
		for _, d := range b.desks {
			d.signals++
		}
		b.look = true
		b.nudge()
	}
}

// due gives turns at queues whose time has come. It returns the queues to look at now, and the time of its next round.
func (b *board) due(ctx context.Context, last, least time.Time) (queues []string, next time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if ctx.Err() != nil { // the next watch does it
		b.nudge()
		return nil, time.Now().Add(hearingLook)
	}
	now := time.Now()
	next = last.Add(hearingLook)
	if b.deaf {
		next = last.Add(deafLook)
	}
	if b.look {
		next = least
	}
	all := !now.Before(next)
	for queue, d := range b.desks {
		switch {
		case d.hungry || d.nextAt.IsZero():
		case !now.Before(d.nextAt):
			d.hungry, d.held, d.nextAt = true, false, time.Time{}
			b.serve(queue)
		case d.nextAt.Before(next):
			next = d.nextAt
		}
		if all {
			queues = append(queues, queue)
		}
	}
	if all {
		b.look = false
	}
	return queues, next
}

// found notes the result of a look.
func (b *board) found(ctx context.Context, queues []string, due map[string]time.Duration, err error, at time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err != nil || ctx.Err() != nil { // the next look finds them
		return
	}
	for _, queue := range queues {
		wait, waits := due[queue]
		d := b.desks[queue]
		switch {
		case d == nil || !waits || d.held:
		case wait <= 0:
			d.hungry = true
			b.serve(queue)
		case d.nextAt.IsZero() || at.Add(wait).Before(d.nextAt):
			d.nextAt = at.Add(wait)
		}
	}
}

// settingsOf returns the settings of a queue, at most a second old.
func (b *board) settingsOf(ctx context.Context, queue string) (sluice.Settings, error) {
	b.mu.Lock()
	kept, is := b.settings[queue]
	b.mu.Unlock()
	if is && time.Since(kept.at) < settingsAge {
		return kept.settings, nil
	}
	kept = readSettings{sluice.DefaultSettings(), time.Now()}
	found, err := b.store.Queues(ctx, sluice.QueueFilter{Names: []string{queue}})
	if err != nil {
		return kept.settings, err
	}
	if len(found) > 0 {
		kept.settings = found[0].Settings
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.settings) >= settingsKept {
		clear(b.settings)
	}
	b.settings[queue] = kept
	return kept.settings, nil
}

// forget makes the board read the settings of queues anew.
func (b *board) forget() {
	b.mu.Lock()
	defer b.mu.Unlock()
	clear(b.settings)
}

// rest returns how long a queue rests until it may be claimed from again. 0: the claim may begin, and the next one is an interval later.
func (b *board) rest(queue string, interval time.Duration) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	if rest := min(b.resting[queue].Sub(now), interval); rest > 0 {
		return rest
	}
	delete(b.resting, queue)
	if interval <= 0 {
		return 0
	}
	if len(b.resting) >= settingsKept {
		maps.DeleteFunc(b.resting, func(_ string, until time.Time) bool { return until.Before(now) })
	}
	b.resting[queue] = now.Add(interval)
	return 0
}

// wake ends the rest of a queue.
func (b *board) wake(queue string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.resting, queue)
}

// enter waits until a claim with a token may begin. The caller must call leave.
func (b *board) enter(ctx context.Context, token sluice.Token) (leave func(), err error) {
	done, err := b.alone(ctx, token)
	if err != nil {
		return nil, err
	}
	if ctx.Err() == nil { // the jobs would wait for a client that has left
		select {
		case b.slots <- struct{}{}:
			return func() { <-b.slots; done() }, nil
		case <-ctx.Done():
		}
	}
	done()
	return nil, ctx.Err()
}

// alone waits until no other claim with a token is under way here. The caller must call leave. A claim that is sent again would claim other
// jobs beside the first one, and nobody would work on those of the first.
func (b *board) alone(ctx context.Context, token sluice.Token) (leave func(), err error) {
	for {
		b.mu.Lock()
		other, done := b.tokens[token], make(chan struct{})
		if other == nil {
			b.tokens[token] = done
		}
		b.mu.Unlock()
		if other == nil {
			return func() {
				b.mu.Lock()
				defer b.mu.Unlock()
				delete(b.tokens, token)
				close(done)
			}, nil
		}
		select {
		case <-other:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
