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

// The limits of a connection. Every answer is quick, and every request is small.
const (
	readTimeout    = 5 * time.Second
	writeTimeout   = 30 * time.Second
	idleTimeout    = 60 * time.Second
	maxHeaderBytes = 16 << 10
	// maxConnections is the most open connections of a server. Each takes one of the process's file
	// descriptors, which the store needs too.
	maxConnections = 100
	// leaving is how long answers under way may take when the server ends.
	leaving = 5 * time.Second
)

// Serve answers requests on a listener until ctx ends, finishes the answers under way, and returns nil. Serve
// closes the listener. Serve keeps at most 100 connections open: another one closes the oldest, so that idle
// callers never block a health check. The logger gets clients' errors at level debug; default: slog.Default.
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
		ErrorLog:          slog.NewLogLogger(logger.Handler(), slog.LevelDebug), // clients' errors are not the process's
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

// crowd holds the open connections of a server, the oldest first.
type crowd struct {
	most int

	mu   sync.Mutex
	open []net.Conn
}

// note is called for each change of a connection, and closes the oldest if there are too many.
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
		_ = c.open[0].Close() // the server notices and reports it as closed
		c.open = c.open[1:]
	}
}
