package httpapi_test

import (
	"bytes"
	"encoding/json"
	"hash/fnv"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/cmd/httpapi"
	"github.com/sluice-queue/sluice/store/memory"
	"github.com/sluice-queue/sluice/store/remote"
)

// cutter stands between clients and a server. At random it cuts a connection before the request or the answer arrives,
// and delays other bytes.
type cutter struct {
	to string
	// spared are the beginnings of requests that are delayed, but not cut.
	spared []string

	mu   sync.Mutex
	lots *rand.Rand
}

// cutOneIn is the mean number of transfers per cut, for requests and for answers.
const cutOneIn = 10

// cutting starts a cutter, and returns its address.
func cutting(t *testing.T, address string) string { return startCutter(t, &cutter{to: address}) }

// cuttingOthers is cutting, but for requests that answer less when they are sent again: whether a job is a duplicate and which one it
// replaced, when the next job is due, and the secret of a token.
func cuttingOthers(t *testing.T, address string) string {
	return startCutter(t, &cutter{to: address, spared: []string{"POST /api/v1/jobs ", "POST /api/v1/work/claim ", "POST /api/v1/tokens"}})
}

// startCutter starts a cutter, and returns its address. The name of the test is its seed.
func startCutter(t *testing.T, c *cutter) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	name := fnv.New64()
	_, _ = name.Write([]byte(t.Name()))
	c.lots = rand.New(rand.NewPCG(name.Sum64(), 1)) //nolint:gosec // a test needs no secure random numbers
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
	var spared atomic.Bool // the request at hand
	heed := func(part []byte) {
		if beginsRequest.Match(part) {
			spared.Store(slices.ContainsFunc(c.spared, func(begin string) bool { return bytes.HasPrefix(part, []byte(begin)) }))
		}
	}
	var both sync.WaitGroup
	both.Go(func() { c.copy(near, far, &spared, heed) })
	both.Go(func() { c.copy(far, near, &spared, func([]byte) {}) })
	both.Wait()
}

var beginsRequest = regexp.MustCompile(`^[A-Z]+ /`)

// copy copies one way, and then closes both connections.
func (c *cutter) copy(from, to net.Conn, spared *atomic.Bool, heed func(part []byte)) {
	defer func() { _, _ = from.Close(), to.Close() }()
	part := make([]byte, 64<<10)
	for {
		n, err := from.Read(part)
		cut, delay := c.lot()
		time.Sleep(delay)
		heed(part[:n])
		if err != nil || cut && !spared.Load() {
			return
		}
		if _, err := to.Write(part[:n]); err != nil {
			return
		}
	}
}

// TestWatchThatWasCutHearsWhatItMissed cuts the stream of a store, and cancels a claimed job before it can be opened again.
func TestWatchThatWasCutHearsWhatItMissed(t *testing.T) {
	t.Parallel()
	behind := memory.New(memory.Options{})
	t.Cleanup(func() { _ = behind.Close() })
	api := httpapi.New(behind, httpapi.Options{NoLogin: true})
	var away atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if away.Load() {
			panic(http.ErrAbortHandler)
		}
		api.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	store, err := remote.Open(t.Context(), server.URL, remote.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	heard := make(chan sluice.Signal, 100)
	go func() {
		_ = store.Watch(t.Context(), func(s sluice.Signal) {
			select {
			case heard <- s:
			case <-t.Context().Done():
			}
		})
	}()
	until := func(what string, want func(sluice.Signal) bool) {
		t.Helper()
		for late := time.After(time.Minute); ; {
			select {
			case s := <-heard:
				if want(s) {
					return
				}
			case <-late:
				t.Fatalf("the watch does not hear that %s", what)
			}
		}
	}
	client := sluice.NewClient(behind, sluice.ClientOptions{})
	receipt, err := client.Enqueue(t.Context(), sluice.NewJob{Queue: "payments", Payload: json.RawMessage(`{"amount":1}`)})
	if err != nil {
		t.Fatal(err)
	}
	claimed, err := behind.Claim(t.Context(), sluice.ClaimRequest{Queue: "payments", Limit: 1, Lease: time.Minute, Holder: "host:1:test", Token: sluice.NewToken()})
	if err != nil || len(claimed.Jobs) != 1 {
		t.Fatalf("claimed %d jobs (%v), want 1", len(claimed.Jobs), err)
	}
	until("the server hears all", func(s sluice.Signal) bool { return s.Hearing == sluice.HearsAll })
	away.Store(true)
	server.CloseClientConnections()
	until("it hears less", func(s sluice.Signal) bool { return s.Hearing == sluice.HearsLess })
	if err := client.Cancel(t.Context(), []sluice.ID{receipt.ID}, sluice.Act{By: "ada", Reason: "a wrong amount"}); err != nil {
		t.Fatal(err)
	}
	away.Store(false)
	until("the job is cancelled", func(s sluice.Signal) bool { return s.Cancelled == receipt.ID })
}
