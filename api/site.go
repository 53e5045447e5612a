// Package api answers questions about a process over HTTP: is it alive (/healthz), is it ready and if not, why
// (/readyz), and its metrics (/metrics). Programs can add paths of their own.
//
// Begin with [New], which makes a [Site], and [Serve], which serves it on a listener. For /readyz, make a
// [Readiness] of checks, such as [StoreAnswers] and [Beats], with [NewReadiness].
//
// The package imports only the standard library and Sluice's own types; package metric provides the metrics.
// Next, read docs/guide/health.md.
package api

import (
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/event"
)

// Options adjust a [Site]. The zero value works.
type Options struct {
	// Base is the path prefix of everything, such as "/sluice" behind a proxy. Default: the root.
	Base string
	// Hosts are the only names, without a port, that requests may be made to. Otherwise a page of a foreign
	// site could use its visitor's browser to ask, by a name that points here. Default: every name is accepted.
	// [LoopbackHosts] are right for a listener on loopback.
	Hosts []string
	// Readiness answers /readyz. Default: /readyz does not exist.
	Readiness *Readiness
	// Metrics answers /metrics. The public must never be able to reach it. Default: /metrics does not exist.
	Metrics http.Handler
	// Logger gets panics of handlers (see docs/events.md). Default: slog.Default.
	Logger *slog.Logger
}

// LoopbackHosts returns the names by which a machine addresses itself.
func LoopbackHosts() []string { return []string{"localhost", "127.0.0.1", "::1"} }

// Site maps the paths of a server to handlers. A Site is an http.Handler.
type Site struct {
	options Options
	log     *event.Log
	mux     *http.ServeMux
	rest    http.Handler // of paths that no other handler has
	all     http.Handler
}

// New makes a site. A base that is not a clean path is an error.
func New(options Options) (*Site, error) {
	if options.Logger == nil {
		options.Logger = slog.Default()
	}
	options.Base = strings.TrimSuffix(options.Base, "/")
	if base := options.Base; base != "" && (base[0] != '/' || path.Clean(base) != base || strings.ContainsAny(base, "{} ?#%")) {
		return nil, fmt.Errorf("the base path %q is not one such as /sluice", base)
	}
	s := &Site{options: options, log: event.NewLog(options.Logger, "", 0), mux: http.NewServeMux(), rest: onlyLook(http.HandlerFunc(notFound))}
	s.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { s.rest.ServeHTTP(w, r) })
	s.Handle("/healthz", http.HandlerFunc(alive))
	if options.Readiness != nil {
		s.Handle("/readyz", options.Readiness)
	}
	if options.Metrics != nil {
		s.Handle("/metrics", options.Metrics)
	}
	s.all = s.guard(s.mux)
	return s, nil
}

// Handle adds a handler for a path below the base; with a trailing slash, for all paths that begin with it. The
// handler sees the path without the base, and requests that only look: GET and HEAD, with a body of at most 64 KiB.
// Call Handle before the site is served. With a nil handler, the path answers 404.
func (s *Site) Handle(at string, handler http.Handler) {
	if sluice.CheckGiven("handler", handler) != nil {
		handler = http.HandlerFunc(notFound)
	}
	s.HandleAll(at, onlyLook(handler))
}

// HandleAll is Handle for a handler that gets requests of every method, and bounds their bodies itself. At / it gets all
// paths that no other handler has.
func (s *Site) HandleAll(at string, handler http.Handler) {
	if sluice.CheckGiven("handler", handler) != nil {
		handler = http.HandlerFunc(notFound)
	}
	if s.options.Base+at == "/" {
		s.rest = handler
		return
	}
	s.mux.Handle(s.options.Base+at, http.StripPrefix(s.options.Base, handler))
}

// Base returns the path prefix of everything; empty: the root.
func (s *Site) Base() string { return s.options.Base }

// ServeHTTP answers a request.
func (s *Site) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.all.ServeHTTP(w, r) }

// alive reports that the process answers. Nothing else is checked: a restart does not help if the store is
// unreachable.
func alive(w http.ResponseWriter, _ *http.Request) { writeText(w, http.StatusOK, "live\n") }

func notFound(w http.ResponseWriter, r *http.Request) {
	WriteProblem(w, Problem{Status: http.StatusNotFound, Detail: "nothing is answered at " + r.URL.Path})
}

// maxBody is the largest body of a request that only looks, in bytes.
const maxBody = 64 << 10

// headers go with every answer: it is never cached, framed, sniffed, or shared with a page of another site.
var headers = map[string]string{
	"Cache-Control":                "no-store",
	"Content-Security-Policy":      "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
	"Cross-Origin-Resource-Policy": "same-origin",
	"Referrer-Policy":              "no-referrer",
	"X-Content-Type-Options":       "nosniff",
	"X-Frame-Options":              "DENY",
}

// guard refuses requests that no handler should see, and answers if a handler panics.
func (s *Site) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name, value := range headers {
			w.Header().Set(name, value)
		}
		defer s.answerPanic(w, r)
		if len(s.options.Hosts) > 0 && !MadeTo(r, s.options.Hosts) {
			s.refuseName(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// onlyLook refuses requests that change something, or have a large body.
func onlyLook(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			w.Header().Set("Allow", "GET, HEAD")
			WriteProblem(w, Problem{Status: http.StatusMethodNotAllowed, Detail: "here one can only look: use GET or HEAD"})
		case r.ContentLength > maxBody:
			WriteProblem(w, Problem{Status: http.StatusRequestEntityTooLarge, Detail: fmt.Sprintf("the body is larger than %d bytes", maxBody)})
		default:
			r.Body = http.MaxBytesReader(w, r.Body, maxBody)
			next.ServeHTTP(w, r)
		}
	})
}

// refuseName answers a request that is made to another name, in the form of the HTTP API.
func (s *Site) refuseName(w http.ResponseWriter, r *http.Request) {
	const why, status = "this server is not called by that name", http.StatusMisdirectedRequest
	what, do := sluice.Brief(r.Method+" "+r.URL.Path), "ask it as "+strings.Join(s.options.Hosts, " or ")
	writeJSON(w, "application/problem+json", status, struct {
		Problem
		Code string `json:"code"`
		What string `json:"what"`
		Why  string `json:"why"`
		Do   string `json:"do"`
	}{Problem{Type: "about:blank", Title: http.StatusText(status), Status: status, Detail: what + ": " + why + "; " + do}, "other_name", what, why, do})
}

// MadeTo reports whether a request is made to one of these names, at any port.
func MadeTo(r *http.Request, hosts []string) bool {
	name := r.Host
	if bare, _, err := net.SplitHostPort(name); err == nil {
		name = bare
	}
	name = strings.TrimSuffix(strings.TrimPrefix(name, "["), "]")
	return slices.ContainsFunc(hosts, func(known string) bool { return strings.EqualFold(known, name) })
}

// answerPanic ends a request whose handler panicked, without details: those are in the log.
func (s *Site) answerPanic(w http.ResponseWriter, r *http.Request) {
	value := recover()
	if value == nil {
		return
	}
	if value == http.ErrAbortHandler { //nolint:errorlint // a panic's value, by its identity, as net/http does
		panic(value)
	}
	s.log.Emit(event.RequestFailed, "", "path", r.URL.Path, "error", fmt.Sprint(value), "stack", string(debug.Stack()))
	WriteProblem(w, Problem{Status: http.StatusInternalServerError, Detail: "the server's log says why"})
}
