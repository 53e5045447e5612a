package demo

import (
	"context"
	"net"
	"net/http"
	"sync"
	"time"
)

// target is the local server that the demo's executions call. It notes each Idempotency-Key.
type target struct {
	host   string
	server *http.Server

	mu    sync.Mutex
	calls map[string]int
}

func newTarget(ctx context.Context) (*target, error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	t := &target{host: listener.Addr().String(), calls: make(map[string]int)}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /work", t.work)
	t.server = &http.Server{Handler: mux, ReadTimeout: 10 * time.Second}
	go func() { _ = t.server.Serve(listener) }() // it ends by close
	return t, nil
}

func (t *target) work(w http.ResponseWriter, r *http.Request) {
	t.mu.Lock()
	t.calls[r.Header.Get("Idempotency-Key")]++
	t.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write([]byte(`{"done": true}`))
}

// counted says how many different keys came, and how many calls in all.
func (t *target) counted() (keys, all int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, n := range t.calls {
		all += n
	}
	return len(t.calls), all
}

func (t *target) close() { _ = t.server.Close() }
