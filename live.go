package sluice

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

// SettingsInterval is how old the settings that a process acts on may be: a change takes effect
// everywhere within it.
const SettingsInterval = time.Second

// LiveSettings reads the settings of queues, at most once per SettingsInterval however often it is
// asked. It may be used by many goroutines.
type LiveSettings struct {
	store   Store
	options LiveOptions

	mu      sync.Mutex
	queues  map[string]Queue
	next    time.Time // when to read again
	reading bool
	changes int // how often somebody asked to forget

	clock   time.Time // what the store's clock showed at the least,
	clockAt time.Time // at this instant of ours; zero: no queue was read yet
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
	return &LiveSettings{store: store, options: options}
}

// Queue gives a queue's settings as of now, or as of at most one interval ago. A queue that is not
// stored has Version 0 and the default settings. While the store cannot be reached, the last good
// settings go on to count.
func (l *LiveSettings) Queue(ctx context.Context, name string) (Queue, error) {
	return l.queueBy(ctx, l.store, name)
}

// queueBy is Queue, reading through the caller's transaction where one is under way: with all
// connections in transactions, there would be none left to read with.
func (l *LiveSettings) queueBy(ctx context.Context, from Enqueuer, name string) (Queue, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	// While one caller reads, the others go on with what was read last.
	if due := !time.Now().Before(l.next); l.queues == nil || due && !l.reading {
		if err := l.read(ctx, from); err != nil && l.queues == nil {
			return Queue{}, err
		}
	}
	if q, ok := l.queues[name]; ok {
		return q, nil
	}
	return Queue{Name: name, Settings: DefaultSettings()}, nil
}

// Now is what the store's clock shows at the least; zero: no queue was read yet. It lies behind that clock by the
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
	l.next = time.Time{}
	l.changes++
}

// ask reads the queues with the lock open. It is closed again also where the store panics, as a caller's own may: the
// panic is then the caller's to recover from.
func (l *LiveSettings) ask(ctx context.Context, from Enqueuer) ([]Queue, error) {
	l.reading = true
	l.mu.Unlock()
	defer func() {
		l.mu.Lock()
		l.reading = false
	}()
	return from.Queues(ctx)
}

// read reads the settings of all queues. The lock is open meanwhile, so that nobody waits for a slow
// store but this caller.
func (l *LiveSettings) read(ctx context.Context, from Enqueuer) error {
	changes := l.changes
	asked := time.Now()
	queues, err := l.ask(ctx, from)
	if err != nil {
		if ctx.Err() == nil {
			l.next = time.Now().Add(SettingsInterval)
		}
		return fmt.Errorf("read settings: %w", err)
	}
	if l.changes == changes {
		l.next = time.Now().Add(SettingsInterval)
	}
	if len(queues) > 0 {
		l.setClock(queues[0].Now, time.Since(asked))
	}
	before := l.queues
	l.queues = make(map[string]Queue, len(queues))
	for _, q := range queues {
		q.keepGoodSchema(l.options.PayloadChecker)
		if q.Wrong != "" && q.Wrong != before[q.Name].Wrong {
			l.options.Logger.Warn("stored settings refused", "queue", q.Name, "error", q.Wrong)
		}
		l.queues[q.Name] = q
	}
	return nil
}
