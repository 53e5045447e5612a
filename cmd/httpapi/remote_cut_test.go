package httpapi_test

import (
	"hash/fnv"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"
)

// cutter stands between clients and a server. At random it cuts a connection before the request or the answer arrives,
// and delays other bytes.
type cutter struct {
	to string

	mu   sync.Mutex
	lots *rand.Rand
}

// cutOneIn is the mean number of transfers per cut, for requests and for answers.
const cutOneIn = 10

// cutting starts a cutter, and returns its address. The name of the test is its seed.
func cutting(t *testing.T, address string) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	name := fnv.New64()
	_, _ = name.Write([]byte(t.Name()))
	c := &cutter{to: address, lots: rand.New(rand.NewPCG(name.Sum64(), 1))} //nolint:gosec // a test needs no secure random numbers
	var carrying sync.WaitGroup
	t.Cleanup(func() {
		_ = listener.Close()
		carrying.Wait()
	})
	carrying.Go(func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			carrying.Go(func() { c.carry(near) })
		}
	})
	return listener.Addr().String()
}

// lot decides at random whether to cut, and how long to wait.
func (c *cutter) lot() (cut bool, delay time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lots.IntN(cutOneIn) == 0, time.Duration(c.lots.IntN(3)) * time.Millisecond
}

// carry copies bytes between two connections until one side closes, or lot decides to cut.
func (c *cutter) carry(near net.Conn) {
	defer func() { _ = near.Close() }()
	far, err := net.Dial("tcp", c.to)
	if err != nil {
		return
	}
	defer func() { _ = far.Close() }()
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{near, far}, {far, near}} {
		both.Go(func() {
			defer func() { _, _ = near.Close(), far.Close() }()
			bytes := make([]byte, 64<<10)
			for {
				n, err := way[0].Read(bytes)
				cut, delay := c.lot()
				time.Sleep(delay)
				if cut || err != nil {
					return
				}
				if _, err := io.Writer(way[1]).Write(bytes[:n]); err != nil {
					return
				}
			}
		})
	}
	both.Wait()
}
