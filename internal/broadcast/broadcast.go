// Package broadcast carries signals from a store to the workers of the same process, without a
// server.
//
// Begin with [Broadcaster]: a store calls Send after each commit, and its Watch method calls
// Listen. Each signal reaches every listener.
//
// Read next: sluice.Signal for the meaning of a signal, and package postgres for signals between
// processes.
package broadcast

import (
	"context"
	"sync"

	"github.com/sluice-queue/sluice"
)

// Broadcaster sends every signal to all listeners. The zero value works.
type Broadcaster struct {
	mu        sync.RWMutex
	listeners map[*func(sluice.Signal)]struct{}
}

// Listen calls signal for each signal that is sent until ctx ends. Once no signal can be missed any
// more, Listen calls it for each of first. The function must not block.
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

// Send sends a signal to all listeners.
func (b *Broadcaster) Send(signal sluice.Signal) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	for listener := range b.listeners {
		(*listener)(signal)
	}
}
