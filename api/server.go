package api

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/sluice-queue/sluice"
)

// The bounds of a connection (S-8). Nothing that is answered takes long; what is asked fits in a few lines.
const (
	readTimeout    = 5 * time.Second
	writeTimeout   = 30 * time.Second
	idleTimeout    = 60 * time.Second
	maxHeaderBytes = 16 << 10
	// leaving is how long answers that are under way may take when the server ends.
	leaving = 5 * time.Second
)

// Serve answers what comes to a listener until ctx ends, and then what is under way; it returns nil then. It closes the
// listener. The logger gets what clients do wrong; default: slog.Default.
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
