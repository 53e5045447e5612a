package sluice

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// SettingsInterval is how old the settings that a process acts on may be: a change takes effect
// everywhere within it.
const SettingsInterval = time.Second

// LiveSettings reads the settings of queues, at most once per SettingsInterval however often it is
// asked. It may be used by many goroutines.
type LiveSettings struct {
	store Store

	mu     sync.Mutex
	queues map[string]Queue
	next   time.Time
}

// NewLiveSettings reads settings from a store. It does no reading itself.
func NewLiveSettings(store Store) *LiveSettings { return &LiveSettings{store: store} }

// Queue gives a queue's settings as of now, or as of at most one interval ago. A queue that is not
// stored has Version 0 and the default settings. While the store cannot be reached, the last good
// settings go on to count.
func (l *LiveSettings) Queue(ctx context.Context, name string) (Queue, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !time.Now().Before(l.next) {
		if err := l.load(ctx); err != nil && l.queues == nil {
			return Queue{}, err
		}
	}
	if q, ok := l.queues[name]; ok {
		return q, nil
	}
	return Queue{Name: name, Settings: DefaultSettings()}, nil
}

// Forget makes the next look read the store.
func (l *LiveSettings) Forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.next = time.Time{}
}

func (l *LiveSettings) load(ctx context.Context) error {
	queues, err := l.store.Queues(ctx)
	l.next = time.Now().Add(SettingsInterval)
	if err != nil {
		return fmt.Errorf("read settings: %w", err)
	}
	l.queues = make(map[string]Queue, len(queues))
	for _, q := range queues {
		l.queues[q.Name] = q
	}
	return nil
}
