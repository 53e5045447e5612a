package console

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sluice-queue/sluice/cmd/httpapi"
)

// maxAnswer is the largest answer of the API that a page reads, in bytes.
const maxAnswer = 32 << 20

// statusOf returns the status of an error of the API. 0: it is another error.
func statusOf(err error) int {
	var p *httpapi.Problem
	if errors.As(err, &p) {
		return p.Status
	}
	return 0
}

// personal reports whether an error is about the one who asks, and not about what they ask for.
func personal(err error) bool {
	status := statusOf(err)
	return status == http.StatusUnauthorized || status == http.StatusTooManyRequests
}

// codeOf returns the code of a problem. Empty: it is none.
func codeOf(err error) string {
	var p *httpapi.Problem
	if errors.As(err, &p) {
		return p.Code
	}
	return ""
}

// caller asks the API with somebody's credentials.
type caller struct {
	api    http.Handler
	header http.Header // of the person's request
	host   string
	remote string
	tls    *tls.ConnectionState // has the person's certificate; nil: the connection is plain
}

// callerOf takes the credentials of a request.
func callerOf(api http.Handler, r *http.Request) caller {
	header := make(http.Header)
	for _, name := range []string{"Authorization", "Cookie", "Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Real-Ip", "Via", "Origin", "Sec-Fetch-Site"} {
		if values := r.Header.Values(name); len(values) > 0 {
			header[name] = values
		}
	}
	return caller{api: api, header: header, host: r.Host, remote: r.RemoteAddr, tls: r.TLS}
}

// send sends a request to the API, and returns the body of its answer. A refusal is a *httpapi.Problem.
func (c caller) send(ctx context.Context, method, path string, query url.Values, body any) ([]byte, error) {
	target := httpapi.Root + path
	if len(query) > 0 {
		target += "?" + query.Encode()
	}
	var sent io.Reader = http.NoBody
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		sent = bytes.NewReader(text)
	}
	request, err := http.NewRequestWithContext(httpapi.InConsole(ctx), method, "http://"+c.host+target, sent)
	if err != nil {
		return nil, err
	}
	request.Header = c.header.Clone()
	request.RemoteAddr, request.RequestURI, request.Host, request.TLS = c.remote, target, c.host, c.tls
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	answer := &recorder{header: make(http.Header)}
	c.api.ServeHTTP(answer, request)
	if answer.tooLong {
		return nil, &httpapi.Problem{Status: http.StatusBadGateway, Title: "Too much", Why: "the API answered more than a page can show", Do: "narrow the filter"}
	}
	if answer.status < http.StatusBadRequest {
		return answer.body.Bytes(), nil
	}
	p := &httpapi.Problem{}
	if json.Unmarshal(answer.body.Bytes(), p) != nil || p.Status == 0 {
		p = &httpapi.Problem{Status: answer.status, Title: http.StatusText(answer.status), Why: "the API gave no reason"}
	}
	return nil, p
}

// recorder keeps an answer of the API.
type recorder struct {
	header  http.Header
	status  int
	body    bytes.Buffer
	tooLong bool
}

func (r *recorder) Header() http.Header { return r.header }

func (r *recorder) WriteHeader(status int) {
	if r.status == 0 {
		r.status = status
	}
}

func (r *recorder) Write(text []byte) (int, error) {
	r.WriteHeader(http.StatusOK)
	if r.body.Len()+len(text) > maxAnswer {
		r.tooLong = true
		return 0, errors.New("the answer is too long")
	}
	return r.body.Write(text)
}

// SetReadDeadline and SetWriteDeadline let the API set deadlines; the context of a request has its own.
func (r *recorder) SetReadDeadline(time.Time) error { return nil }

// SetWriteDeadline does nothing, as SetReadDeadline.
func (r *recorder) SetWriteDeadline(time.Time) error { return nil }

// Flush does nothing: nobody reads before the end.
func (r *recorder) Flush() {}

// cache shares the answers of the API between people with the same rights, for a moment. Those who ask for the same at
// once wait for one answer.
type cache struct {
	mu    sync.Mutex
	kept  map[string]*shared
	sweep time.Time
}

// shared is an answer, or the wait for it.
type shared struct {
	ready chan struct{}
	at    time.Time
	keep  time.Duration
	body  []byte
	err   error
}

// cacheFor is how long an answer is shared.
const cacheFor = time.Second

func newCache() *cache { return &cache{kept: make(map[string]*shared)} }

// get returns the answer to a question, asked at most once while it is kept. An answer about somebody else who asked is asked again.
func (c *cache) get(ctx context.Context, key string, keep time.Duration, ask func(context.Context) ([]byte, error)) ([]byte, error) {
	c.mu.Lock()
	c.clean()
	found := c.kept[key]
	if found == nil || !found.at.IsZero() && time.Since(found.at) > found.keep {
		if err := ctx.Err(); err != nil { // the store has had its time
			c.mu.Unlock()
			return nil, err
		}
		found = &shared{ready: make(chan struct{}), keep: keep}
		c.kept[key] = found
		c.mu.Unlock()
		c.fill(ctx, found, ask)
		return found.body, found.err
	}
	c.mu.Unlock()
	select {
	case <-found.ready:
		if personal(found.err) {
			return ask(ctx)
		}
		return found.body, found.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// fill asks for an answer that others may wait for: it goes on if the one who asks leaves, until the time of the asker ends. A
// failure is kept for a moment at most.
func (c *cache) fill(ctx context.Context, s *shared, ask func(context.Context) ([]byte, error)) {
	end, has := ctx.Deadline()
	if !has {
		end = time.Now().Add(timeout)
	}
	ctx, stop := context.WithDeadline(context.WithoutCancel(ctx), end)
	defer stop()
	s.err = errors.New("the API gave no answer") // if it panics
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if s.at = time.Now(); s.err != nil {
			s.keep = min(s.keep, cacheFor)
		}
		close(s.ready)
	}()
	s.body, s.err = ask(ctx)
}

// clean forgets old answers. The caller holds the lock.
func (c *cache) clean() {
	now := time.Now()
	if now.Before(c.sweep) {
		return
	}
	c.sweep = now.Add(cacheFor)
	for key, s := range c.kept {
		if !s.at.IsZero() && now.Sub(s.at) > s.keep {
			delete(c.kept, key)
		}
	}
}

// description is what the console knows of the API's routes, from its openapi.json.
type description struct{ routes map[string]route }

// route is a route of the API.
type route struct {
	method, path string
	roles        []string // may use it
}

// describe reads the description of the API.
func describe() (*description, error) {
	var read struct {
		Paths map[string]map[string]struct {
			OperationID string   `json:"operationId"`
			Roles       []string `json:"x-sluice-roles"`
		} `json:"paths"`
	}
	if err := json.Unmarshal(httpapi.OpenAPI(), &read); err != nil {
		return nil, fmt.Errorf("openapi.json: %w", err)
	}
	d := &description{routes: make(map[string]route)}
	for path, methods := range read.Paths {
		for method, op := range methods {
			d.routes[op.OperationID] = route{strings.ToUpper(method), strings.TrimPrefix(path, httpapi.Root), op.Roles}
		}
	}
	return d, nil
}

// may reports whether a role may use a route.
func (d *description) may(role, name string) bool { return slices.Contains(d.routes[name].roles, role) }

// forget makes the next readings see what an act has changed.
func (c *cache) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.kept)
}
