package crashtest

import (
	"io"
	"net"
	"sync"
	"testing"
)

// wire is a connection to a server that a test can cut. The server gets all that was sent, but its replies are lost.
type wire struct {
	address string
	to      string

	mu    sync.Mutex
	conns []net.Conn
}

func newWire(t *testing.T, to string) *wire {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{address: listener.Addr().String(), to: to}
	t.Cleanup(func() {
		_ = listener.Close()
		w.cut()
	})
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			w.join(conn)
		}
	}()
	return w
}

// join copies bytes in both directions.
func (w *wire) join(near net.Conn) {
	far, err := net.Dial("tcp", w.to)
	if err != nil {
		_ = near.Close()
		return
	}
	w.mu.Lock()
	w.conns = append(w.conns, near)
	w.mu.Unlock()
	go func() {
		_, _ = io.Copy(far, near) // ends when cut closes the near side
		_ = far.Close()
	}()
	go func() {
		_, _ = io.Copy(near, far)
		_ = near.Close()
	}()
}

// cut closes the near side of every connection. The server has received the requests, but its replies go nowhere.
func (w *wire) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, conn := range w.conns {
		_ = conn.Close()
	}
	w.conns = nil
}
