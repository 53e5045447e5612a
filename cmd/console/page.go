package console

import (
	"bytes"
	"cmp"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/sluice-queue/sluice/cmd/httpapi"
)

// page is a page of the console: a path, a template of the same name, and what loads its view.
type page struct {
	// Name is the name of the template's file, and path a pattern of net/http without a method.
	name, path string
	// Title is the heading. Pages with a place in the side bar have a letter, which opens them after g.
	title, letter string
	// Part is the part of the template that is sent, for a fragment of another page. Empty: the whole page.
	part string
	// Still pages are not painted again: they cost too much, or somebody types into them.
	still bool
	// Load reads the view from the API, for the template. An error is shown instead.
	load func(ctx context.Context, v *visit) (any, error)
}

// pages lists the pages, in the order of the side bar.
func pages() []page {
	return slices.Concat(
		overviewPages(), wavePages(), jobPages(), deadPages(), queuePages(), tenantPages(), limitPages(), workerPages(), schedulePages(), batchPages(), flowPages(), operationPages(), alertPages(), auditPages(), storePages(), settingPages(), simulatorPages(),
	)
}

// visit is a look at a page, by somebody. It reads the API, and notes what it has read.
type visit struct {
	console *Console
	caller  caller
	viewer  viewer
	page    page
	// Path is below the base; query has the filters.
	path    string
	query   url.Values
	pathOf  func(name string) string
	calls   []string
	command []string
	// Patience is the longest time for one reading. Late says that one has taken longer: the others are not tried, or a page
	// would wait for each.
	patience time.Duration
	late     bool
}

// viewer is who looks.
type viewer struct {
	Name    string   `json:"name"`
	By      string   `json:"by"`
	Role    string   `json:"role"`
	Login   bool     `json:"login"`
	Queues  []string `json:"queues"`
	Tenants []string `json:"tenants"`
}

// bounded reports whether the viewer knows only some queues or tenants.
func (v viewer) bounded() bool { return len(v.Queues)+len(v.Tenants) > 0 }

// rights is the same for everybody who sees the same.
func (v viewer) rights() string {
	text, _ := json.Marshal([]any{v.Role, v.Queues, v.Tenants}) // strings alone
	return string(text)
}

// visit begins a look at a page.
func (c *Console) visit(r *http.Request, p page) (*visit, error) {
	v := &visit{console: c, caller: callerOf(c.options.API, r), page: p, path: r.URL.Path, query: r.URL.Query(), pathOf: r.PathValue, patience: c.patience}
	v.query.Del(liveParameter)
	body, err := v.caller.send(r.Context(), http.MethodGet, "/whoami", nil, nil)
	if err != nil {
		return v, err
	}
	return v, json.Unmarshal(body, &v.viewer)
}

// get reads a path of the API, and notes it for "copy as API call".
func (v *visit) get(ctx context.Context, path string, query url.Values, out any) error {
	v.note(path, query)
	return v.read(ctx, path, query, out)
}

// getFor is get for what changes slowly: people share an answer for longer.
func (v *visit) getFor(ctx context.Context, keep time.Duration, path string, query url.Values, out any) error {
	v.note(path, query)
	return v.readFor(ctx, keep, path, query, out)
}

// note notes a call for "copy as API call".
func (v *visit) note(path string, query url.Values) {
	call := path
	if len(query) > 0 {
		call += "?" + query.Encode()
	}
	if !slices.Contains(v.calls, call) {
		v.calls = append(v.calls, call)
	}
}

// read is get for what is beside the page, such as the top bar.
func (v *visit) read(ctx context.Context, path string, query url.Values, out any) error {
	return v.readFor(ctx, cacheFor, path, query, out)
}

// readFor is read for what changes slowly.
func (v *visit) readFor(ctx context.Context, keep time.Duration, path string, query url.Values, out any) error {
	if v.late {
		return v.tooSlow()
	}
	limited, stop := context.WithTimeout(ctx, v.patience)
	defer stop()
	body, err := v.console.shared.get(limited, v.viewer.rights()+path+"?"+query.Encode(), keep, func(ctx context.Context) ([]byte, error) {
		text, err := v.caller.send(ctx, http.MethodGet, path, query, nil)
		if err != nil && ctx.Err() != nil {
			err = ctx.Err() // the API says of an answer that took too long only that the store is not there
		}
		return text, err
	})
	if errors.Is(err, context.DeadlineExceeded) {
		v.late = true
		return v.tooSlow()
	}
	if err != nil {
		return err
	}
	return json.Unmarshal(body, out)
}

// tooSlow says that the store did not answer one reading in its time.
func (v *visit) tooSlow() error {
	return &httpapi.Problem{Status: http.StatusGatewayTimeout, Title: "Too slow", Why: "the store did not answer within " + v.patience.String() + ", so the reading was stopped", Do: "narrow the filter, or look at the store's health"}
}

// cli notes a command of the CLI that shows the same as the page.
func (v *visit) cli(command string) { v.command = append(v.command, command) }

// may reports whether the viewer's role may use a route of the API.
func (v *visit) may(route string) bool { return v.console.api.may(v.viewer.Role, route) }

// screen is the data of a template.
type screen struct {
	visit *visit
	// View is what the page's load returned. Problem is set instead if it failed.
	View    any
	Problem *httpapi.Problem
	Shell   shell
	At      time.Time
}

// These are for templates.

// Address is where the viewer reaches the server, for the CLI.
func (s *screen) Address() string {
	scheme := "http"
	if c := s.visit.caller; c.tls != nil || c.header.Get("X-Forwarded-Proto") == "https" {
		scheme = "https"
	}
	return scheme + "://" + s.visit.caller.host + s.visit.console.options.Base
}

func (s *screen) Title() string       { return s.visit.page.title }
func (s *screen) Name() string        { return s.visit.page.name }
func (s *screen) Path() string        { return s.visit.path }
func (s *screen) Viewer() viewer      { return s.visit.viewer }
func (s *screen) Calls() []string     { return s.visit.calls }
func (s *screen) Commands() []string  { return s.visit.command }
func (s *screen) Environment() string { return s.visit.console.options.Environment }
func (s *screen) Store() string       { return s.visit.console.options.Store }
func (s *screen) SignIn() string      { return s.visit.console.options.SignIn }

// Views are the views for all. Somebody with bounds may not know what they name.
func (s *screen) Views() []View {
	if s.visit.viewer.Name == "" || s.visit.viewer.bounded() {
		return nil
	}
	return s.visit.console.options.Views
}

// Query returns a filter of the URL.
func (s *screen) Query(name string) string { return s.visit.query.Get(name) }

// Production reports whether acts need a reason, and the top bar is marked.
func (s *screen) Production() bool { return s.visit.console.production() }

func (c *Console) production() bool {
	return strings.HasPrefix(strings.ToLower(c.options.Environment), "prod")
}

// look loads the view of a page, and all that is around it.
func (v *visit) look(ctx context.Context) *screen {
	s := &screen{visit: v, At: time.Now()}
	view, err := v.page.load(ctx, v)
	if err != nil {
		s.Problem = problemOf(err)
	} else {
		s.View = view
	}
	s.Shell = v.shell(ctx)
	return s
}

// problemOf shows any error as the API would.
func problemOf(err error) *httpapi.Problem {
	var p *httpapi.Problem
	switch {
	case errors.As(err, &p):
		return p
	case errors.Is(err, context.DeadlineExceeded):
		return &httpapi.Problem{Status: http.StatusGatewayTimeout, Title: "Too slow", Why: "the store did not answer within " + timeout.String(), Do: "narrow the filter, or look at the store's health"}
	}
	return &httpapi.Problem{Status: http.StatusInternalServerError, Title: "Failed", Why: err.Error(), Do: "see the server's log"}
}

// show answers with a page: as HTML, as a live stream, or one of its charts as CSV.
func (c *Console) show(p page) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, stop := context.WithTimeout(r.Context(), timeout)
		defer stop()
		v, err := c.visit(r.WithContext(ctx), p)
		if err != nil {
			c.refuse(w, r, v, err)
			return
		}
		if r.URL.Query().Has(liveParameter) && !p.still {
			c.stream(w, r, v)
			return
		}
		if kind := v.query.Get("save"); kind != "" && p.name == "jobs" {
			c.saveAll(w, r, v, kind)
			return
		}
		s := v.look(ctx)
		if s.Problem != nil && s.Problem.Status == http.StatusUnauthorized { // the session has ended meanwhile
			c.refuse(w, r, v, s.Problem)
			return
		}
		if name := v.query.Get("csv"); name != "" && s.Problem == nil {
			s.writeCSV(w, name)
			return
		}
		if view, is := s.View.(moved); is && view.movedTo() != "" {
			http.Redirect(w, r, c.url(view.movedTo()), http.StatusSeeOther)
			return
		}
		if view, is := s.View.(exported); is && v.query.Has("export") {
			view.file().send(w, v.query.Get("export"))
			return
		}
		c.write(w, s, cmp.Or(p.part, "page"))
	})
}

// moved is a view that another page shows better. An empty path: this one shows it.
type moved interface{ movedTo() string }

// exported is a view that can be saved as a file.
type exported interface{ file() file }

// refuse answers somebody whom the API does not know: with the way to sign in, if there is one.
func (c *Console) refuse(w http.ResponseWriter, r *http.Request, v *visit, err error) {
	p := problemOf(err)
	switch {
	case p.Status != http.StatusUnauthorized:
	case r.URL.Query().Has(liveParameter):
		w.Header().Set("Content-Type", "text/event-stream")
		w.WriteHeader(p.Status)
		_, _ = w.Write(sessionEnded()) // the page that asks for its stream loads anew
		return
	case c.options.SignIn != "":
		http.Redirect(w, r, c.options.Base+c.options.SignIn+"?next="+url.QueryEscape(c.options.Base+r.URL.RequestURI()), http.StatusSeeOther)
		return
	}
	c.write(w, &screen{visit: v, Problem: p, At: time.Now()}, "page")
}

// notFound answers for a path without a page.
func (c *Console) notFound(w http.ResponseWriter, r *http.Request) {
	v, err := c.visit(r, page{name: "missing", title: "Not found"})
	if err == nil {
		err = &httpapi.Problem{Status: http.StatusNotFound, Title: "Not found", Why: "the console has no page at " + r.URL.Path, Do: "go to the overview"}
	}
	c.refuse(w, r, v, err)
}

// write renders a template, and sends it whole or not at all.
func (c *Console) write(w http.ResponseWriter, s *screen, part string) {
	var out bytes.Buffer
	if err := c.render(&out, s, part); err != nil {
		http.Error(w, "the page cannot be shown: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if s.Problem != nil {
		w.WriteHeader(s.Problem.Status)
	}
	_, _ = w.Write(out.Bytes()) // the client may be gone
}

// charted is a view with charts.
type charted interface{ charts() []chart }

// writeCSV sends a chart of the page as CSV.
func (s *screen) writeCSV(w http.ResponseWriter, name string) {
	view, is := s.View.(charted)
	if is {
		for _, one := range view.charts() {
			if one.Name == name {
				w.Header().Set("Content-Type", "text/csv; charset=utf-8")
				w.Header().Set("Content-Disposition", `attachment; filename="`+name+`.csv"`)
				out := csv.NewWriter(w)
				_ = out.WriteAll(one.rows()) // the client may be gone
				return
			}
		}
	}
	http.Error(w, "the page has no chart "+name, http.StatusNotFound)
}

// Recovers reports whether the page becomes a good one by itself, such as when the store answers again.
func (s *screen) Recovers() bool {
	return s.Problem == nil || s.Problem.Status >= http.StatusInternalServerError
}

// LiveURL is the address of the page's stream. Empty: the page is still.
func (s *screen) LiveURL() string {
	if s.visit.page.still {
		return ""
	}
	query := url.Values{}
	for name, values := range s.visit.query {
		query[name] = values
	}
	query.Set(liveParameter, "1")
	return s.visit.console.options.Base + escaped(s.visit.path) + "?" + query.Encode()
}

// CallsAsCurl are the calls that the page made, as commands.
func (s *screen) CallsAsCurl() (commands []string) {
	for _, call := range s.visit.calls {
		commands = append(commands, curl(http.MethodGet, call, nil, nil))
	}
	return commands
}

// missing refuses a page of a thing that is not there.
func missing(noun, name string) error {
	return &httpapi.Problem{Status: http.StatusNotFound, Title: "Not found", Why: "there is no " + noun + " " + name, Do: "go back to the list"}
}
