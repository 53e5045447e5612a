package api_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
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

// TestStrangersDoNotCloseStreamsOfKnownCallers opens streams of known callers, and then more connections than a server keeps, which
// send half of a form.
func TestStrangersDoNotCloseStreamsOfKnownCallers(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		deadlines := http.NewResponseController(w)
		_ = errors.Join(deadlines.SetReadDeadline(time.Time{}), deadlines.SetWriteDeadline(time.Time{})) // the server gives up on nobody
		if r.URL.Path != "/stream" {
			_, _ = io.Copy(io.Discard, r.Body)
			return
		}
		api.Known(r.Context())
		_, _ = w.Write([]byte("open"))
		_ = deadlines.Flush()
		select {
		case <-r.Context().Done():
		case <-ctx.Done():
		}
	})
	go func() {
		ended <- api.ServeWith(ctx, listener, handler, api.ServeOptions{Connections: 40, Logger: quiet})
	}()
	open := func(from, text string) net.Conn {
		t.Helper()
		conn, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}).Dial("tcp", listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		if _, err := conn.Write([]byte(text)); err != nil && !errors.Is(err, syscall.EPIPE) && !errors.Is(err, syscall.ECONNRESET) {
			t.Fatal(err)
		}
		return conn
	}
	// within reports whether the connection ends within a time.
	within := func(conn net.Conn, d time.Duration) (closed bool) {
		_ = conn.SetReadDeadline(time.Now().Add(d))
		for {
			if _, err := conn.Read(make([]byte, 1000)); err != nil {
				return !errors.Is(err, os.ErrDeadlineExceeded)
			}
		}
	}
	const stream, half = "GET /stream HTTP/1.1\r\nHost: a\r\n\r\n", "POST /login HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\ntoken="
	var streams []net.Conn
	follow := func() {
		t.Helper()
		conn := open("127.0.0.1", stream)
		_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
		if _, err := conn.Read(make([]byte, 1000)); err != nil {
			t.Fatal("a stream was not answered:", err)
		}
		streams = append(streams, conn)
	}
	for range 5 {
		follow()
	}
	var other net.Conn
	if runtime.GOOS == "linux" { // elsewhere 127.0.0.2 is no address
		other = open("127.0.0.2", half)
	}
	var strangers []net.Conn
	for range 120 {
		strangers = append(strangers, open("127.0.0.1", half))
	}
	follow()
	for i, conn := range streams {
		if within(conn, 100*time.Millisecond) {
			t.Errorf("stream %d of a known caller was closed", i)
		}
	}
	if other != nil && within(other, 100*time.Millisecond) {
		t.Error("a stranger of another address was closed")
	}
	for i, conn := range strangers[:80] {
		if !within(conn, 10*time.Second) {
			t.Errorf("stranger %d of the crowd was not closed", i)
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
