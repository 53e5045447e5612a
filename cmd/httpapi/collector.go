package httpapi

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/access"
)

// collector reads what streams tell, once for all listeners. It keeps the last events, so that a listener that was cut can go
// on. A while after the last listener has left, it ends.
type collector struct {
	store sluice.Store
	read  func(ctx context.Context, topic string) (any, error)
	keep  time.Duration // how long it goes on without listeners

	mu        sync.Mutex
	listeners map[*listener]bool
	topics    map[string]*topicState
	alone     time.Time          // when the last listener left; zero: there are some
	ending    bool               // the process ends
	stop      context.CancelFunc // ends the collecting; nil: there is none
	nudged    chan struct{}      // room for one
	asked     chan struct{}      // room for one: a listener needs to know whose a job is
	run       string             // begins the ids of events, so that those of another process are not mistaken for ours
	hearing   sluice.Hearing     // of the store; empty: it has not said yet
	hears     chan struct{}      // closed when the store has said how far it hears
	last      int64              // number of the last event
	dropped   int64              // no event up to this number is kept
	kept      []*streamEvent     // the last events, the oldest first
	bytes     int                // of the kept events
}

// topicState is a topic that somebody follows, or followed until a moment ago.
type topicState struct {
	followers int
	left      time.Time    // when the last follower left
	since     int64        // every event of the topic after this number was collected
	now       *streamEvent // the last event; nil: not read yet
	next      time.Time    // of the next reading
}

// streamEvent is an event as listeners get it.
type streamEvent struct {
	number int64
	topic  string
	data   []byte
	queue  string    // whom it is about, for listeners with bounds; empty: everybody
	job    sluice.ID // whom it is about, instead of queue
	owner  *owner    // of the job; nil: nobody has looked yet
}

// owner says whose a job is. Unknown: the store could not say.
type owner struct {
	queue, tenant string
	unknown       bool
}

// listener is a stream. It takes the kept events by itself, at its own pace.
type listener struct {
	topics map[string]bool
	mark   string         // begins the ids of its events: the process, and the topics
	after  string         // the id after which it wants to go on; empty: it begins
	bounds *access.Bounds // nil: it knows everything
	woken  chan struct{}  // room for one: there may be events
	// What follows is guarded by the collector.
	begun  bool  // it has asked for events
	at     int64 // it has all events up to this number
	behind bool  // it misses some events
	anew   bool  // it needs each topic as it is now
}

const (
	// topicCancelled tells of claimed jobs that somebody cancelled. It comes from signals, not from readings.
	topicCancelled = "cancelled"
	// topicSignals tells of everything that makes workers look, and topicHearing how far they may rely on that.
	topicSignals, topicHearing = "signals", "hearing"
	// readEvery is how often a topic is read, and readShare bounds the cost: each reading is followed by this many times
	// its duration.
	readEvery, readShare = time.Second, 9
	// keptEvents is how many events are kept, of at most keptBytes, and eventsAtOnce how many a listener takes at once.
	keptEvents, keptBytes, eventsAtOnce = 1000, 4 << 20, 64
	// hearingTime is the most time for which a stream waits until the store hears signals.
	hearingTime = 2 * time.Second
)

func newCollector(store sluice.Store, keep time.Duration, read func(context.Context, string) (any, error)) *collector {
	return &collector{
		store: store, keep: keep, read: read, listeners: make(map[*listener]bool), topics: make(map[string]*topicState),
		nudged: make(chan struct{}, 1), asked: make(chan struct{}, 1), run: rand.Text()[:8],
	}
}

// listen adds a listener, which goes on after an id; empty: it begins. Bounds say what it knows; nil: everything.
func (c *collector) listen(topics []string, after string, bounds *access.Bounds) *listener {
	topics = slices.Sorted(slices.Values(topics))
	l := &listener{
		topics: make(map[string]bool), after: after, bounds: bounds, woken: make(chan struct{}, 1),
		mark: fmt.Sprintf("%s%08x", c.run, crc32.ChecksumIEEE([]byte(strings.Join(topics, ",")))),
	}
	signal(l.woken)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.alone, c.listeners[l] = time.Time{}, true
	for _, topic := range topics {
		l.topics[topic] = true
		c.follow(topic)
	}
	if c.stop == nil && !c.ending {
		ctx, stop := context.WithCancel(context.Background())
		c.stop, c.hears = stop, make(chan struct{})
		go c.collect(ctx)
	}
	c.nudge()
	return l
}

// follow adds a follower to a topic. The caller holds the lock.
func (c *collector) follow(topic string) {
	state := c.topics[topic]
	if state == nil {
		c.last++ // so that a client that followed it before has missed something
		state = &topicState{since: c.last}
		c.topics[topic] = state
		if topic == topicHearing {
			state.now = &streamEvent{number: c.last, topic: topic, data: hearingData(c.hearing)}
		}
	}
	if state.followers++; state.followers == 1 && topic != topicHearing { // what it was when the last one left is not how it is now
		state.now, state.next = nil, time.Time{}
	}
}

// awaitHearing waits until the store has said how far it hears signals: those before it may be lost.
func (c *collector) awaitHearing(ctx context.Context) {
	c.mu.Lock()
	hears, collecting := c.hears, c.stop != nil
	c.mu.Unlock()
	if !collecting {
		return
	}
	select {
	case <-hears:
	case <-time.After(hearingTime):
	case <-ctx.Done():
	}
}

// begin finds the place at which a listener goes on. The caller holds the lock.
func (c *collector) begin(l *listener) {
	l.begun, l.at, l.anew = true, c.last, true
	mark, text, _ := strings.Cut(l.after, "-")
	number, err := strconv.ParseInt(text, 10, 64)
	known := err == nil && mark == l.mark && number <= c.last && number >= c.dropped
	for topic := range l.topics {
		known = known && number >= c.topics[topic].since
	}
	if known {
		l.at, l.anew = number, false
	}
	l.behind = !known && l.after != ""
}

// id names an event for a listener.
func (l *listener) id(number int64) string { return fmt.Sprintf("%s-%d", l.mark, number) }

// leave removes a listener. Its topics are collected for a while, in case that it comes again.
func (c *collector) leave(l *listener) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.listeners, l)
	for topic := range l.topics {
		state := c.topics[topic]
		if state.followers--; state.followers == 0 {
			state.left = time.Now()
		}
	}
	if len(c.listeners) == 0 {
		c.alone = time.Now()
	}
	if c.ending {
		c.tidy(time.Now())
	}
}

// end makes the collecting end with the last listener.
func (c *collector) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ending = true
	c.tidy(time.Now())
}

// tidy forgets topics that nobody has followed for a while. Without any listener for a while, it ends the collecting. The caller
// holds the lock.
func (c *collector) tidy(now time.Time) {
	for topic, state := range c.topics {
		if state.followers == 0 && (c.ending || now.Sub(state.left) >= c.keep) {
			delete(c.topics, topic)
		}
	}
	if len(c.listeners) > 0 || !c.ending && now.Sub(c.alone) < c.keep || c.stop == nil {
		return
	}
	c.stop()
	clear(c.topics)
	c.stop, c.kept, c.bytes, c.dropped, c.hearing = nil, nil, 0, c.last, ""
}

// taken is what a listener gets at once.
type taken struct {
	behind bool           // it has missed some events
	events []*streamEvent // the oldest first
	at     int64          // it then has all events up to this number
}

// take returns the next events of a listener. Without any, the listener is woken when there may be some.
func (c *collector) take(l *listener) (b taken) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !l.begun {
		c.begin(l)
	}
	if l.at < c.dropped {
		l.behind = true
	}
	if l.behind || l.anew {
		b = taken{l.behind, c.present(l), c.last}
		l.at, l.behind, l.anew = c.last, false, false
		return b
	}
	from, _ := slices.BinarySearchFunc(c.kept, l.at+1, func(e *streamEvent, number int64) int { return cmp.Compare(e.number, number) })
	for _, e := range c.kept[from:] {
		if c.mustAsk(l, e) {
			signal(c.asked)
			break
		}
		if l.at = e.number; l.topics[e.topic] && e.owner.lost(l) {
			l.behind = true
		} else if l.wants(e) {
			b.events = append(b.events, e)
		}
		if len(b.events) == eventsAtOnce || l.behind {
			signal(l.woken)
			break
		}
	}
	b.at = l.at
	return b
}

// present returns the last event of each topic of a listener, the oldest first. The caller holds the lock.
func (c *collector) present(l *listener) (events []*streamEvent) {
	for topic := range l.topics {
		if now := c.topics[topic].now; now != nil {
			events = append(events, now)
		}
	}
	slices.SortFunc(events, func(a, b *streamEvent) int { return cmp.Compare(a.number, b.number) })
	return events
}

// mustAsk reports whether nobody knows yet whether an event is for a listener. The caller holds the lock.
func (c *collector) mustAsk(l *listener, e *streamEvent) bool {
	return l.bounds != nil && l.topics[e.topic] && !e.job.IsZero() && e.owner == nil
}

// lost reports whether nobody can say whether an event is for a listener.
func (o *owner) lost(l *listener) bool { return l.bounds != nil && o != nil && o.unknown }

// wants reports whether an event is for a listener. Its owner is known, if the listener has bounds.
func (l *listener) wants(e *streamEvent) bool {
	switch {
	case !l.topics[e.topic]:
		return false
	case l.bounds == nil:
		return true
	case e.owner != nil:
		return l.bounds.Job(e.owner.queue, e.owner.tenant)
	}
	return e.queue == "" || l.bounds.Queue(e.queue)
}

// place returns how far a listener is, if there is nothing for it to take.
func (c *collector) place(l *listener) (at int64, all bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return l.at, l.begun && !l.behind && !c.waits(l)
}

// waits reports whether there is a kept event that a listener has not looked at. The caller holds the lock.
func (c *collector) waits(l *listener) bool {
	return len(c.kept) > 0 && c.kept[len(c.kept)-1].number > l.at
}

// tell makes an event of data, unless it equals the last of its topic.
func (c *collector) tell(ctx context.Context, topic string, data []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	state := c.topics[topic]
	if state == nil || ctx.Err() != nil || state.now != nil && bytes.Equal(state.now.data, data) {
		return
	}
	e := &streamEvent{topic: topic, data: data}
	c.add(e)
	state.now = e
}

// tellOf makes an event of a signal.
func (c *collector) tellOf(ctx context.Context, e streamEvent) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.topics[e.topic] != nil && ctx.Err() == nil {
		c.add(&e)
	}
}

// add keeps an event, and wakes those whom it may concern. The caller holds the lock.
func (c *collector) add(e *streamEvent) {
	var idle []*listener // which have nothing to take, and need not look at what is not for them
	for l := range c.listeners {
		if !c.waits(l) && l.begun && !c.mustAsk(l, e) && !l.wants(e) {
			idle = append(idle, l)
		} else {
			signal(l.woken)
		}
	}
	c.last++
	e.number = c.last
	for _, l := range idle {
		l.at = e.number
	}
	c.kept, c.bytes = append(c.kept, e), c.bytes+len(e.data)
	for len(c.kept) > keptEvents || c.bytes > keptBytes {
		c.bytes -= len(c.kept[0].data)
		c.dropped = c.kept[0].number
		c.kept[0] = nil // for the garbage collector
		c.kept = c.kept[1:]
	}
}

func (c *collector) nudge() { signal(c.nudged) }

// collect reads the topics that somebody follows, until nobody listens.
func (c *collector) collect(ctx context.Context) {
	var listening sync.WaitGroup
	defer listening.Wait()
	listening.Go(func() {
		_ = c.store.Watch(ctx, func(s sluice.Signal) { c.heed(ctx, s) })
	})
	listening.Go(func() { c.findOwners(ctx) })
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-c.nudged:
		}
		next := time.Now().Add(readEvery)
		for _, topic := range c.due(ctx) {
			begun := time.Now()
			c.readTopic(ctx, topic)
			c.readAgain(topic, max(readEvery, readShare*time.Since(begun)))
		}
		timer.Reset(max(time.Until(next), time.Millisecond))
	}
}

// due lists the topics to read now.
func (c *collector) due(ctx context.Context) (names []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if ctx.Err() != nil { // the next collecting does it
		c.nudge()
		return nil
	}
	c.tidy(time.Now())
	for topic, state := range c.topics {
		if topics[topic] == nil && !strings.HasPrefix(topic, "queue:") {
			continue // it comes from signals
		}
		if state.followers > 0 && !time.Now().Before(state.next) {
			names = append(names, topic)
		}
	}
	return names
}

// readAgain sets the time of the next reading.
func (c *collector) readAgain(topic string, after time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if state := c.topics[topic]; state != nil {
		state.next = time.Now().Add(after)
	}
}

// readTopic reads a topic, and tells what has changed. An error is told as an event too.
func (c *collector) readTopic(ctx context.Context, topic string) {
	ctx, stop := context.WithTimeout(ctx, claimTime)
	defer stop()
	value, err := c.read(ctx, topic)
	if err != nil {
		value = map[string]string{"error": "the store could not be read; the stream goes on when it can"}
	}
	if data, err := json.Marshal(value); err == nil {
		c.tell(ctx, topic, data)
	}
}
