// Package httpapi answers Sluice's HTTP API, below /api/v1.
//
// Begin with [New], which makes the API of a store; an [API] is an http.Handler. `sluice serve` serves it.
// openapi.json describes every request and answer, and [Routes] lists them.
//
// Read next: docs/guide/http.md and the reference docs/api.md.
package httpapi

import (
	"context"
	"crypto/rand"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/access"
	"github.com/sluice-queue/sluice/alert"
	"github.com/sluice-queue/sluice/api"
	"github.com/sluice-queue/sluice/await"
	"github.com/sluice-queue/sluice/engine"
	"github.com/sluice-queue/sluice/internal/event"
	"github.com/sluice-queue/sluice/schema"
)

// Root begins the path of every request.
const Root = "/api/v1"

// Options adjust an [API]. The zero value asks every caller for a token of the store, and answers to every name.
type Options struct {
	// NoLogin answers everybody who calls the server by a name of loopback, such as localhost, as an admin. Only right for a
	// listener on loopback. Default: callers need a token.
	NoLogin bool
	// Identify names the caller of a request; an error is answered as a problem, an access.ErrUnknown as 401. Default:
	// the token of the header Authorization.
	Identify func(*http.Request) (access.Caller, error)
	// Bounds limit what callers can use. Default: [DefaultBounds].
	Bounds Bounds
	// Engines are the engines of the store's queues, by name. Default: none, so that no engine is asked.
	Engines map[string]engine.Engine
	// Metrics answers with the metrics of the process. Default: none.
	Metrics http.Handler
	// Receivers are those of alerts to whom callers may send a test message. Default: none.
	Receivers []alert.Receiver
	// Logger gets failures of requests; see docs/events.md. Default: slog.Default.
	Logger *slog.Logger
	// Clean removes secrets from the texts of errors. Default: they are shown as they are.
	Clean func(string) string
}

// Bounds limit what one request, and one caller, can use. A field of 0 has its default.
type Bounds struct {
	// Body is the most bytes of a body, except of a stream. Default: 16 MiB.
	Body int64
	// Timeout is the most time for an answer, unless a request waits for something. Default: 30 s.
	Timeout time.Duration
	// Idle is the most time between two parts of a stream, in both directions, and how long the events of a stream are kept that
	// was cut. Default: 30 s.
	Idle time.Duration
	// Concurrency is how many requests of one caller may be under way; those that only wait for something count in
	// Waiting. Default: 64 and 2,500.
	Concurrency, Waiting int
	// Rate is how many requests per second a caller may send, and Burst how many more at once. Default: 500 and 1,000.
	Rate, Burst int
}

// DefaultBounds returns the defaults.
func DefaultBounds() Bounds {
	return Bounds{Body: 16 << 20, Timeout: 30 * time.Second, Idle: 30 * time.Second, Concurrency: 64, Waiting: 2500, Rate: 500, Burst: 1000}
}

// orDefault replaces zero fields by their defaults.
func (b Bounds) orDefault() Bounds {
	d := DefaultBounds()
	fill(&b.Body, d.Body)
	fill(&b.Timeout, d.Timeout)
	fill(&b.Idle, d.Idle)
	for _, pair := range [][2]*int{{&b.Concurrency, &d.Concurrency}, {&b.Waiting, &d.Waiting}, {&b.Rate, &d.Rate}, {&b.Burst, &d.Burst}} {
		fill(pair[0], *pair[1])
	}
	return b
}

// fill replaces a value of 0 or less.
func fill[T int | int64 | time.Duration](value *T, otherwise T) {
	if *value <= 0 {
		*value = otherwise
	}
}

// API answers the requests of a store. It is an http.Handler for all paths below [Root].
type API struct {
	store sluice.Store
	// fresh has the settings of queues at most a second old; see forget.
	fresh  atomic.Pointer[sluice.Client]
	waiter *await.Waiter
	board  *board
	// collector reads for all streams.
	collector *collector
	gate      *access.Gate
	checker   *schema.Checker
	options   Options
	log       *event.Log

	mux    *http.ServeMux
	routes []Route
	// describe add the routes to a description, in the same order.
	describe []func(huma.API)
	crowd    crowd

	drain    sync.Once
	draining chan struct{} // closed when waiting requests must be answered
}

// New makes the API of a store.
func New(store sluice.Store, options Options) *API {
	if options.Logger == nil {
		options.Logger = slog.Default()
	}
	if options.Clean == nil {
		options.Clean = func(text string) string { return text }
	}
	options.Bounds = options.Bounds.orDefault()
	store = sluice.GivenStore(store)
	a := &API{
		store: store, waiter: await.New(store), board: newBoard(store), gate: access.NewGate(store), checker: schema.New(), options: options, log: event.NewLog(options.Logger, "", 0),
		mux: http.NewServeMux(), crowd: crowd{bounds: options.Bounds}, draining: make(chan struct{}),
	}
	a.forget()
	a.mux.HandleFunc("/", a.notFound)
	for _, resource := range resources {
		resource(a)
	}
	return a
}

// client returns the client of the store.
func (a *API) client() *sluice.Client { return a.fresh.Load() }

// forget makes the next request read the settings of queues anew, because a request has changed some.
func (a *API) forget() {
	a.fresh.Store(sluice.NewClient(a.store, sluice.ClientOptions{PayloadChecker: a.checker, Logger: a.options.Logger}))
	a.board.forget()
}

// resources add the routes of each resource.
var resources = []func(*API){
	(*API).jobs, (*API).work, (*API).workMore, (*API).operations, (*API).queues, (*API).look, (*API).audits, (*API).live,
	(*API).tenants, (*API).limits, (*API).schedules, (*API).batches, (*API).flows, (*API).alerts, (*API).engineRoutes, (*API).tokens, (*API).simulations, (*API).storeCare, (*API).about,
}

// Routes lists the routes, in the order of the reference.
func Routes() []Route { return New(nil, Options{}).routes }

// Drain answers the requests that wait for something, because the process ends soon. Later ones are not kept waiting.
func (a *API) Drain() {
	a.drain.Do(func() {
		close(a.draining)
		a.collector.end()
	})
}

// ServeHTTP answers a request.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := &call{api: a, id: rand.Text(), method: r.Method, path: r.URL.Path}
	w.Header().Set("Sluice-Request-Id", c.id)
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	defer c.answerPanic(w)
	if err := c.know(r); err != nil {
		c.refuse(w, c.problem(err))
		return
	}
	a.mux.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), callKey{}, c)))
}

// know finds out who sends a request, or says why it is refused. ServeHTTP stays on the stack of each request that waits, so that it
// is small.
func (c *call) know(r *http.Request) (err error) {
	if fromThisSite.Check(r) != nil {
		return problemOf(http.StatusForbidden, "other_site", "the page of another site sent the request", "call the API from a program, or from a page of this server")
	}
	if c.caller, err = c.api.identify(r); err != nil {
		return err
	}
	api.Known(r.Context())
	c.by, err = actor(r, c.caller)
	c.request = r
	return err
}

// fromThisSite refuses requests that a browser sends for a page of another site.
var fromThisSite = http.NewCrossOriginProtection()

// notFound answers for a path without a route, or a method that its routes lack.
func (a *API) notFound(w http.ResponseWriter, r *http.Request) {
	c := callOf(r.Context())
	var allowed string
	for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE"} {
		other := r.Clone(r.Context())
		other.Method = method
		if _, pattern := a.mux.Handler(other); pattern != "/" {
			allowed += ", " + method
		}
	}
	if allowed != "" {
		w.Header().Set("Allow", allowed[2:])
		c.refuse(w, problemOf(http.StatusMethodNotAllowed, "method_not_allowed", r.Method+" is not answered here", "use "+allowed[2:]))
		return
	}
	c.refuse(w, problemOf(http.StatusNotFound, "no_such_path", "nothing is answered at this path", "see "+Root+"/openapi.json"))
}
