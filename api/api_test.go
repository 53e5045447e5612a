package api_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/sluice-queue/sluice/api"
)

var quiet = slog.New(slog.DiscardHandler)

// answer sends a request to a handler. The response is in memory, so nobody needs to close its body.
func answer(handler http.Handler, method, target string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	return w
}

func newSite(t *testing.T, options api.Options) *api.Site {
	t.Helper()
	options.Logger = quiet
	site, err := api.New(options)
	if err != nil {
		t.Fatal(err)
	}
	return site
}

func says(text string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, text+" "+r.URL.Path) })
}

func TestSiteAnswersItsPathsAndNothingElse(t *testing.T) {
	t.Parallel()
	site := newSite(t, api.Options{Base: "/sluice/", Hosts: api.LoopbackHosts(), Readiness: api.NewReadiness(), Metrics: says("metrics")})
	site.Handle("/console/", says("console"))
	for _, c := range []struct {
		method, target string
		status         int
		text           string
	}{
		{"GET", "http://localhost:7400/sluice/healthz", 200, "live\n"},
		{"HEAD", "http://127.0.0.1/sluice/healthz", 200, ""},
		{"GET", "http://[::1]:7400/sluice/readyz", 200, "ready\n"},
		{"GET", "http://LOCALHOST/sluice/metrics", 200, "metrics /metrics"},
		{"GET", "http://localhost/sluice/console/a/b", 200, "console /console/a/b"},
		{"GET", "http://localhost/healthz", 404, "nothing is answered at /healthz"},
		{"GET", "http://localhost/sluice/healthz/x", 404, "nothing is answered"},
		{"GET", "http://rebound.example/sluice/healthz", 421, "not called by that name"},
		{"GET", "http://localhost.example:7400/sluice/healthz", 421, "not called by that name"},
		{"POST", "http://localhost/sluice/healthz", 405, "one can only look"},
		{"DELETE", "http://localhost/sluice/console/a", 405, "one can only look"},
		{"OPTIONS", "http://localhost/sluice/metrics", 405, "one can only look"},
	} {
		response := answer(site, c.method, c.target)
		text, err := io.ReadAll(response.Body)
		if err != nil || response.Code != c.status || c.method != "HEAD" && !strings.Contains(string(text), c.text) {
			t.Errorf("%s %s: %d %q, %v", c.method, c.target, response.Code, text, err)
		}
		for name, want := range map[string]string{
			"X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer", "Cache-Control": "no-store",
		} {
			if got := response.Header().Get(name); got != want {
				t.Errorf("%s %s: %s is %q", c.method, c.target, name, got)
			}
		}
		if policy := response.Header().Get("Content-Security-Policy"); !strings.HasPrefix(policy, "default-src 'none'; frame-ancestors 'none'") {
			t.Errorf("%s %s: the policy is %q", c.method, c.target, policy)
		}
		if c.status < 400 {
			continue
		}
		var problem api.Problem
		if err := json.Unmarshal(text, &problem); err != nil || problem.Status != c.status || problem.Type != "about:blank" || problem.Title != http.StatusText(c.status) ||
			response.Header().Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s %s: the problem is %+v, %v", c.method, c.target, problem, err)
		}
		if allow := response.Header().Get("Allow"); (allow != "") != (c.status == 405) {
			t.Errorf("%s %s: allows %q", c.method, c.target, allow)
		}
	}
}

func TestSiteRefusesBasesThatAreNoPaths(t *testing.T) {
	t.Parallel()
	for base, right := range map[string]bool{
		"": true, "/": true, "/a": true, "/a/b/": true, "a": false, "/a//b": false, "/a/../b": false, "/{x}": false, "/a?b": false, "/a b": false,
	} {
		if _, err := api.New(api.Options{Base: base}); (err == nil) != right {
			t.Errorf("%q: %v", base, err)
		}
	}
}

func TestPanicOfAHandlerIsAProblemWithoutDetails(t *testing.T) {
	t.Parallel()
	site := newSite(t, api.Options{})
	site.Handle("/bad", http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("postgres://ada:secret@host") }))
	response := answer(site, "GET", "http://anybody.example/bad")
	text, err := io.ReadAll(response.Body)
	if err != nil || response.Code != 500 || strings.Contains(string(text), "secret") {
		t.Errorf("%d %q, %v", response.Code, text, err)
	}
}

func TestBodiesAreBounded(t *testing.T) {
	t.Parallel()
	site := newSite(t, api.Options{})
	var failed error
	site.Handle("/read", http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, failed = io.ReadAll(r.Body) }))
	large := strings.NewReader(strings.Repeat("x", 1<<20))
	r := httptest.NewRequest("GET", "/read", large)
	w := httptest.NewRecorder()
	site.ServeHTTP(w, r)
	if w.Code != http.StatusRequestEntityTooLarge {
		t.Errorf("a body that says that it is too large gets %d", w.Code)
	}
	r = httptest.NewRequest("GET", "/read", large)
	r.ContentLength = -1
	site.ServeHTTP(httptest.NewRecorder(), r)
	var tooLarge *http.MaxBytesError
	if !errors.As(failed, &tooLarge) {
		t.Errorf("a body that does not say how large it is ends with %v", failed)
	}
}

// serve runs a handler until the test ends. It returns the address, a function that stops the server, and the channel
// with the server's error.
func serve(t *testing.T, handler http.Handler) (address string, stop func(), ended chan error) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended = make(chan error, 1)
	go func() { ended <- api.Serve(ctx, listener, handler, quiet) }()
	t.Cleanup(cancel)
	return listener.Addr().String(), cancel, ended
}

func TestClientsThatAreSlowOrSayTooMuchAreSentAway(t *testing.T) {
	t.Parallel()
	address, _, _ := serve(t, newSite(t, api.Options{}))
	for name, c := range map[string]struct{ says, gets string }{
		"half a request":      {"GET /healthz HTTP/1.1\r\nHost: x\r\n", ""}, // for the time-out of headers
		"a large header":      {"GET /healthz HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("x", 64<<10) + "\r\n\r\n", "431"},
		"a body that lingers": {"GET /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 99\r\n\r\n", "200"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn, err := net.Dial("tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = conn.Close() }()
			if _, err := io.WriteString(conn, c.says); err != nil {
				t.Fatal(err)
			}
			line, err := bufio.NewReader(conn).ReadString('\n') // returns, because the server ends a connection that sends nothing
			if !strings.Contains(line, c.gets) || (c.gets == "") != (line == "") {
				t.Errorf("it gets %q, %v", line, err)
			}
		})
	}
}

func TestServerAnswersWhatIsUnderWayBeforeItEnds(t *testing.T) {
	t.Parallel()
	asked, goOn := make(chan struct{}), make(chan struct{})
	address, stop, ended := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(asked)
		<-goOn
		_, _ = io.WriteString(w, "done")
	}))
	text := make(chan string, 1)
	go func() {
		response, err := http.Get("http://" + address)
		if err != nil {
			text <- err.Error()
			return
		}
		all, _ := io.ReadAll(response.Body)
		_ = response.Body.Close()
		text <- string(all)
	}()
	<-asked
	stop()
	select {
	case err := <-ended:
		t.Fatalf("it ended before it had answered: %v", err)
	default:
	}
	close(goOn)
	if got := <-text; got != "done" {
		t.Errorf("the answer is %q", got)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
