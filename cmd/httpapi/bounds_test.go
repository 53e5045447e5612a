package httpapi_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"runtime/pprof"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluice-queue/sluice/access"
	"github.com/sluice-queue/sluice/api"
	"github.com/sluice-queue/sluice/cmd/httpapi"
	"github.com/sluice-queue/sluice/store/memory"
)

// TestWaitingRequestsOfOneCallerAreBounded uses up the waiting requests that one caller may have. Its other requests,
// and other callers, go on.
func TestWaitingRequestsOfOneCallerAreBounded(t *testing.T) {
	t.Parallel()
	s := serve(t, httpapi.Options{Bounds: httpapi.Bounds{Waiting: 2}}, access.Caller{Name: "a", Role: access.RoleWorker}, access.Caller{Name: "b", Role: access.RoleWorker})
	for range 2 {
		s.follow("cancelled", "", "Authorization", "Bearer a")
	}
	const claim = `{"worker":"h:1:a","queues":["mail"]}`
	r := s.ask("POST", "/work/claim", claim, "Authorization", "Bearer a")
	if s.problem(r, 429, "too_many_at_once"); r.header.Get("Retry-After") == "" {
		t.Error("Retry-After is missing")
	}
	for path, as := range map[string]string{"/whoami": "a", "/openapi.json": "b"} {
		if r := s.ask("GET", path, "", "Authorization", "Bearer "+as); r.status != 200 {
			t.Errorf("%s as %s: %d %s", path, as, r.status, r.text)
		}
	}
	if r := s.ask("POST", "/work/claim", claim, "Authorization", "Bearer b"); r.status != 200 {
		t.Errorf("another caller: %d %s", r.status, r.text)
	}
}

// TestLongRequestsOfOneCallerAreBounded leaves as many streams of jobs open as a caller may have. Its next request is
// refused, other callers go on, and the end of a stream makes room.
func TestLongRequestsOfOneCallerAreBounded(t *testing.T) {
	t.Parallel()
	s := serve(t, httpapi.Options{Bounds: httpapi.Bounds{Concurrency: 2}}, access.Caller{Name: "a", Role: access.RoleProducer}, access.Caller{Name: "b", Role: access.RoleProducer})
	var open []net.Conn
	for range 2 {
		conn := s.dial()
		open = append(open, conn)
		must(fmt.Fprintf(conn, "POST %s/jobs?answers=all HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer a\r\nContent-Type: application/x-ndjson\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n", httpapi.Root, len(aLine), aLine))
		if begun, err := bufio.NewReader(conn).ReadString('\n'); err != nil || !strings.Contains(begun, "200 OK") {
			t.Fatalf("%q, %v", begun, err)
		}
	}
	if r := s.ask("GET", "/whoami", "", "Authorization", "Bearer a"); s.problem(r, 429, "too_many_at_once").Do == "" || r.header.Get("Retry-After") == "" {
		t.Errorf("the answer says not what to do, and when: %v %s", r.header, r.text)
	}
	if r := s.ask("POST", "/jobs", strings.TrimSpace(aLine), "Authorization", "Bearer b"); r.status != 201 {
		t.Errorf("another caller: %d %s", r.status, r.text)
	}
	_ = open[0].Close()
	for until := time.Now().Add(10 * time.Minute); s.ask("GET", "/whoami", "", "Authorization", "Bearer a").status != 200; {
		if time.Now().After(until) {
			t.Fatal("the end of a stream makes no room")
		}
	}
}

// dial opens a connection to the API.
func (s *served) dial() net.Conn {
	s.Helper()
	conn, err := net.Dial("tcp", strings.TrimSuffix(strings.TrimPrefix(s.url, "http://"), httpapi.Root))
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = conn.Close() })
	return conn
}

func TestASlowWriterIsCut(t *testing.T) {
	t.Parallel()
	s := serve(t, httpapi.Options{Bounds: httpapi.Bounds{Timeout: 300 * time.Millisecond, Idle: 300 * time.Millisecond}})
	for path, kind := range map[string]string{"/jobs": "application/json", "/jobs?answers=all": "application/x-ndjson", "/work/claim": "application/json"} {
		conn := s.dial()
		must(fmt.Fprintf(conn, "POST %s%s HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: %s\r\nContent-Length: 1000\r\n\r\n{", httpapi.Root, path, kind))
		_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
		text, err := io.ReadAll(conn) // reads until the server closes the connection
		if err != nil || !strings.Contains(string(text), "too_slow") {
			t.Errorf("%s: the server ended with %v, %s, want the problem too_slow", path, err, text)
		}
	}
}

// TestASlowReaderIsCut sends a stream of jobs, and never reads the answers.
func TestASlowReaderIsCut(t *testing.T) {
	t.Parallel()
	s := serve(t, httpapi.Options{Bounds: httpapi.Bounds{Idle: 300 * time.Millisecond, Rate: 1e6, Burst: 1e6}})
	conn := s.dial()
	_ = conn.(*net.TCPConn).SetReadBuffer(4096)
	out := bufio.NewWriter(conn)
	must(fmt.Fprintf(out, "POST %s/jobs HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/x-ndjson\r\nTransfer-Encoding: chunked\r\n\r\n", httpapi.Root))
	line := strings.Repeat(`{"queue":"mail","payload":1}`+"\n", 1000)
	for until := time.Now().Add(10 * time.Minute); ; {
		if _, err := fmt.Fprintf(out, "%x\r\n%s\r\n", len(line), line); err != nil { // the server has closed the connection
			return
		}
		if time.Now().After(until) {
			t.Fatal("the reader is not cut")
		}
	}
}

// TestNothingGoesOnAfterTheLastClient lets clients wait, follow streams and leave. Then no goroutine of the API may be
// left.
func TestNothingGoesOnAfterTheLastClient(t *testing.T) {
	t.Parallel()
	leavesNothing(t, "httpapi-clients", func(t *testing.T) {
		handler := httpapi.New(memory.New(memory.Options{}), httpapi.Options{NoLogin: true, Bounds: httpapi.Bounds{Idle: 100 * time.Millisecond}})
		server := httptest.NewServer(handler)
		ctx, leave := context.WithCancel(t.Context())
		client := &http.Client{Transport: &http.Transport{}}
		var all sync.WaitGroup
		for i := range 60 {
			path, method, body := "/stream?topics=holders,alerts", "GET", ""
			if i%2 == 0 {
				path, method, body = "/work/claim", "POST", `{"worker":"h:1:a","queues":["mail"],"wait":"60s"}`
			}
			request := must(http.NewRequestWithContext(ctx, method, server.URL+httpapi.Root+path, strings.NewReader(body)))
			request.Header.Set("Content-Type", "application/json")
			all.Go(func() {
				response, err := client.Do(request)
				if err == nil {
					_, _ = io.Copy(io.Discard, response.Body)
					_ = response.Body.Close()
				}
			})
		}
		time.AfterFunc(500*time.Millisecond, leave)
		all.Wait()
		client.CloseIdleConnections()
		server.Close()
	})
}

// leavesNothing runs a test, and fails if one of its goroutines goes on after its end. The label names the goroutines;
// those that they start inherit it.
func leavesNothing(t *testing.T, label string, test func(*testing.T)) {
	t.Helper()
	pprof.Do(t.Context(), pprof.Labels("of", label), func(context.Context) { t.Run("then nothing goes on", test) })
	for until := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		var stacks bytes.Buffer
		if err := pprof.Lookup("goroutine").WriteTo(&stacks, 1); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(stacks.String(), label) {
			return
		}
		if time.Now().After(until) {
			t.Fatalf("goroutines are left:\n%s", stacks.String())
		}
	}
}

// TestUnknownCallersDoNotCloseStreams lets unknown callers open more connections than a server keeps. The stream of a known one goes
// on, although it is the oldest connection.
func TestUnknownCallersDoNotCloseStreams(t *testing.T) {
	t.Parallel()
	listener := must(net.Listen("tcp", "127.0.0.1:0"))
	handler := httpapi.New(memory.New(memory.Options{}), httpapi.Options{
		Logger: slog.New(slog.DiscardHandler),
		Identify: func(r *http.Request) (access.Caller, error) {
			if r.Header.Get("Authorization") == "" {
				return access.Caller{}, access.ErrUnknown
			}
			return access.Caller{Name: "a", Role: access.RoleAdmin}, nil
		},
	})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- api.ServeWith(ctx, listener, handler, api.ServeOptions{Connections: 10}) }()
	open := func(header string) net.Conn {
		conn := must(net.Dial("tcp", listener.Addr().String()))
		t.Cleanup(func() { _ = conn.Close() })
		_, _ = fmt.Fprintf(conn, "GET %s/stream?topics=overview HTTP/1.1\r\nHost: a\r\n%s", httpapi.Root, header)
		return conn
	}
	stream := open("Authorization: Bearer a\r\n\r\n")
	reader := bufio.NewReader(stream)
	if line, err := reader.ReadString('\n'); err != nil || !strings.Contains(line, "200 OK") {
		t.Fatalf("the stream got %q, %v", line, err)
	}
	for range 30 {
		if reply, err := io.ReadAll(open("Connection: close\r\n\r\n")); err != nil || !strings.Contains(string(reply), "401 Unauthorized") {
			t.Errorf("a caller without a token got %q, %v", reply, err)
		}
		open("")
	}
	_ = stream.SetReadDeadline(time.Now().Add(100 * time.Millisecond))
	if _, err := io.Copy(io.Discard, reader); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the stream of a known caller ended: %v", err)
	}
	_ = stream.Close()
	handler.Drain()
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// FuzzRequest sends requests of each route with random values. No answer is a failure of the server, and each problem
// gives a reason.
func FuzzRequest(f *testing.F) {
	routes := httpapi.Routes()
	bodies := []string{
		`{"queue":"mail","payload":1,"delay":"5m"}`, `{"worker":"h:1:a","queues":["mail"],"limit":3,"lease":"1m","token":"0123456789abcdef"}`,
		`{"worker":"h","jobs":[{"id":"01a1fb72-1dea-7abc-8fc6-99e4817522bb","token":"00000000000000000000000000000001","outcome":"fail","error":"x"}]}`,
		`{"definition":{"queue":"mail","every":"10m","payload":{"a":"{{date}}"},"at":null}}`, `{"set":{"rate":"5/s","concurrency":null}}`,
		`{"name":"f","nodes":[{"name":"a","queue":"mail"},{"name":"b","queue":"mail","after":["a"],"over":"a"}]}`, `{"kind":"cancel","where":"queue:mail -state:dead","dry_run":true}`,
	}
	for route := range routes {
		f.Add(uint8(route), "mail", "where=state:dead&limit=3", []byte(bodies[route%len(bodies)]), route%5 == 0)
	}
	for i, body := range bodies {
		f.Add(uint8(i), "x", "", []byte(body), false)
	}
	handler := httpapi.New(memory.New(memory.Options{}), httpapi.Options{NoLogin: true, Bounds: httpapi.Bounds{Rate: 1e9, Burst: 1e9}})
	f.Fuzz(func(t *testing.T, route uint8, name, query string, body []byte, lines bool) {
		r := routes[int(route)%len(routes)]
		values, err := url.ParseQuery(query)
		if r.Name == "stream" || strings.Contains(string(body), "wait") || err != nil {
			return // the request would wait
		}
		values.Del("wait")
		path := r.Path
		for from := strings.Index(path, "{"); from >= 0; from = strings.Index(path, "{") {
			path = path[:from] + url.PathEscape(name) + path[strings.Index(path, "}")+1:]
		}
		target, err := url.Parse("http://127.0.0.1" + httpapi.Root + path)
		if err != nil {
			return
		}
		request := httptest.NewRequestWithContext(t.Context(), r.Method, "http://127.0.0.1/", bytes.NewReader(body))
		target.RawQuery = values.Encode()
		request.URL = target
		request.Header.Set("Content-Type", map[bool]string{true: "application/x-ndjson", false: "application/json"}[lines])
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, request)
		if w.Code >= 500 || w.Code >= 400 && !strings.Contains(w.Body.String(), `"why":"`) || !validAnswer(w.Body.String()) && w.Code != http.StatusTemporaryRedirect && w.Code != http.StatusMovedPermanently {
			t.Errorf("%s %s %s: %d %s", r.Method, target, body, w.Code, w.Body)
		}
	})
}
