package api

import (
	"cmp"
	"context"
	"crypto/tls"
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
	return ServeWith(ctx, listener, handler, ServeOptions{Logger: logger})
}

// ServeOptions adjust [ServeWith]. The zero value serves as [Serve] does.
type ServeOptions struct {
	// Connections is the most open connections. Another one closes the oldest that asks nothing, else the oldest.
	// Default: 100.
	Connections int
	// TLS encrypts the connections. Default: they are not encrypted.
	TLS *tls.Config
	// Logger gets clients' errors at level debug. Default: slog.Default.
	Logger *slog.Logger
}

// ServeWith is [Serve] with options. A handler that needs more time moves the deadlines of its connection, with an
// http.ResponseController.
func ServeWith(ctx context.Context, listener net.Listener, handler http.Handler, options ServeOptions) error {
	if err := cmp.Or(sluice.CheckGiven("listener", listener), sluice.CheckGiven("handler", handler)); err != nil {
		return fmt.Errorf("serve: %w", err)
	}
	if options.Logger == nil {
		options.Logger = slog.Default()
	}
	server := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: readTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		TLSConfig:         options.TLS,
		ConnState:         (&crowd{most: cmp.Or(options.Connections, maxConnections)}).note,
		ErrorLog:          slog.NewLogLogger(options.Logger.Handler(), slog.LevelDebug), // clients' errors are not the process's
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
	serve := server.Serve
	if options.TLS != nil {
		serve = func(l net.Listener) error { return server.ServeTLS(l, "", "") }
	}
	if err := serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// crowd holds the open connections of a server, the oldest first.
type crowd struct {
	most int

	mu   sync.Mutex
	open []guest
}

// guest is an open connection. It asks if a request is under way.
type guest struct {
	conn net.Conn
	asks bool
}

// note is called for each change of a connection. If there are too many, it closes the oldest that asks nothing, else
// the oldest.
func (c *crowd) note(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at := slices.IndexFunc(c.open, func(g guest) bool { return g.conn == conn })
	switch state {
	case http.StateNew:
		c.open = append(c.open, guest{conn: conn})
	case http.StateActive, http.StateIdle:
		if at >= 0 {
			c.open[at].asks = state == http.StateActive
		}
	case http.StateClosed, http.StateHijacked:
		if at >= 0 {
			c.open = slices.Delete(c.open, at, at+1)
		}
	}
	if len(c.open) > c.most {
		oldest := max(slices.IndexFunc(c.open[:len(c.open)-1], func(g guest) bool { return !g.asks }), 0)
		_ = c.open[oldest].conn.Close() // the server notices and reports it as closed
		c.open = slices.Delete(c.open, oldest, oldest+1)
	}
}
