package faulttest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/forward"
	"github.com/sluice-queue/sluice/internal/pgtest"
	"github.com/sluice-queue/sluice/upkeep"
)

// envCentre names the central store of a forwarder process.
const envCentre = "SLUICE_FAULTTEST_CENTRE"

// runForwarder is a forwarder process.
func runForwarder(ctx context.Context, local sluice.Store, queue string) error {
	centre, err := openAt(ctx, os.Getenv(envCentre))
	for ; errors.Is(err, sluice.ErrUnavailable); centre, err = openAt(ctx, os.Getenv(envCentre)) {
	}
	if err != nil {
		return err
	}
	defer func() { _ = centre.Close() }()
	return forward.New(local, centre, forward.Options{
		Queues: []string{queue}, Batch: 40, Poll: 20 * time.Millisecond, Lease: 500 * time.Millisecond, CallTimeout: 5 * time.Second,
		Backoff: sluice.Backoff{Base: 20 * time.Millisecond, Factor: 1, Max: 20 * time.Millisecond}, Logger: quiet,
	}).Run(ctx)
}

// gate is a proxy before a server. While it is shut, all connections are cut, and no new ones get through.
type gate struct {
	listener net.Listener
	server   string

	mu   sync.Mutex
	shut bool
	open map[net.Conn]bool
}

func newGate(t *testing.T, server string) *gate {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := &gate{listener: listener, server: server, open: make(map[net.Conn]bool)}
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go g.through(client)
		}
	}()
	t.Cleanup(func() {
		_ = listener.Close()
		g.set(true)
	})
	return g
}

func (g *gate) set(shut bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = shut
	if shut {
		for conn := range g.open {
			_ = conn.Close()
		}
		clear(g.open)
	}
}

// enter remembers connections to cut later. It reports whether the gate is open.
func (g *gate) enter(conns ...net.Conn) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, conn := range conns {
		g.open[conn] = true
	}
	return !g.shut
}

func (g *gate) through(client net.Conn) {
	defer func() { _ = client.Close() }()
	server, err := net.Dial("tcp", g.server)
	if err != nil {
		return
	}
	defer func() { _ = server.Close() }()
	if !g.enter(client, server) {
		return
	}
	go func() {
		_, _ = io.Copy(server, client)
		_ = server.Close()
	}()
	_, _ = io.Copy(client, server)
}

// office works at the centre. It does each job that arrives, and remembers the order.
type office struct {
	mu   sync.Mutex
	done map[sluice.ID]int
	in   []sluice.ID // the order in which jobs began
}

func (o *office) work(ctx context.Context, store sluice.Store, queue string) error {
	for ctx.Err() == nil {
		claimed, err := store.Claim(ctx, sluice.ClaimRequest{Queue: queue, Limit: 100, Holder: "centre:1:x", Lease: time.Minute, Token: sluice.NewToken()})
		if err != nil {
			return err
		}
		var settlements []sluice.Settlement
		o.mu.Lock()
		for _, c := range claimed.Jobs {
			o.done[c.ID]++
			o.in = append(o.in, c.ID)
			settlements = append(settlements, sluice.Settlement{ID: c.ID, Token: c.Token, Event: sluice.EventComplete})
		}
		o.mu.Unlock()
		if _, err := store.Settle(ctx, settlements); err != nil {
			return err
		}
		if len(claimed.Jobs) == 0 {
			time.Sleep(5 * time.Millisecond)
		}
	}
	return nil
}

// TestForwardedJobsArriveOnceAndInOrder runs two forwarders, which is a mistake of an operator, and kills both again
// and again. The connections to the centre are cut for a while.
func TestForwardedJobsArriveOnceAndInOrder(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	const queue = "edge"
	address := pgtest.NewDatabase(t)
	centre, err := openAt(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = centre.Close() }()
	at, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	g := newGate(t, at.Host)
	at.Host = g.listener.Addr().String()
	localAt := "sqlite:" + filepath.Join(t.TempDir(), "edge.db")
	local, err := openAt(t.Context(), localAt)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = local.Close() }()
	settings := sluice.DefaultSettings()
	settings.RecoverInterval = 100 * time.Millisecond
	client := sluice.NewClient(local, sluice.ClientOptions{})
	if _, err := client.EnsureQueue(t.Context(), queue, settings, sluice.Act{By: "test"}); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var beside sync.WaitGroup
	defer beside.Wait()
	defer stop()
	seen := &office{done: make(map[sluice.ID]int)}
	beside.Go(func() {
		if err := seen.work(ctx, centre, queue); err != nil && ctx.Err() == nil {
			t.Error(err)
		}
	})
	beside.Go(func() {
		_ = upkeep.New(local, upkeep.Options{Interval: 50 * time.Millisecond, Logger: quiet}).Run(ctx) // Run returns nil once ctx ends
	})

	spawn := func() *exec.Cmd {
		b := &bank{T: t, address: localAt, queue: queue, env: []string{envCentre + "=" + at.String()}}
		return b.spawn("forwarder")
	}
	forwarders := []*exec.Cmd{spawn(), spawn()}
	orders := make([][]sluice.ID, 6)
	var plain, later []sluice.ID
	for range 15 {
		addToForward(t, client, queue, orders, &plain, &later)
		time.Sleep(time.Duration(random.IntN(150)) * time.Millisecond)
		switch random.IntN(3) {
		case 0:
			g.set(true)
		case 1:
			g.set(false)
		}
		victim := random.IntN(len(forwarders))
		signalTo(t, forwarders[victim], syscall.SIGKILL)
		_ = forwarders[victim].Wait() // it was killed
		forwarders[victim] = spawn()
	}
	g.set(false)
	awaitForwarded(t, local, queue)
	seen.has(t, orders, plain)
	for _, id := range later {
		if j, err := centre.Job(t.Context(), id); err != nil || j.State != sluice.StateQueued || time.Until(j.DueAt) < 50*time.Minute {
			t.Errorf("a job that is due in an hour is %s, due %s, %v", j.State, j.DueAt, err)
		}
	}
	page, err := client.Jobs(t.Context(), sluice.JobFilter{Queue: queue, Limit: 10_000})
	if err != nil {
		t.Fatal(err)
	}
	for _, j := range page.Jobs {
		if j.State != sluice.StateCompleted || j.Attempts > 0 {
			t.Errorf("job %s is %s here, with %d attempts", j.ID, j.State, j.Attempts)
		}
	}
}

// addToForward enqueues jobs with and without an order, and one that is due later.
func addToForward(t *testing.T, client *sluice.Client, queue string, orders [][]sluice.ID, plain, later *[]sluice.ID) {
	t.Helper()
	var jobs []sluice.NewJob
	add := func(options sluice.EnqueueOptions) sluice.ID {
		options.ID = sluice.NewID()
		jobs = append(jobs, sluice.NewJob{Queue: queue, Payload: []byte(`{}`), EnqueueOptions: options})
		return options.ID
	}
	for range 3 {
		for i := range orders {
			orders[i] = append(orders[i], add(sluice.EnqueueOptions{OrderKey: fmt.Sprint(i)}))
		}
	}
	for range 20 {
		*plain = append(*plain, add(sluice.EnqueueOptions{}))
	}
	key := add(sluice.EnqueueOptions{Key: fmt.Sprint(len(*plain))})
	*plain, *later = append(*plain, key), append(*later, add(sluice.EnqueueOptions{Delay: time.Hour}))
	if _, err := client.EnqueueMany(t.Context(), jobs); err != nil {
		t.Fatal(err)
	}
}

// awaitForwarded waits until the local store has no more jobs to forward.
func awaitForwarded(t *testing.T, local sluice.Store, queue string) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		status, err := forward.StatusOf(t.Context(), local, []string{queue})
		if err == nil && status[0].Waiting == 0 && status[0].OnTheWay == 0 {
			depth, err := local.Depth(t.Context(), queue, sluice.DepthLimit)
			if err == nil && depth.Claimed == 0 {
				return
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("not forwarded after ten minutes: %+v, %v", status, err)
		}
	}
}

// has waits until all jobs were done at the centre. It checks that each job was done once, and in order.
func (o *office) has(t *testing.T, orders [][]sluice.ID, plain []sluice.ID) {
	t.Helper()
	want := slices.Concat(append(slices.Clone(orders), plain)...)
	for deadline := time.Now().Add(10 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		o.mu.Lock()
		n := len(o.in)
		o.mu.Unlock()
		if n >= len(want) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d jobs were done after a minute", n, len(want))
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, id := range want {
		if o.done[id] != 1 {
			t.Errorf("job %s was done %d times", id, o.done[id])
		}
	}
	for _, ids := range orders {
		last := -1
		for _, id := range ids {
			at := slices.Index(o.in, id)
			if at < last {
				t.Errorf("job %s was done before the one ahead of it", id)
			}
			last = at
		}
	}
}
