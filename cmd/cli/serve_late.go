package cli

import (
	"net/http"
	"sync/atomic"

	"github.com/sluice-queue/sluice/api"
)

// lateHandler answers with a handler that needs the store, once the store is open.
type lateHandler[H http.Handler] struct {
	opened atomic.Pointer[H]
	// closed answers before. Nil: with a problem, as the API does.
	closed http.HandlerFunc
}

// open lets callers reach a handler, and handler returns it.
func (l *lateHandler[H]) open(h H) { l.opened.Store(&h) }

func (l *lateHandler[H]) handler() H { return *l.opened.Load() }

// ServeHTTP answers a request.
func (l *lateHandler[H]) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch opened := l.opened.Load(); {
	case opened != nil:
		(*opened).ServeHTTP(w, r)
	case l.closed != nil:
		l.closed(w, r)
	default:
		w.Header().Set("Retry-After", "1")
		api.WriteProblem(w, api.Problem{Status: http.StatusServiceUnavailable, Detail: "the store is not open yet; send it again"})
	}
}
