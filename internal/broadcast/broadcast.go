// Package broadcast carries signals from a store to the workers of the same process.
package broadcast

import (
	"context"
	"sync"

	"github.com/sluice-queue/sluice"
)

// Broadcaster gives every signal to everybody who listens. The zero value works.
type Broadcaster struct {
	mu        sync.RWMutex
	listeners map[*func(sluice.Signal)]struct{}
}

// Listen calls signal for each signal that is sent until ctx ends, and for some as soon as none can be missed any more. The
// function must not block.
func (b *Broadcaster) Listen(ctx context.Context, signal func(sluice.Signal), first ...sluice.Signal) {
	b.mu.Lock()
	if b.listeners == nil {
		b.listeners = make(map[*func(sluice.Signal)]struct{})
	}
	b.listeners[&signal] = struct{}{}
	b.mu.Unlock()
	for _, s := range first {
		signal(s)
	}

	<-ctx.Done()

	b.mu.Lock()
	delete(b.listeners, &signal)
	b.mu.Unlock()
}

// Send gives a signal to all listeners.
func (b *Broadcaster) Send(signal sluice.Signal) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	for listener := range b.listeners {
		(*listener)(signal)
	}
}
