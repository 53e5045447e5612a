package sluice

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"
)

// SettingsInterval is how old the settings that a process acts on may be: a change takes effect
// everywhere within it.
const SettingsInterval = time.Second

// liveKept is for how long after it was last asked for a queue is read again with the others. A queue that is asked for
// later is read then.
const liveKept = 5 * SettingsInterval

// liveForgotten is how long after it was last asked for a queue is forgotten.
const liveForgotten = 10 * time.Minute

// LiveSettings reads the settings of those queues that it is asked for, together, at most once per SettingsInterval
// however often it is asked; a queue that is asked for the first time is read at once. What a store holds beside them
// costs nothing. It may be used by many goroutines.
type LiveSettings struct {
	store   Store
	options LiveOptions

	mu      sync.Mutex
	queues  map[string]*liveQueue // those that were asked for
	under   *reading              // the reading that is under way; nil: none is
	changes int                   // how often somebody asked to forget

	clock   time.Time // what the store's clock showed at the least,
	clockAt time.Time // at this instant of ours; zero: it was not read yet
}

// liveQueue is a queue as it was read last.
type liveQueue struct {
	Queue
	read  bool // else it was asked for, and not read yet
	asked time.Time
	until time.Time // how long what was read counts
}

// reading is a reading of some queues.
type reading struct {
	names []string
	done  chan struct{}
	err   error
	cut   bool // it ended because its caller did, which tells the others nothing
}

// LiveOptions adjust LiveSettings. The zero value works.
type LiveOptions struct {
	// PayloadChecker finds a payload_schema that was stored by plain SQL and is none; the last good one
	// counts then. Default: none.
	PayloadChecker PayloadChecker
	// Logger gets a line for each queue whose stored settings break a rule, once. Default: slog.Default.
	Logger *slog.Logger
}

// NewLiveSettings reads settings from a store. It does no reading itself.
func NewLiveSettings(store Store, options LiveOptions) *LiveSettings {
	if options.Logger == nil {
		options.Logger = slog.Default()
	}
	return &LiveSettings{store: GivenStore(store), options: options}
}

// Queue gives a queue's settings as of now, or as of at most one interval ago. A queue that is not
// stored has Version 0 and the default settings. While the store cannot be reached, the last good
// settings go on to count.
func (l *LiveSettings) Queue(ctx context.Context, name string) (Queue, error) {
	return l.queueBy(ctx, l.store, false, name)
}

// Expect names queues that will be asked for in a moment, so that they are read together. It reads nothing.
func (l *LiveSettings) Expect(names ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, name := range names {
		l.noteAsked(name)
	}
}

// queueBy is Queue, reading through the caller's transaction where one is under way: with all
// connections in transactions, there would be none left to read with, and nobody to wait for.
func (l *LiveSettings) queueBy(ctx context.Context, from Enqueuer, inTx bool, name string) (Queue, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for {
		q := l.noteAsked(name)
		switch {
		case q.read && (time.Now().Before(q.until) || l.readsNow(q)):
			return q.Queue, nil // while one caller reads, the others go on with what was read last
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

// readsNow reports whether a queue is being read.
func (l *LiveSettings) readsNow(q *liveQueue) bool {
	return l.under != nil && slices.Contains(l.under.names, q.Name)
}

// Latest gives a queue's settings as they were read last, and reads nothing. Fresh says that they are as Queue would give
// them; read, that they were read at all.
func (l *LiveSettings) Latest(name string) (queue Queue, fresh, read bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	q := l.noteAsked(name)
	return q.Queue, q.read && time.Now().Before(q.until), q.read
}

// Refresh reads the settings of all queues that were asked for lately and will be too old within half an interval.
func (l *LiveSettings) Refresh(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	lately := &liveQueue{read: true}
	if l.under != nil || len(l.due(lately)) == 0 {
		return nil // somebody reads them, or nobody needs them
	}
	return l.read(ctx, l.store, lately)
}

// noteAsked finds a queue, and notes that somebody asks for it.
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

// due names the queues to read for one: all that were not read yet and, if that one was, all that were asked for lately and
// whose settings are too old soon. Of ten thousand, each asked for now and then, that is a few. While another reads, one
// that cannot wait for that is read alone. Queues that nobody has asked for in a long time are forgotten.
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

// wait waits with the lock open until the reading that is under way has ended, and gives its error if it was about this
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

// Now is what the store's clock shows at the least; zero: nothing was read yet. It lies behind that clock by the
// time that the answer of a reading took at the most, so that who waits for it is never early; this process's
// own clock only counts on from there.
func (l *LiveSettings) Now() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.now()
}

func (l *LiveSettings) now() time.Time {
	if l.clockAt.IsZero() {
		return time.Time{}
	}
	return l.clock.Add(time.Since(l.clockAt))
}

// setClock learns from a reading that took so long what the store's clock shows at the least. What was known
// before is kept if it is more, unless that cannot be: then the clock was set back.
func (l *LiveSettings) setClock(shown time.Time, took time.Duration) {
	if known := l.now(); known.After(shown) && !known.After(shown.Add(took)) {
		shown = known
	}
	l.clock, l.clockAt = shown, time.Now()
}

// Forget makes the next look read the store.
func (l *LiveSettings) Forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, q := range l.queues {
		q.until = time.Time{}
	}
	l.changes++
}

// ask reads queues, and the store's clock, with the lock open. It is closed again also where the store panics, as a
// caller's own may: the panic is then the caller's to recover from.
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

// queuesAndClock reads queues by name, and the store's clock. Names that no queue can have are not asked for.
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

// read reads the settings of the queues that are due, for one that is wanted. The lock is open meanwhile, so that nobody waits for a slow
// store but this caller and those that ask for a queue that was never read.
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

// count lets what was read of queues count for a while.
func (l *LiveSettings) count(names []string) {
	until := time.Now().Add(SettingsInterval)
	for _, name := range names {
		if q := l.queues[name]; q != nil {
			q.until = until
		}
	}
}

// put keeps queues as they were read.
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
