package httpapi_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/access"
	"github.com/sluice-queue/sluice/cmd/httpapi"
	"github.com/sluice-queue/sluice/store/memory"
)

// follower reads a stream.
type follower struct {
	*served
	lines *bufio.Scanner
	leave func()
}

// follow begins a stream.
func (s *served) follow(topics, after string, headers ...string) *follower {
	s.Helper()
	ctx, leave := context.WithCancel(s.Context())
	request := must(http.NewRequestWithContext(ctx, "GET", s.url+"/stream?topics="+url.QueryEscape(topics), http.NoBody))
	if after != "" {
		request.Header.Set("Last-Event-ID", after)
	}
	for i := 0; i < len(headers); i += 2 {
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { leave(); _ = response.Body.Close() })
	if response.StatusCode != 200 || response.Header.Get("Content-Type") != "text/event-stream" {
		s.Fatalf("the stream begins with %d %v, want 200 and text/event-stream", response.StatusCode, response.Header)
	}
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 10<<20)
	return &follower{s, lines, leave}
}

// event is an event of a stream.
type event struct{ id, topic, data string }

// next reads the next event. An empty topic: the server has ended the stream.
func (f *follower) next() (e event) {
	f.Helper()
	for f.lines.Scan() {
		name, value, _ := strings.Cut(f.lines.Text(), ": ")
		switch name {
		case "id":
			e.id = value
		case "event":
			e.topic = value
		case "data":
			e.data = value
		}
		if f.lines.Text() == "" && e.topic != "" {
			return e
		}
	}
	return e
}

// until reads events until the data of one contains a text.
func (f *follower) until(text string) event {
	f.Helper()
	for {
		e := f.next()
		if strings.Contains(e.data, text) {
			return e
		}
		if e.topic == "" {
			f.Fatalf("the stream ended without %s", text)
		}
	}
}

func TestAStreamTellsOfEachTopicAsItChanges(t *testing.T) {
	t.Parallel()
	eachStore(t, func(s *served) {
		id := s.enqueue("mail", "")
		f := s.follow("overview,queue:mail,audit,holders,operations,alerts,cancelled", "")
		first := make(map[string]bool)
		for len(first) < 6 {
			e := f.next()
			if first[e.topic] = true; !json.Valid([]byte(e.data)) || e.id == "" {
				s.Fatalf("the event %+v has no JSON or no id", e)
			}
		}
		s.claimOne(ofMail)
		f.until(`"claimed":1`)
		if err := s.client.Cancel(s.Context(), []sluice.ID{id}, sluice.Act{By: "ada", Reason: "not needed"}); err != nil {
			s.Fatal(err)
		}
		seen := make(map[string]bool)
		for !seen["cancelled"] || !seen["audit"] {
			e := f.next()
			seen["audit"] = seen["audit"] || e.topic == "audit" && strings.Contains(e.data, "not needed")
			seen["cancelled"] = seen["cancelled"] || e.topic == "cancelled" && e.data == fmt.Sprintf(`{"id":"%s"}`, id)
		}
	})
}

func TestAStreamGoesOnAfterTheLastEvent(t *testing.T) {
	t.Parallel()
	s := serve(t, httpapi.Options{})
	s.enqueue("mail", "")
	other := s.follow("queue:mail", "") // a second follower makes the server keep the events
	first := other.next()
	s.enqueue("mail", "")
	second := other.until(`"ready":2`)
	s.enqueue("mail", "")
	third := other.until(`"ready":3`)
	f := s.follow("queue:mail", first.id)
	if got := []event{f.next(), f.next()}; got[0] != second || got[1] != third {
		t.Errorf("%v, want %v and %v", got, second, third)
	}
	for _, unknown := range []string{"of-another-process", "x", first.id + "9999"} {
		if got := s.follow("queue:mail", unknown).next(); got != third {
			t.Errorf("after %s: %v, want %v", unknown, got, third)
		}
	}
}

func TestAQuietQueueMakesNoEvents(t *testing.T) {
	t.Parallel()
	calls := new(atomic.Int64)
	s := serveStore(t, counted{memory.New(memory.Options{}), calls}, httpapi.Options{})
	s.enqueue("mail", "")
	f := s.follow("queue:mail", "")
	first := f.next()
	for read := calls.Load(); calls.Load() < read+2; time.Sleep(time.Millisecond) { // the server reads the store each second
	}
	s.enqueue("mail", "")
	next := f.next()
	run, number, _ := strings.Cut(first.id, "-")
	if want := fmt.Sprintf("%s-%d", run, must(strconv.Atoi(number))+1); next.id != want || !strings.Contains(next.data, `"ready":2`) {
		t.Errorf("%v, want the event %s with 2 ready jobs", next, want)
	}
}

// TestManyStreamsCostTheStoreAsMuchAsOne counts calls to the store while 100 clients follow a queue.
func TestManyStreamsCostTheStoreAsMuchAsOne(t *testing.T) {
	t.Parallel()
	calls := new(atomic.Int64)
	s := serveStore(t, counted{memory.New(memory.Options{}), calls}, httpapi.Options{Bounds: httpapi.Bounds{Rate: 1e6, Burst: 1e6}})
	s.enqueue("mail", "")
	cost := func(streams int) int64 {
		var all []*follower
		for range streams {
			all = append(all, s.follow("queue:mail", ""))
		}
		for _, f := range all {
			f.next()
		}
		before := calls.Load()
		for range 3 {
			s.enqueue("mail", "")
			for _, f := range all {
				f.next()
			}
		}
		for _, f := range all {
			f.leave()
		}
		return calls.Load() - before
	}
	if one, many := cost(1), cost(100); many > one+3 {
		t.Errorf("100 streams cost %d calls, and one %d", many, one)
	}
}

func TestAStreamIsForThoseWhoMayLook(t *testing.T) {
	t.Parallel()
	s := serve(t, httpapi.Options{}, access.Caller{Name: "worker", Role: access.RoleWorker},
		access.Caller{Name: "mail", Role: access.RoleViewer, Bounds: access.Bounds{Queues: []string{"mail"}}},
		access.Caller{Name: "acme", Role: access.RoleViewer, Bounds: access.Bounds{Tenants: []string{"acme"}}})
	s.enqueue("mail", "")
	s.enqueue("sms", "")
	for _, c := range []struct {
		as, topics string
		status     int
	}{
		{"worker", "overview", 403},
		{"worker", "queue:mail", 403},
		{"mail", "overview", 403},
		{"mail", "cancelled", 403},
		{"mail", "queue:sms", 404},
		{"mail", "queue:none", 404},
		{"acme", "queue:mail", 404},
		{"mail", "weather", 422},
		{"mail", "", 422},
	} {
		if r := s.ask("GET", "/stream?topics="+c.topics, "", "Authorization", "Bearer "+c.as); r.status != c.status {
			t.Errorf("%s follows %q: %d %s, want %d", c.as, c.topics, r.status, r.text, c.status)
		}
	}
	s.follow("queue:mail", "", "Authorization", "Bearer mail").until(`"name":"mail"`)
	s.follow("cancelled", "", "Authorization", "Bearer worker")
}

func TestStreamsAreToldThatTheServerEnds(t *testing.T) {
	t.Parallel()
	api := httpapi.New(memory.New(memory.Options{}), httpapi.Options{NoLogin: true})
	f := serveAPI(t, api).follow("holders", "")
	f.next()
	api.Drain()
	if e := f.next(); e.topic != "end" {
		t.Errorf("after Drain came %+v, want the event end", e)
	}
	if f.lines.Scan() && f.lines.Text() != "" {
		t.Errorf("the stream goes on: %s", f.lines.Text())
	}
}

// TestASlowReaderIsToldThatItIsBehind stalls a reader of large events. The reader misses some events, and gets the last
// one again.
func TestASlowReaderIsToldThatItIsBehind(t *testing.T) {
	t.Parallel()
	s := serve(t, httpapi.Options{})
	s.enqueue("mail", "")
	address := strings.TrimPrefix(strings.TrimSuffix(s.url, httpapi.Root), "http://")
	slow := must(net.Dial("tcp", address))
	defer func() { _ = slow.Close() }()
	_ = slow.(*net.TCPConn).SetReadBuffer(4096)
	must(fmt.Fprintf(slow, "GET %s/stream?topics=cancelled HTTP/1.1\r\nHost: %s\r\n\r\n", httpapi.Root, address))
	ready := s.follow("cancelled", "")
	var all sync.WaitGroup
	stop := make(chan struct{})
	var told atomic.Int64
	all.Go(func() { // makes new events until the slow reader is behind
		for {
			select {
			case <-stop:
				return
			default:
			}
			var ids []sluice.ID
			for range 200 {
				ids = append(ids, s.enqueue("mail", ""))
			}
			if _, err := s.store.Claim(s.Context(), sluice.ClaimRequest{Queue: "mail", Limit: 1000, Holder: "h", Lease: time.Hour, Token: sluice.NewToken()}); err != nil {
				t.Error(err)
				return
			}
			if err := s.client.Cancel(s.Context(), ids, sluice.Act{By: "test"}); err != nil {
				t.Error(err)
				return
			}
			told.Add(200)
		}
	})
	for told.Load() < 20_000 { // more bytes than the buffers hold
		ready.next()
	}
	var seen bytes.Buffer
	part := make([]byte, 64<<10)
	for !strings.Contains(seen.String(), "event: behind") {
		n, err := slow.Read(part)
		if err != nil {
			t.Fatalf("%v after %.300s", err, seen.String())
		}
		if seen.Write(part[:n]); seen.Len() > 200<<20 {
			t.Fatal("it is never behind")
		}
	}
	close(stop)
	all.Wait()
}
