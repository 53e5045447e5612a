package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/sluice-queue/sluice"
)

// The bounds of a connection. Nothing that is answered takes long; what is asked fits in a few lines.
const (
	readTimeout    = 5 * time.Second
	writeTimeout   = 30 * time.Second
	idleTimeout    = 60 * time.Second
	maxHeaderBytes = 16 << 10
	// maxConnections is how many connections a server keeps open: each needs one of the process's files, of which its store
	// needs some too.
	maxConnections = 100
	// leaving is how long answers that are under way may take when the server ends.
	leaving = 5 * time.Second
)

// Serve answers what comes to a listener until ctx ends, and then what is under way; it returns nil then. It closes the
// listener. It keeps 100 connections open: one more closes the oldest, so that callers who hold theirs open keep nobody from
// asking how the process does. The logger gets what clients do wrong; default: slog.Default.
func Serve(ctx context.Context, listener net.Listener, handler http.Handler, logger *slog.Logger) error {
	if err := cmp.Or(sluice.CheckGiven("listener", listener), sluice.CheckGiven("handler", handler)); err != nil {
		return fmt.Errorf("serve: %w", err)
	}
	if logger == nil {
		logger = slog.Default()
	}
	server := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: readTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ConnState:         (&crowd{most: maxConnections}).note,
		ErrorLog:          slog.NewLogLogger(logger.Handler(), slog.LevelDebug), // what clients do wrong is theirs
	}
	ended := make(chan struct{})
	defer func() { <-ended }()
	done, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		defer close(ended)
		<-done.Done()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaving)
		defer cancel()
		if server.Shutdown(ctx) != nil {
			_ = server.Close()
		}
	}()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// crowd is the open connections of a server, the oldest first.
type crowd struct {
	most int

	mu   sync.Mutex
	open []net.Conn
}

// note hears of each connection, and closes the oldest where there are too many.
func (c *crowd) note(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch state {
	case http.StateNew:
		c.open = append(c.open, conn)
	case http.StateClosed, http.StateHijacked:
		c.open = slices.DeleteFunc(c.open, func(other net.Conn) bool { return other == conn })
	}
	if len(c.open) > c.most {
		_ = c.open[0].Close() // the server hears of it, and says that it is closed
		c.open = c.open[1:]
	}
}
