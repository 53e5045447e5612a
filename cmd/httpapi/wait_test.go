package httpapi_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/cmd/httpapi"
	"github.com/sluice-queue/sluice/store/memory"
)

// counted counts the calls to Claim, NextDue and Queues of a store.
type counted struct {
	sluice.Store
	calls *atomic.Int64
}

func (c counted) Unwrap() sluice.Store { return c.Store }

func (c counted) Claim(ctx context.Context, request sluice.ClaimRequest) (sluice.Claimed, error) {
	c.calls.Add(1)
	return c.Store.Claim(ctx, request)
}

func (c counted) NextDue(ctx context.Context, queues []string) (map[string]time.Duration, error) {
	c.calls.Add(1)
	return c.Store.NextDue(ctx, queues)
}

func (c counted) Queues(ctx context.Context, filter sluice.QueueFilter) ([]sluice.Queue, error) {
	c.calls.Add(1)
	return c.Store.Queues(ctx, filter)
}

// TestManyWaitingClaimsCostTheStoreAsMuchAsOne lets 2,000 clients wait on real sockets, twice, and counts the calls to
// the store. Then each of them gets one job.
func TestManyWaitingClaimsCostTheStoreAsMuchAsOne(t *testing.T) {
	t.Parallel()
	calls := new(atomic.Int64)
	s := serveStore(t, counted{memory.New(memory.Options{}), calls}, httpapi.Options{Bounds: httpapi.Bounds{Rate: 1e6, Burst: 1e6}})
	idle := func(clients int) int64 {
		before := calls.Load()
		var all sync.WaitGroup
		for range clients {
			all.Go(func() {
				if jobs := s.claim(ofMail + `,"wait":"8s"`); len(jobs) > 0 {
					t.Errorf("a claim of an empty queue got jobs: %+v", jobs)
				}
			})
		}
		all.Wait()
		return calls.Load() - before
	}
	one, many := idle(1), idle(2000)
	t.Logf("calls of the store: %d for one client that waits, %d for 2,000", one, many)
	if many > one+10 {
		t.Errorf("2,000 waiting clients cost %d calls, and one %d", many, one)
	}
	const clients, jobs = 200, 200
	seen := make(chan string, jobs)
	var all sync.WaitGroup
	for range clients {
		all.Go(func() { seen <- s.claimOne(ofMail + `,"wait":"60s"`).ID })
	}
	for range jobs {
		s.enqueue("mail", "")
	}
	all.Wait()
	close(seen)
	got := make(map[string]bool)
	for id := range seen {
		got[id] = true
	}
	if len(got) != jobs {
		t.Errorf("%d jobs were handed out, want %d", len(got), jobs)
	}
}

func TestAClaimFromManyQueuesLooksAtThemTogether(t *testing.T) {
	t.Parallel()
	calls := new(atomic.Int64)
	s := serveStore(t, counted{memory.New(memory.Options{}), calls}, httpapi.Options{})
	var queues []string
	for i := range 100 {
		queues = append(queues, fmt.Sprintf(`"queue-%d"`, i))
	}
	s.enqueue("queue-99", "")
	before := calls.Load()
	job := s.claimOne(`"queues":[` + strings.Join(queues, ",") + `]`)
	if cost := calls.Load() - before; job.Queue != "queue-99" || cost > 3 { // NextDue, Queues and Claim
		t.Errorf("%+v, for %d calls of the store", job, cost)
	}
}

func TestAClientThatLeavesKeepsNoJob(t *testing.T) {
	t.Parallel()
	s := serve(t, httpapi.Options{})
	ctx, leave := context.WithCancel(t.Context())
	request := must(http.NewRequestWithContext(ctx, "POST", s.url+"/work/claim", bytes.NewReader([]byte(`{"worker":"h:9:z","queues":["mail"],"wait":"60s"}`))))
	request.Header.Set("Content-Type", "application/json")
	gone := make(chan error, 1)
	go func() {
		response, err := http.DefaultClient.Do(request)
		if err == nil {
			_ = response.Body.Close()
		}
		gone <- err
	}()
	leave()
	if <-gone == nil {
		t.Fatal("the client got an answer")
	}
	s.enqueue("mail", "")
	if job := s.claimOne(ofMail + `,"wait":"60s"`); job.Queue != "mail" {
		t.Errorf("the claim got %+v, want a job of mail", job)
	}
}

// heldUp is a store whose first claim takes until it may go on, and that tells of an act before it answers.
type heldUp struct {
	sluice.Store
	first       sync.Once
	begun, goOn chan struct{}
}

func (h *heldUp) Unwrap() sluice.Store { return h.Store }

func (h *heldUp) Claim(ctx context.Context, request sluice.ClaimRequest) (sluice.Claimed, error) {
	h.first.Do(func() {
		close(h.begun)
		<-h.goOn
	})
	return h.Store.Claim(ctx, request)
}

func (h *heldUp) Settle(ctx context.Context, settlements []sluice.Settlement) ([]error, error) {
	errs, err := h.Store.Settle(ctx, settlements)
	time.Sleep(100 * time.Millisecond)
	return errs, err
}

// TestWhoLeavesDuringAClaimDelaysNobody lets a client leave while its claim is under way. The next in the line gets the job at once: of
// five tries at least one is shorter than the rest after an error of the store, also on a slow machine.
func TestWhoLeavesDuringAClaimDelaysNobody(t *testing.T) {
	t.Parallel()
	var waits []time.Duration
	for range 5 {
		waits = append(waits, waitBehindOneWhoLeaves(t))
		if slices.Min(waits) < 900*time.Millisecond {
			return
		}
	}
	t.Errorf("the next in the line waited %s", waits)
}

// waitBehindOneWhoLeaves returns how long a client waits for the job that another one has left.
func waitBehindOneWhoLeaves(t *testing.T) time.Duration {
	t.Helper()
	store := &heldUp{Store: memory.New(memory.Options{}), begun: make(chan struct{}), goOn: make(chan struct{})}
	s := serveStore(t, store, httpapi.Options{})
	s.enqueue("mail", "")
	ctx, leave := context.WithCancel(t.Context())
	request := must(http.NewRequestWithContext(ctx, "POST", s.url+"/work/claim", strings.NewReader(`{"worker":"h:9:z","queues":["mail"],"wait":"60s"}`)))
	request.Header.Set("Content-Type", "application/json")
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		if response, err := http.DefaultClient.Do(request); err == nil {
			_ = response.Body.Close()
		}
	}()
	<-store.begun
	next := make(chan []held, 1)
	go func() { next <- s.claim(ofMail + `,"wait":"60s"`) }()
	leave()
	<-gone
	time.Sleep(300 * time.Millisecond) // until the server knows
	close(store.goOn)
	began := time.Now()
	if jobs := <-next; len(jobs) != 1 {
		t.Fatalf("the next in the line got %d jobs, want 1", len(jobs))
	}
	return time.Since(began)
}

func TestWaitingClaimsAreAnsweredWhenTheServerEnds(t *testing.T) {
	t.Parallel()
	calls := new(atomic.Int64)
	api := httpapi.New(counted{memory.New(memory.Options{}), calls}, httpapi.Options{NoLogin: true})
	s := serveAPI(t, api)
	job := get[result](s, "POST", "/jobs", `{"queue":"sms","payload":1}`)
	end := make(chan reply, 1)
	go func() { end <- s.ask("GET", "/jobs/"+job.ID+"/end?wait=60s", "") }()
	before := calls.Load()
	answered := make(chan []held, 1)
	go func() { answered <- s.claim(ofMail + `,"wait":"60s"`) }()
	for until := time.Now().Add(10 * time.Minute); calls.Load() < before+2; time.Sleep(time.Millisecond) { // Queues and Claim
		if time.Now().After(until) {
			t.Fatal("the claim does not wait")
		}
	}
	api.Drain()
	select {
	case jobs := <-answered:
		if len(jobs) != 0 {
			t.Errorf("a claim that Drain ended got jobs: %+v", jobs)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("the claim still waits")
	}
	select {
	case r := <-end:
		if r.status != 200 || !strings.Contains(r.text, `"ended":false`) {
			t.Errorf("a wait that Drain ended got %d %s, want 200 and ended false", r.status, r.text)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("the request for the end of a job still waits")
	}
	r := s.ask("POST", "/work/claim", `{"worker":"h:1:a","queues":["mail"]}`)
	if s.problem(r, 503, "draining"); r.header.Get("Retry-After") == "" {
		t.Error("Retry-After is missing")
	}
}
