package httpapi_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
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
	other := s.follow("queue:mail", "")
	first := other.next()
	s.enqueue("mail", "")
	second := other.until(`"ready":2`)
	s.enqueue("mail", "")
	third := other.until(`"ready":3`)
	f := s.follow("queue:mail", first.id)
	if got := []event{f.next(), f.next()}; got[0] != second || got[1] != third {
		t.Errorf("%v, want %v and %v", got, second, third)
	}
	for _, unknown := range []string{"of-another-process", "x", first.id + "9999", strings.Replace(first.id, "-", "-x", 1)} {
		f := s.follow("queue:mail", unknown)
		if got := []event{f.next(), f.next()}; got[0].topic != "behind" || got[1] != third {
			t.Errorf("after %s: %v, want behind and %v", unknown, got, third)
		}
	}
	if got := s.follow("queue:mail,holders", first.id).next(); got.topic != "behind" { // it may know nothing of the other topic
		t.Errorf("with another topic: %v, want behind", got)
	}
}

// cancel claims the jobs of a queue, and cancels them.
func (s *served) cancel(queue string, tenants ...string) (ids []sluice.ID) {
	s.Helper()
	for _, tenant := range tenants {
		ids = append(ids, s.enqueue(queue, tenant))
	}
	if _, err := s.store.Claim(s.Context(), sluice.ClaimRequest{Queue: queue, Limit: 1000, Holder: "h", Lease: time.Hour, Token: sluice.NewToken()}); err != nil {
		s.Fatal(err)
	}
	if err := s.client.Cancel(s.Context(), ids, sluice.Act{By: "test"}); err != nil {
		s.Fatal(err)
	}
	return ids
}

// cancelled is the event of a cancelled job.
func cancelled(id sluice.ID) string { return fmt.Sprintf(`{"id":"%s"}`, id) }

// place reads how far a stream is, when it has no events yet.
func (f *follower) place() string {
	f.Helper()
	for f.lines.Scan() {
		if id, is := strings.CutPrefix(f.lines.Text(), "id: "); is {
			return id
		}
	}
	f.Fatal("the stream ended without an id")
	return ""
}

// TestALoneReaderMissesNothing cuts the only stream, and cancels jobs before it comes again: to this server, and to another.
func TestALoneReaderMissesNothing(t *testing.T) {
	t.Parallel()
	eachStore(t, func(s *served) {
		f := s.follow("cancelled", "")
		id := f.place() // a stream without any event has an id too
		f.leave()
		first := s.cancel("mail", "", "")
		f = s.follow("cancelled", id)
		got := []event{f.next(), f.next()}
		for i, e := range got {
			if e.topic != "cancelled" || e.data != cancelled(first[i]) {
				s.Errorf("after the cut came %v, want the cancels of %v", got, first)
			}
		}
		f.leave()
		second := s.cancel("mail", "")
		f = s.follow("cancelled", got[0].id) // as if the last event was lost on its way
		if again := []event{f.next(), f.next()}; again[0] != got[1] || again[1].data != cancelled(second[0]) {
			s.Errorf("after the first event came %v, want %v and the cancel of %v", again, got[1], second)
		}
		other := serveStore(s.T, s.store, httpapi.Options{})
		if e := other.follow("cancelled", got[1].id).next(); e.topic != "behind" {
			s.Errorf("at another server came %v, want behind", e)
		}
	})
}

// TestAReaderThatComesLateIsToldThatItIsBehind comes again when the server has forgotten its topic: all streams have ended, or
// another goes on.
func TestAReaderThatComesLateIsToldThatItIsBehind(t *testing.T) {
	t.Parallel()
	s := serve(t, httpapi.Options{Bounds: httpapi.Bounds{Rate: 1e6, Burst: 1e6}})
	for _, others := range []string{"", "holders"} {
		if others != "" {
			s.follow(others, "").next()
		}
		f := s.follow("cancelled", "")
		id := f.place()
		f.leave()
		for e := (event{}); e.topic != "behind"; f.leave() {
			s.cancel("mail", "")
			s.api.ForgetStreams() // it forgets nothing until it has seen the reader leave
			f = s.follow("cancelled", id)
			e = f.next()
		}
	}
}

// TestAReaderOfTooManyEventsIsToldThatItIsBehind makes more events than are kept while a reader is away.
func TestAReaderOfTooManyEventsIsToldThatItIsBehind(t *testing.T) {
	t.Parallel()
	s := serve(t, httpapi.Options{})
	f := s.follow("cancelled", "")
	id := f.place()
	f.leave()
	ids := append(s.cancel("mail", make([]string, 600)...), s.cancel("mail", make([]string, 600)...)...)
	late := s.follow("cancelled", id)
	if e := late.next(); e.topic != "behind" {
		t.Errorf("after %d cancels came %v, want behind", len(ids), e)
	}
	last := s.cancel("mail", "")
	for _, f := range []*follower{late, s.follow("cancelled", late.place())} {
		if e := f.next(); e.data != cancelled(last[0]) {
			t.Errorf("then came %v, want the cancel of %v", e, last)
		}
	}
}

// TestReadersWithBoundsHearOfTheirCancelsAlone cancels jobs of several queues and tenants.
func TestReadersWithBoundsHearOfTheirCancelsAlone(t *testing.T) {
	t.Parallel()
	eachStore(t, func(s *served) {
		of := func(name string, b access.Bounds) access.Caller {
			return access.Caller{Name: name, Role: access.RoleWorker, Bounds: b}
		}
		mail, acme := of("mail", access.Bounds{Queues: []string{"mail*"}}), of("acme", access.Bounds{Tenants: []string{"acme"}})
		both := of("both", access.Bounds{Queues: []string{"sms"}, Tenants: []string{"acme"}})
		s = serveStore(s.T, s.store, httpapi.Options{}, mail, acme, both, access.Caller{Name: "all", Role: access.RoleWorker})
		follow := func(name, topics, after string) *follower {
			return s.follow(topics, after, "Authorization", "Bearer "+name)
		}
		streams := make(map[string]*follower)
		for _, name := range []string{"mail", "acme", "both", "all"} {
			streams[name] = follow(name, "cancelled", "")
		}
		streams["signals"] = follow("mail", "signals", "")
		places := make(map[string]string)
		for name, f := range streams {
			places[name] = f.place()
		}
		foreign, own := s.cancel("sms", "", "other"), s.cancel("sms", "acme")
		mails := s.cancel("mail.a", "acme", "other")
		want := map[string][]sluice.ID{"mail": mails, "acme": {own[0], mails[0]}, "both": own, "all": {foreign[0], foreign[1], own[0], mails[0], mails[1]}, "signals": mails}
		hear := func(name string, f *follower) {
			s.Helper()
			for _, id := range want[name] {
				e := f.next()
				for name == "signals" && !strings.Contains(e.data, "cancelled") && strings.Contains(e.data, "mail.a") || e.data == "{}" {
					e = f.next()
				}
				if !strings.Contains(e.data, id.String()) {
					s.Errorf("%s hears %v, want the cancel of %v", name, e, id)
				}
			}
		}
		for name, f := range streams {
			hear(name, f)
			f.leave()
		}
		for name, after := range places { // the same, to those who come again
			as, topics := name, "cancelled"
			if name == "signals" {
				as, topics = "mail", "signals"
			}
			hear(name, follow(as, topics, after))
		}
	})
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
		{"acme", "signals", 403},
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

// TestASlowReaderIsToldThatItIsBehind stalls a reader until events are dropped that it has not got.
func TestASlowReaderIsToldThatItIsBehind(t *testing.T) {
	t.Parallel()
	s := serve(t, httpapi.Options{Bounds: httpapi.Bounds{Idle: 5 * time.Minute}}) // or the reader is cut, not told, on a busy machine
	server := httptest.NewUnstartedServer(s.api)
	server.Config.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		_ = c.(*net.TCPConn).SetWriteBuffer(4096) // so that a reader that stalls soon stalls the writer
		return ctx
	}
	server.Start()
	defer server.Close()
	address := server.Listener.Addr().String()
	slow := must(net.Dial("tcp", address))
	defer func() { _ = slow.Close() }()
	_ = slow.(*net.TCPConn).SetReadBuffer(4096)
	must(fmt.Fprintf(slow, "GET %s/stream?topics=cancelled HTTP/1.1\r\nHost: %s\r\n\r\n", httpapi.Root, address))
	lines := bufio.NewReader(slow)
	for line := ""; !strings.HasPrefix(line, "id: "); line = must(lines.ReadString('\n')) { // then the stream has begun
		continue
	}
	for range 8 {
		s.cancel("mail", make([]string, 1000)...)
	}
	fast := s.follow("cancelled", "")
	fast.place()
	last := s.cancel("mail", "")[0]
	fast.until(last.String()) // so all events have come
	_ = slow.SetReadDeadline(time.Now().Add(time.Minute))
	var seen strings.Builder
	for line := ""; line != "event: behind\n"; seen.WriteString(line) {
		var err error
		if line, err = lines.ReadString('\n'); err != nil {
			t.Fatalf("%v after %d bytes without the event behind: %.300s", err, seen.Len(), &seen)
		}
	}
	if strings.Contains(seen.String(), last.String()) {
		t.Error("the reader got the last event before it was told that it is behind")
	}
}
