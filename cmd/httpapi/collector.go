package httpapi

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/sluice-queue/sluice"
)

// collector reads what streams tell, once for all listeners. While nobody listens, it does nothing.
type collector struct {
	store sluice.Store
	read  func(ctx context.Context, topic string) (any, error)

	mu        sync.Mutex
	listeners map[*listener]bool
	topics    map[string]*topicState
	stop      context.CancelFunc // ends the collecting; nil: there is none
	nudged    chan struct{}      // room for one
	run       string             // begins the ids of events, so that those of another process are not mistaken for ours
	hearing   sluice.Hearing     // of the store, while it listens
	last      int64              // number of the last event
	kept      []streamEvent      // the last events, the oldest first
	bytes     int                // of the kept events
}

// topicState is a topic that somebody follows.
type topicState struct {
	followers int
	now       *streamEvent // the last event; nil: not read yet
	next      time.Time    // of the next reading
}

// streamEvent is an event as listeners get it.
type streamEvent struct {
	number int64
	topic  string
	data   []byte
	queue  string // whom it is about, for listeners with bounds; empty: everybody
	whole  bool   // only for listeners without bounds
}

// listener is a stream.
type listener struct {
	topics map[string]bool
	knows  func(queue string) bool // nil: everything
	events chan streamEvent
	missed int // events that did not fit; guarded by the collector
}

const (
	// topicCancelled tells of claimed jobs that somebody cancelled. It comes from signals, not from readings.
	topicCancelled = "cancelled"
	// topicSignals tells of everything that makes workers look, and topicHearing how far they may rely on that.
	topicSignals, topicHearing = "signals", "hearing"
	// readEvery is how often a topic is read, and readShare bounds the cost: each reading is followed by this many times
	// its duration.
	readEvery, readShare = time.Second, 9
	// keptEvents is how many events a stream can go on after, of at most keptBytes, and listenerRoom how many wait for a
	// slow listener.
	keptEvents, keptBytes, listenerRoom = 1000, 4 << 20, 64
)

func newCollector(store sluice.Store, read func(context.Context, string) (any, error)) *collector {
	return &collector{
		store: store, read: read, listeners: make(map[*listener]bool), topics: make(map[string]*topicState), nudged: make(chan struct{}, 1), run: rand.Text()[:8],
	}
}

// listen adds a listener. It gets the events after an id, if they are kept. Else it gets the last event of each topic.
// Knows bounds the queues of signals; nil: it does not.
func (c *collector) listen(topics []string, after string, knows func(queue string) bool) *listener {
	l := &listener{topics: make(map[string]bool), knows: knows, events: make(chan streamEvent, listenerRoom)}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, topic := range topics {
		l.topics[topic] = true
		if c.topics[topic] == nil {
			c.topics[topic] = new(topicState)
		}
		c.topics[topic].followers++
		if topic == topicHearing && c.topics[topic].now == nil {
			c.last++
			c.topics[topic].now = &streamEvent{number: c.last, topic: topic, data: hearingData(c.hearing)}
		}
	}
	c.listeners[l] = true
	if missed, known := c.after(after); known {
		for _, e := range missed {
			c.give(l, e)
		}
	} else {
		c.giveAll(l)
	}
	if c.stop == nil {
		ctx, stop := context.WithCancel(context.Background())
		c.stop = stop
		go c.collect(ctx)
	}
	c.nudge()
	return l
}

// after returns the kept events after an id. Known says that none is missing.
func (c *collector) after(id string) (events []streamEvent, known bool) {
	run, text, _ := strings.Cut(id, "-")
	number, err := strconv.ParseInt(text, 10, 64)
	if err != nil || run != c.run || number > c.last || len(c.kept) == 0 || number+1 < c.kept[0].number {
		return nil, false
	}
	return c.kept[number+1-c.kept[0].number:], true
}

// id names an event.
func (c *collector) id(e streamEvent) string { return fmt.Sprintf("%s-%d", c.run, e.number) }

// leave removes a listener. The last of all ends the collecting.
func (c *collector) leave(l *listener) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.listeners, l)
	for topic := range l.topics {
		if c.topics[topic].followers--; c.topics[topic].followers == 0 {
			delete(c.topics, topic)
		}
	}
	if len(c.listeners) == 0 && c.stop != nil {
		c.stop()
		c.stop, c.kept, c.bytes, c.hearing = nil, nil, 0, ""
	}
}

// give sends a listener an event, if there is room. The caller holds the lock.
func (c *collector) give(l *listener, e streamEvent) {
	if !l.topics[e.topic] || l.knows != nil && (e.whole || e.queue != "" && !l.knows(e.queue)) {
		return
	}
	if l.missed == 0 {
		select {
		case l.events <- e:
			return
		default:
		}
	}
	l.missed++
}

// giveAll sends a listener the last event of each of its topics. The caller holds the lock.
func (c *collector) giveAll(l *listener) {
	for topic := range l.topics {
		if now := c.topics[topic].now; now != nil {
			c.give(l, *now)
		}
	}
}

// caughtUp returns how many events a listener has missed. If it has taken all others, it gets the last of each topic.
func (c *collector) caughtUp(l *listener) (missed int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if l.missed == 0 || len(l.events) > 0 {
		return 0
	}
	missed, l.missed = l.missed, 0
	c.giveAll(l)
	return missed
}

// tell makes an event of data, unless it equals the last of its topic.
func (c *collector) tell(ctx context.Context, topic string, data []byte, always bool) {
	c.tellOf(ctx, streamEvent{topic: topic, data: data}, always)
}

func (c *collector) tellOf(ctx context.Context, e streamEvent, always bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	topic, data := e.topic, e.data
	state := c.topics[topic]
	if state == nil || ctx.Err() != nil || !always && state.now != nil && bytes.Equal(state.now.data, data) {
		return
	}
	c.last++
	e.number = c.last
	if !always {
		state.now = &e
	}
	c.kept, c.bytes = append(c.kept, e), c.bytes+len(data)
	for len(c.kept) > keptEvents || c.bytes > keptBytes {
		c.bytes -= len(c.kept[0].data)
		c.kept[0] = streamEvent{} // for the garbage collector
		c.kept = c.kept[1:]
	}
	for l := range c.listeners {
		c.give(l, e)
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
	for topic, state := range c.topics {
		if topics[topic] == nil && !strings.HasPrefix(topic, "queue:") {
			continue // it comes from signals
		}
		if !time.Now().Before(state.next) {
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
		c.tell(ctx, topic, data, false)
	}
}

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
		c.mu.Lock()
		c.hearing = s.Hearing
		c.mu.Unlock()
		c.tell(ctx, topicHearing, hearingData(s.Hearing), false)
	}
	if !s.Cancelled.IsZero() {
		c.tell(ctx, topicCancelled, fmt.Appendf(nil, `{"id":%q}`, s.Cancelled), true)
	}
	view := signalView{s.Queue, s.Cancelled, s.Ended}
	if s.Hearing != "" && view == (signalView{}) {
		return
	}
	data, _ := json.Marshal(view) // its fields can be written
	c.tellOf(ctx, streamEvent{topic: topicSignals, data: data, queue: s.Queue, whole: !s.Cancelled.IsZero() || !s.Ended.IsZero()}, true)
}

// hearingData says how far a listener may rely on signals.
func hearingData(hearing sluice.Hearing) []byte {
	if hearing != sluice.HearsAll {
		hearing = sluice.HearsLess
	}
	return fmt.Appendf(nil, `{"hearing":%q}`, hearing)
}
