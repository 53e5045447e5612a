package faulttest

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"net"
	"net/url"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/demo"
	"github.com/sluice-queue/sluice/internal/pgtest"
	"github.com/sluice-queue/sluice/store/postgres"
)

// proxy stands between a store and its server. It can swallow the server's answer to a message and cut the connection.
// To the store, that looks like a commit whose answer is lost.
type proxy struct {
	listener net.Listener
	server   string
	cut      atomic.Pointer[func(request []byte) bool]
	cuts     atomic.Int32
	slow     atomic.Int64 // how long each answer takes, in ns
}

func newProxy(t *testing.T, server string) *proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: listener, server: server}
	go p.accept()
	t.Cleanup(func() { _ = listener.Close() })
	return p
}

func (p *proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		go p.serve(client)
	}
}

func (p *proxy) serve(client net.Conn) {
	server, err := net.Dial("tcp", p.server)
	if err != nil {
		_ = client.Close()
		return
	}
	var swallow atomic.Bool
	go func() { // requests
		defer func() { _ = server.Close() }()
		buffer, known := make([]byte, 1<<20), make(statements)
		for {
			n, err := client.Read(buffer)
			if err != nil {
				return
			}
			request := known.read(buffer[:n])
			if cut := p.cut.Load(); cut != nil && (*cut)(request) && p.cut.CompareAndSwap(cut, nil) {
				swallow.Store(true)
			}
			if _, err := server.Write(buffer[:n]); err != nil {
				return
			}
		}
	}()
	defer func() { _ = client.Close() }()
	buffer := make([]byte, 1<<20)
	for {
		n, err := server.Read(buffer)
		if err != nil {
			return
		}
		if swallow.Load() {
			p.cuts.Add(1)
			return // the server has done the request, but the store gets no answer
		}
		time.Sleep(time.Duration(p.slow.Load()))
		if _, err := client.Write(buffer[:n]); err != nil {
			return
		}
	}
}

// enqueued is a payload that marks the message which stores a job.
const enqueued = `{"is":"enqueued"}`

// statements maps names of prepared statements of a connection to their texts.
type statements map[string]string

// read returns the parts of a request that run something, with the texts of prepared statements. Preparing a statement
// runs nothing.
func (s statements) read(request []byte) []byte {
	var runs []byte
	for rest := request; len(rest) > 5; {
		size := 1 + int(binary.BigEndian.Uint32(rest[1:5]))
		if size < 5 || size > len(rest) {
			return append(runs, rest...) // the rest of the message comes later, or this is no message
		}
		kind, body := rest[0], rest[5:size]
		first, more, _ := bytes.Cut(body, []byte{0})
		second, _, _ := bytes.Cut(more, []byte{0})
		switch {
		case kind == 'P' && len(first) > 0:
			s[string(first)] = string(second)
		case kind == 'B':
			runs = append(append(runs, s[string(second)]...), body...)
		default:
			runs = append(runs, body...)
		}
		rest = rest[size:]
	}
	return runs
}

// cutAnswerTo swallows the answer to the next message that contains a text.
func (p *proxy) cutAnswerTo(text string) {
	cut := func(request []byte) bool { return contains(request, text) }
	p.cut.Store(&cut)
}

func contains(haystack []byte, needle string) bool {
	for i := 0; i+len(needle) <= len(haystack); i++ {
		if string(haystack[i:i+len(needle)]) == needle {
			return true
		}
	}
	return false
}

// behindProxy opens a store whose answers can be cut.
func behindProxy(t *testing.T) (*postgres.Store, *proxy) {
	t.Helper()
	at, err := url.Parse(pgtest.NewDatabase(t))
	if err != nil {
		t.Fatal(err)
	}
	p := newProxy(t, at.Host)
	at.Host = p.listener.Addr().String()
	store, err := postgres.Open(t.Context(), at.String(), postgres.Options{Migrate: true, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return store, p
}

// claimOne claims the only job. A job that was put back may be found by a later claim only. On a busy machine a claim
// takes long, and not every claim searches before the low-water marks.
func claimOne(t *testing.T, store sluice.Store) *sluice.Claim {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Minute); ; time.Sleep(10 * time.Millisecond) {
		claimed, err := store.Claim(t.Context(), sluice.ClaimRequest{Queue: "q", Limit: 10, Holder: "h:1:x", Lease: time.Minute, Token: sluice.NewToken()})
		if err != nil || len(claimed.Jobs) > 1 {
			t.Fatalf("claimed %d jobs, %v", len(claimed.Jobs), err)
		}
		if len(claimed.Jobs) == 1 {
			return claimed.Jobs[0]
		}
		if time.Now().After(deadline) {
			t.Fatal("claimed no job for 10 min, want 1")
		}
	}
}

// TestLostAnswersChangeNothing cuts the answer to the commit of each verb. The store retries by itself. The caller must
// see the outcome as if nothing had happened, and the verb must have happened once.
func TestLostAnswersChangeNothing(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	store, p := behindProxy(t)
	client := sluice.NewClient(store, sluice.ClientOptions{})
	enqueue := func(key string) sluice.ID {
		t.Helper()
		receipt, err := client.Enqueue(ctx, sluice.NewJob{Queue: "q", Payload: []byte(enqueued), EnqueueOptions: sluice.EnqueueOptions{Key: key}})
		if err != nil || receipt.Duplicate {
			t.Fatalf("enqueue: %+v, %v", receipt, err)
		}
		return receipt.ID
	}
	claim := func() *sluice.Claim {
		t.Helper()
		return claimOne(t, store)
	}
	settle := func(c *sluice.Claim, event sluice.Event) {
		t.Helper()
		errs, err := store.Settle(ctx, []sluice.Settlement{{ID: c.ID, Token: c.Token, Event: event, Error: "x", Holder: c.Holder}})
		if err != nil || errs[0] != nil {
			t.Fatalf("%s: %v, %v", event, errs, err)
		}
	}
	is := func(id sluice.ID, state sluice.State, attempts int) {
		t.Helper()
		job, err := client.Job(ctx, id)
		if err != nil || job.State != state || job.Attempts != attempts {
			t.Fatalf("job is %s with %d attempts, %v; want %s with %d", job.State, job.Attempts, err, state, attempts)
		}
	}
	lost := int32(0)
	cut := func(text string, do func()) {
		t.Helper()
		p.cutAnswerTo(text)
		do()
		if lost++; p.cuts.Load() != lost {
			t.Fatalf("the answer to %q was not cut", text)
		}
	}
	enqueue("") // every statement is prepared from here on
	settle(claim(), sluice.EventRetry)
	settle(claim(), sluice.EventRelease)
	settle(claim(), sluice.EventComplete)

	var id sluice.ID
	cut(enqueued, func() { id = enqueue("") })
	var c *sluice.Claim
	cut("set state = 'claimed'", func() { c = claim() })
	cut("set state = 'queued', in_tenant_queue = false, holder = null", func() { settle(c, sluice.EventRetry) })
	is(id, sluice.StateQueued, 1)
	c = claim()
	cut("delete from sluice.live l", func() { settle(c, sluice.EventBury) })
	is(id, sluice.StateDead, 2)
	cut("commit", func() {
		if err := client.Requeue(ctx, []sluice.ID{id}, sluice.Act{By: "ada", Reason: "again"}); err != nil {
			t.Fatal(err)
		}
	})
	is(id, sluice.StateQueued, 0)
	cut("commit", func() {
		if err := client.Cancel(ctx, []sluice.ID{id}, sluice.Act{By: "ada"}); err != nil {
			t.Fatal(err)
		}
	})
	is(id, sluice.StateCancelled, 0)
	cut("commit", func() { id = enqueue("key") })
	cut("commit", func() {
		if err := client.Pause(ctx, "q", sluice.Act{By: "ada"}); err != nil {
			t.Fatal(err)
		}
	})
	queue, err := client.Queue(ctx, "q")
	if err != nil || !queue.Settings.Paused || queue.Version != 2 {
		t.Fatalf("queue %+v, %v", queue, err)
	}
	page, err := client.Jobs(ctx, sluice.JobFilter{Queue: "q"})
	if err != nil || len(page.Jobs) != 3 {
		t.Fatalf("%d jobs, want 3: %v", len(page.Jobs), err)
	}
}

// TestLostAnswersToSharedTransactionsStoreEachJobOnce cuts answers while many callers enqueue in shared transactions.
func TestLostAnswersToSharedTransactionsStoreEachJobOnce(t *testing.T) {
	t.Parallel()
	store, p := behindProxy(t)
	client := sluice.NewClient(store, sluice.ClientOptions{})
	enqueue := func() {
		receipt, err := client.Enqueue(t.Context(), sluice.NewJob{Queue: "q", Payload: []byte(enqueued)})
		if err != nil || receipt.Duplicate {
			t.Errorf("enqueue: %+v, %v", receipt, err)
		}
	}
	enqueue() // the statement is prepared from here on
	p.slow.Store(int64(2 * time.Millisecond))
	const callers, each, cuts = 8, 20, 3
	var wait sync.WaitGroup
	for range callers {
		wait.Go(func() {
			for range each {
				enqueue()
			}
		})
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		wait.Wait()
	}()
	for n := range int32(cuts) {
		p.cutAnswerTo(enqueued)
		for over := false; p.cuts.Load() == n && !over; {
			select {
			case <-ended:
				over = true
			case <-time.After(time.Millisecond):
			}
		}
	}
	<-ended
	if p.cuts.Load() == 0 {
		t.Error("no answer was cut")
	}
	page, err := client.Jobs(t.Context(), sluice.JobFilter{Queue: "q", Limit: 1000})
	if err != nil || len(page.Jobs) != 1+callers*each {
		t.Errorf("%d jobs, want %d: %v", len(page.Jobs), 1+callers*each, err)
	}
}

// TestReleasedJobIsFoundAtOnceOnASlowNetwork counts claims instead of measuring time, because each claim takes as long
// as the slow network makes it.
func TestReleasedJobIsFoundAtOnceOnASlowNetwork(t *testing.T) {
	t.Parallel()
	store, p := behindProxy(t)
	client := sluice.NewClient(store, sluice.ClientOptions{})
	receipt, err := client.Enqueue(t.Context(), sluice.NewJob{Queue: "q", Payload: []byte(`{}`)})
	if err != nil {
		t.Fatal(err)
	}
	p.slow.Store(int64(200 * time.Millisecond))
	first := claimOne(t, store)
	errs, err := store.Settle(t.Context(), []sluice.Settlement{{ID: first.ID, Token: first.Token, Event: sluice.EventRelease, Holder: first.Holder}})
	if err != nil || errs[0] != nil {
		t.Fatal(errs, err)
	}
	for range 5 {
		claimed, err := store.Claim(t.Context(), sluice.ClaimRequest{Queue: "q", Limit: 10, Holder: "h:1:x", Lease: time.Minute, Token: sluice.NewToken()})
		if err != nil {
			t.Fatal(err)
		}
		if len(claimed.Jobs) == 1 && claimed.Jobs[0].ID == receipt.ID {
			return
		}
	}
	t.Error("the job that was handed back is not found by 5 claims")
}

func TestWorkGoesOnThroughServerRestarts(t *testing.T) {
	t.Parallel()
	cluster, err := pgtest.Start(pgtest.Options{Durable: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Stop)
	b := newBank(t, cluster.URL)
	b.tend()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- demo.NewWorker(b.store, b.ledger, b.queue, 16, quiet).Run(ctx) }()
	awaitWorker(t, b.store, ended)
	var paying sync.WaitGroup
	paying.Go(func() {
		for round := 0; round < 60; {
			if err := b.pay(50); err != nil {
				if !errors.Is(err, sluice.ErrUnavailable) {
					t.Errorf("pay: %v", err)
					return
				}
				continue
			}
			round++
			time.Sleep(50 * time.Millisecond)
		}
	})
	for range 3 {
		time.Sleep(700 * time.Millisecond)
		if err := cluster.Halt(); err != nil {
			t.Fatal(err)
		}
		if err := cluster.Resume(); err != nil {
			t.Fatal(err)
		}
	}
	paying.Wait()
	b.settled()
	b.balance()
	stop()
	if err := <-ended; err != nil {
		t.Errorf("drain: %v", err)
	}
}

func TestStoreThatCannotBeReachedIsUnavailableWithinItsDeadline(t *testing.T) {
	t.Parallel()
	cluster, err := pgtest.Start(pgtest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Stop)
	if _, err := postgres.Migrate(t.Context(), cluster.URL); err != nil {
		t.Fatal(err)
	}
	// Long enough for a busy machine to open the store.
	store, err := postgres.Open(t.Context(), cluster.URL, postgres.Options{CallTimeout: 5 * time.Second, Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	if err := cluster.Halt(); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Jobs(t.Context(), sluice.JobFilter{Limit: 1}); !errors.Is(err, sluice.ErrUnavailable) {
		t.Errorf("list jobs without a server: %v", err)
	}
	if _, err := store.Claim(t.Context(), sluice.ClaimRequest{Queue: "q", Limit: 1, Holder: "h:1:x", Lease: time.Minute, Token: sluice.NewToken()}); !errors.Is(err, sluice.ErrUnavailable) {
		t.Errorf("claim without a server: %v", err)
	}
	if _, err := postgres.Open(t.Context(), cluster.URL, postgres.Options{CallTimeout: time.Second, Logger: quiet}); !errors.Is(err, sluice.ErrUnavailable) {
		t.Errorf("open without a server: %v", err)
	}
}
