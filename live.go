package sluice

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"
)

// SettingsInterval is the greatest age of the settings that a process acts on. A change reaches every process
// within it.
const SettingsInterval = time.Second

// liveKept is how long after the last request for a queue its settings are read along with the others. A later
// request reads them by itself.
const liveKept = 5 * SettingsInterval

// liveForgotten is how long after the last request for a queue LiveSettings forgets the queue.
const liveForgotten = 10 * time.Minute

// LiveSettings reads the settings of the queues that callers ask for. It reads them together, at most once per
// [SettingsInterval]. It reads a queue at once on the first request. Other queues of the store cost nothing.
//
// Many goroutines may share one LiveSettings. It forgets a queue 10 min after the last request.
type LiveSettings struct {
	store   Store
	options LiveOptions

	mu      sync.Mutex
	queues  map[string]*liveQueue // the queues that callers asked for
	under   *reading              // the reading under way; nil: none
	changes int                   // how often a caller asked to forget

	clock   time.Time // the earliest time that the store's clock can have shown
	clockAt time.Time // at this instant of our clock; zero: nobody has read the store's clock
}

// liveQueue is a queue as LiveSettings read it last.
type liveQueue struct {
	Queue
	read  bool // false: a caller asked for the queue, and nobody has read it yet
	asked time.Time
	until time.Time // when the settings become too old
}

// reading is one reading of some queues.
type reading struct {
	names []string
	done  chan struct{}
	err   error
	cut   bool // the context of its caller ended, so err is no fault of the store
}

// LiveOptions configures [LiveSettings]. The zero value works.
type LiveOptions struct {
	// PayloadChecker finds a payload_schema that is no JSON Schema, stored by plain SQL. The last good schema
	// applies then. Default: none.
	PayloadChecker PayloadChecker
	// Logger gets one line for each queue whose stored settings break a rule. Default: slog.Default().
	Logger *slog.Logger
}

// NewLiveSettings makes LiveSettings of a store. It does not read the store.
func NewLiveSettings(store Store, options LiveOptions) *LiveSettings {
	if options.Logger == nil {
		options.Logger = slog.Default()
	}
	return &LiveSettings{store: GivenStore(store), options: options}
}

// Queue returns a queue with settings at most one [SettingsInterval] old. An unknown queue has Version 0 and the
// default settings.
//
// While the store is out of reach, Queue returns the last good settings. It returns an error only if nobody has
// ever read the queue.
func (l *LiveSettings) Queue(ctx context.Context, name string) (Queue, error) {
	return l.queueBy(ctx, l.store, false, name)
}

// Expect names queues that a caller will ask for soon, so that the next reading reads them together. It does not
// read the store.
func (l *LiveSettings) Expect(names ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, name := range names {
		l.noteAsked(name)
	}
}

// queueBy is Queue, but reads through the caller's transaction if there is one. If transactions hold all
// connections, no other connection is left for the reading, and nobody may wait for one.
func (l *LiveSettings) queueBy(ctx context.Context, from Enqueuer, inTx bool, name string) (Queue, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for {
		q := l.noteAsked(name)
		switch {
		case q.read && (time.Now().Before(q.until) || l.readsNow(q)):
			return q.Queue, nil // while one caller reads, the others use the last settings
		case !q.read && l.under != nil && !inTx:
			if err := l.wait(ctx, name); err != nil {
				return Queue{}, err
			}
		default:
			if err := l.read(ctx, from, q); err != nil && !q.read {
				return Queue{}, err
			}
			return l.queues[name].Queue, nil
		}
	}
}

// readsNow reports whether a reading of the queue is under way.
func (l *LiveSettings) readsNow(q *liveQueue) bool {
	return l.under != nil && slices.Contains(l.under.names, q.Name)
}

// Latest returns the last settings that LiveSettings read, without a reading. Fresh says that Queue would return
// the same without a reading. Read says that somebody has read the queue at all.
func (l *LiveSettings) Latest(name string) (queue Queue, fresh, read bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	q := l.noteAsked(name)
	return q.Queue, q.read && time.Now().Before(q.until), q.read
}

// Refresh reads the settings of all recently requested queues, if some of them become too old within half a
// [SettingsInterval].
func (l *LiveSettings) Refresh(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	lately := &liveQueue{read: true}
	if l.under != nil || len(l.due(lately)) == 0 {
		return nil // a reading is under way, or nobody needs one
	}
	return l.read(ctx, l.store, lately)
}

// noteAsked finds a queue, and notes the request.
func (l *LiveSettings) noteAsked(name string) *liveQueue {
	if l.queues == nil {
		l.queues = make(map[string]*liveQueue)
	}
	q := l.queues[name]
	if q == nil {
		q = &liveQueue{Queue: Queue{Name: name, Settings: DefaultSettings()}}
		l.queues[name] = q
	}
	q.asked = time.Now()
	return q
}

// due returns the queues to read for one wanted queue. It returns all queues that nobody has read yet. If wanted
// was read before, due adds the recently requested queues whose settings soon become too old.
//
// Of ten thousand queues with rare requests, those are few. While another reading is under way, due returns only
// the wanted queue. It forgets queues without a request for a long time.
func (l *LiveSettings) due(wanted *liveQueue) (names []string) {
	if l.under != nil {
		return []string{wanted.Name}
	}
	now := time.Now()
	lately, soon, long := now.Add(-liveKept), now.Add(SettingsInterval/2), now.Add(-liveForgotten)
	for name, q := range l.queues {
		switch {
		case q.asked.Before(long):
			delete(l.queues, name)
		case !q.read, wanted.read && q.asked.After(lately) && q.until.Before(soon):
			names = append(names, name)
		}
	}
	return names
}

// wait unlocks the lock, waits until the reading under way has ended, and returns its error if it was about this
// queue.
func (l *LiveSettings) wait(ctx context.Context, name string) error {
	under := l.under
	l.mu.Unlock()
	defer l.mu.Lock()
	select {
	case <-under.done:
	case <-ctx.Done():
		return fmt.Errorf("read settings: %w", ctx.Err())
	}
	if under.err != nil && !under.cut && slices.Contains(under.names, name) {
		return under.err
	}
	return nil
}

// Now returns the earliest time that the store's clock can show. Zero: nobody has read it yet.
//
// Now lags behind the store's clock by at most the duration of a reading, so a caller who waits for an instant is
// never early. This process's own clock only adds the time since the reading.
func (l *LiveSettings) Now() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.now()
}

// now is Now, with the lock held.
func (l *LiveSettings) now() time.Time {
	if l.clockAt.IsZero() {
		return time.Time{}
	}
	return l.clock.Add(time.Since(l.clockAt))
}

// setClock notes the time that the store's clock showed in a reading. It keeps a later known time, unless the
// difference exceeds the reading's duration: then somebody set the store's clock back.
func (l *LiveSettings) setClock(shown time.Time, took time.Duration) {
	if known := l.now(); known.After(shown) && !known.After(shown.Add(took)) {
		shown = known
	}
	l.clock, l.clockAt = shown, time.Now()
}

// Forget makes the next request read the store.
func (l *LiveSettings) Forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, q := range l.queues {
		q.until = time.Time{}
	}
	l.changes++
}

// ask reads queues and the store's clock, with the lock open. It takes the lock again even if the store panics, so
// that the caller can recover.
func (l *LiveSettings) ask(ctx context.Context, from Enqueuer, r *reading) (queues []Queue, shown time.Time, err error) {
	before := l.under
	if before == nil {
		l.under = r
	}
	l.mu.Unlock()
	r.cut = true
	defer func() {
		l.mu.Lock()
		if before == nil {
			l.under = nil
		}
		close(r.done)
	}()
	queues, shown, err = queuesAndClock(ctx, from, r.names)
	if err != nil {
		err = fmt.Errorf("read settings: %w", err)
	}
	r.err, r.cut = err, ctx.Err() != nil
	return queues, shown, err
}

// queuesAndClock reads queues by name, and the store's clock. It leaves out names that no queue can have.
func queuesAndClock(ctx context.Context, from Enqueuer, names []string) (queues []Queue, shown time.Time, err error) {
	names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return CheckQueueName(name) != nil })
	if len(names) > 0 {
		if queues, err = from.Queues(ctx, QueueFilter{Names: names}); err != nil {
			return nil, shown, err
		}
	}
	if len(queues) > 0 {
		return queues, queues[0].Now, nil
	}
	shown, err = from.Now(ctx)
	return nil, shown, err
}

// read reads the settings of the due queues, for one wanted queue. The lock is open meanwhile. Only this caller,
// and callers that ask for a queue that nobody has read, wait for a slow store.
func (l *LiveSettings) read(ctx context.Context, from Enqueuer, wanted *liveQueue) error {
	changes, asked := l.changes, time.Now()
	names := l.due(wanted)
	queues, shown, err := l.ask(ctx, from, &reading{names: names, done: make(chan struct{})})
	if err != nil {
		if ctx.Err() == nil {
			l.count(names)
		}
		return err
	}
	l.setClock(shown, time.Since(asked))
	l.put(names, queues, asked)
	if l.changes == changes {
		l.count(names)
	}
	return nil
}

// count makes the settings of the queues valid for one SettingsInterval.
func (l *LiveSettings) count(names []string) {
	until := time.Now().Add(SettingsInterval)
	for _, name := range names {
		if q := l.queues[name]; q != nil {
			q.until = until
		}
	}
}

// put keeps queues as the store returned them, and the defaults of queues that it does not have.
func (l *LiveSettings) put(names []string, queues []Queue, at time.Time) {
	stored := make(map[string]Queue, len(queues))
	for _, q := range queues {
		stored[q.Name] = q
	}
	for _, name := range names {
		known := l.queues[name]
		if known == nil {
			known = &liveQueue{asked: at}
			l.queues[name] = known
		}
		q, is := stored[name]
		if !is {
			q = Queue{Name: name, Settings: DefaultSettings()}
		}
		q.keepGoodSchema(l.options.PayloadChecker)
		if q.Wrong != "" && q.Wrong != known.Wrong {
			l.options.Logger.Warn("stored settings refused", "queue", q.Name, "error", q.Wrong)
		}
		known.Queue, known.read = q, true
	}
}
