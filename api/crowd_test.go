package api_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/sluice-queue/sluice/api"
)

// TestManySlowCallersKeepNobodyFromHealth opens more connections than a server keeps, and then asks for /healthz.
func TestManySlowCallersKeepNobodyFromHealth(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- api.Serve(ctx, listener, newSite(t, api.Options{}), quiet) }()
	const callers = 150
	closed := make(chan bool, callers)
	for range callers {
		conn, err := net.Dial("tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		if _, err := conn.Write([]byte("G")); err != nil && !errors.Is(err, syscall.EPIPE) && !errors.Is(err, syscall.ECONNRESET) {
			t.Fatal(err)
		}
		go func() {
			_ = conn.SetReadDeadline(time.Now().Add(2 * time.Second)) // before the server gives up on silent callers
			_, err := conn.Read(make([]byte, 1))
			closed <- !errors.Is(err, os.ErrDeadlineExceeded)
		}()
	}
	answer, err := http.Get("http://" + listener.Addr().String() + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	n := 0
	for range callers {
		if <-closed {
			n++
		}
	}
	if answer.StatusCode != http.StatusOK || n < 50 {
		t.Errorf("status %d; %d of the oldest were closed, want 50 at least", answer.StatusCode, n)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
