// Package console is Sluice's console for people: pages that show what happens, why, and what will, and acts on it.
//
// Begin with [New], which makes the console of an API; a [Console] is an http.Handler, below any base path. `sluice
// serve` serves it at /, and `sluice dev` shows it with sample data.
//
// The console reads and acts through the API alone, with the credentials of whoever looks. So it shows nobody more, and
// lets nobody do more, than the API does. Each page is a file here and a template of the same name.
//
// Read next: docs/guide/console.md.
package console

import (
	"context"
	"fmt"
	"html/template"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/sluice-queue/sluice/search"
)

// Options adjust a [Console].
type Options struct {
	// API answers the paths below /api/v1, as an *httpapi.API does. Required.
	API http.Handler
	// Base begins the paths of links: where the console is mounted with http.StripPrefix, such as /sluice. Default: none.
	Base string
	// Environment names the installation in the top bar. One that begins with prod is marked, and asks for a reason of
	// every act. Default: none.
	Environment string
	// Store says in the top bar where the jobs are kept, without secrets. Default: nothing.
	Store string
	// RunPage is the page of a run in the engine's own console, such as
	// https://temporal.example.com/namespaces/{namespace}/workflows/{ref}. The names in braces, and {engine}, stand for those
	// of the run; a run without a namespace is in default. Default: no link.
	RunPage string
	// TracePage is the page of a trace, such as https://grafana.example.com/trace/{trace_id}, for jobs that were enqueued within
	// one. The names in braces are trace_id and span_id. Default: no link.
	TracePage string
	// Views are filters of jobs that the side bar offers to all whose credentials have no bounds. Default: none.
	Views []View
	// SignIn is the path to which people without a session are sent, below the base. Default: they get the API's refusal.
	SignIn string
	// Samples fills an empty store with sample data, when an admin presses the button of the empty overview. Default: there is no
	// button.
	Samples func(context.Context) error
	// Access says on the page Settings how people reach the server. Default: the page leaves it out.
	Access *Access
}

// Access says how people reach a server. It holds no secrets.
type Access struct {
	// Ways are how people sign in, such as tokens or the address of a provider. Empty: nobody has to.
	Ways []string
	// Address is where the server listens, and Reach who can connect to it.
	Address, Reach string
	// SessionEnd returns when the session of a request ends. Zero: the request has no session. Default: there are none.
	SessionEnd func(*http.Request) time.Time
}

// View is a filter of jobs under a name.
type View struct {
	// Name is what people see, and Filter the jobs, such as state:dead queue:mail.
	Name, Filter string
}

// Console answers the pages. It is an http.Handler, and sees paths without the base.
type Console struct {
	options   Options
	mux       *http.ServeMux
	pages     []page
	templates map[string]*template.Template // by the name of the page
	acts      map[string]act
	api       *description
	shared    *cache
	live      *hub
	mostSaved int           // jobs in a file
	patience  time.Duration // with one reading of a page

	drain    sync.Once
	draining chan struct{} // closed when streams must end
}

// New makes the console of an API.
func New(options Options) (*Console, error) {
	options.Base = strings.TrimSuffix(options.Base, "/")
	c := &Console{options: options, mux: http.NewServeMux(), pages: pages(), shared: newCache(), mostSaved: mostSaved, patience: readTimeout, draining: make(chan struct{})}
	c.live = newHub(c)
	for name, at := range map[string]string{"runs": options.RunPage, "traces": options.TracePage} {
		if at != "" && !strings.HasPrefix(at, "https://") && !strings.HasPrefix(at, "http://") {
			return nil, fmt.Errorf("the address of %s: %q must begin with https:// or http://", name, at)
		}
	}
	for _, view := range options.Views {
		if _, err := search.Parse(view.Filter, time.Now()); err != nil || view.Name == "" {
			return nil, fmt.Errorf("the view %q of the jobs %q: it must have a name and a filter: %w", view.Name, view.Filter, err)
		}
	}
	api, err := describe()
	if err != nil {
		return nil, fmt.Errorf("the console cannot read the description of the API: %w", err)
	}
	c.api, c.acts, c.templates = api, make(map[string]act), make(map[string]*template.Template)
	for _, a := range acts() {
		if api.routes[a.route].path == "" {
			return nil, fmt.Errorf("act %s of the console needs the route %s, which the API lacks", a.name, a.route)
		}
		c.acts[a.name] = a
	}
	for _, p := range c.pages {
		if c.templates[p.name], err = c.parse(p.name); err != nil {
			return nil, err
		}
		c.mux.Handle("GET "+p.path, c.show(p))
	}
	c.mux.HandleFunc("GET /do/{act}", c.askAct)
	c.mux.HandleFunc("POST /do/{act}", c.doAct)
	c.mux.HandleFunc("POST /ask/{act}", c.askActOn)
	c.mux.HandleFunc("POST /same/{act}", c.sameAct)
	if options.Samples != nil {
		c.mux.HandleFunc("POST "+samplesPath, c.fill)
	}
	c.mux.Handle("GET /static/", staticFiles)
	c.mux.HandleFunc("/", c.notFound)
	return c, nil
}

// Drain ends the live streams, because the process ends soon.
func (c *Console) Drain() { c.drain.Do(func() { close(c.draining) }) }

// policy lets a page use what this server sends, and nothing else.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"

// fromThisSite refuses requests that a browser sends for a page of another site.
var fromThisSite = http.NewCrossOriginProtection()

// ServeHTTP answers a request.
func (c *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	for name, value := range map[string]string{
		"Content-Security-Policy": policy, "Cache-Control": "no-store", "Referrer-Policy": "same-origin", "X-Content-Type-Options": "nosniff",
		"X-Frame-Options": "DENY", "Cross-Origin-Resource-Policy": "same-origin", "Cross-Origin-Opener-Policy": "same-origin",
	} {
		w.Header().Set(name, value)
	}
	if err := fromThisSite.Check(r); err != nil {
		http.Error(w, "the page of another site sent the request; act on a page of this server", http.StatusForbidden)
		return
	}
	c.mux.ServeHTTP(w, r)
}

const (
	// timeout is the longest time for a page, a dialog or an act, with all that it asks of the API.
	timeout = 10 * time.Second
	// readTimeout is the longest time for one reading of a page. Dialogs count jobs, and may take the whole of timeout for it.
	readTimeout = 2 * time.Second
)
