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
// closes the listener. Serve keeps at most 100 connections open: another one closes an old one, so that idle
// callers never block a health check; see [ServeOptions]. The logger gets clients' errors at level debug; default: slog.Default.
func Serve(ctx context.Context, listener net.Listener, handler http.Handler, logger *slog.Logger) error {
	return ServeWith(ctx, listener, handler, ServeOptions{Logger: logger})
}

// ServeOptions adjust [ServeWith]. The zero value serves as [Serve] does.
type ServeOptions struct {
	// Connections is the most open connections. Another one closes the oldest idle one, else the oldest without a [Known]
	// caller, else the oldest. If one address has more than 16 without a known caller, the oldest of those goes first.
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
	open := &crowd{most: cmp.Or(options.Connections, maxConnections)}
	server := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: readTimeout,
		ReadTimeout:       readTimeout,
		WriteTimeout:      writeTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		TLSConfig:         options.TLS,
		ConnState:         open.note,
		ConnContext:       open.arrive,
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
