package httpapi

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/access"
	"github.com/sluice-queue/sluice/cmd/internal/jobline"
)

// Route is a kind of request.
type Route struct {
	// Method and Path are those of the request; the path is below [Root].
	Method, Path string
	// Name is the operation's id in openapi.json, such as get-job, and Group its resource.
	Name, Group string
	// Summary is a verb and its object, such as `cancel jobs`. Text says more. Empty: nothing.
	Summary, Text string
	// Needs are the rights of which a caller needs one.
	Needs access.Right
	// Commands are the commands of the CLI that do the same, such as `cancel`.
	Commands []string

	scope   scope
	noun    string        // of the object that may be missing; default: job
	names   bool          // a request names several objects: callers without bounds learn which is missing
	timeout time.Duration // default: Timeout of the bounds
	waits   bool          // it waits for something, without work for the store
	endless bool          // it has no deadline; the handler bounds its reads and writes
	status  int           // of success; default 200
}

// scope says which bounded callers may use a route.
type scope int

const (
	// ofStore is about everything: a caller with bounds is refused.
	ofStore scope = iota
	// ofQueue is about the queue in the path. For a caller with other queues, or with bounds of tenants, the queue is
	// not there.
	ofQueue
	// ofTenant is about the tenant in the path, and is as ofQueue.
	ofTenant
	// ofJobs leaves the bounds to the handler, which uses call.job and call.within.
	ofJobs
)

// answer is the body of an answer, as huma wants it.
type answer struct{ Body any }

// nothing is an input without parameters, or an answer without a body.
type nothing struct{}

// add adds a route. Do gets the caller's request and returns the body of the answer; its error becomes a problem.
//
// Huma learns of the route when its first request comes: all routes together take 4.4 MB and 42,000 allocations, which each start of a
// server would cost. Each route has a part of huma for itself, so that none is read while another is added. Huma checks requests
// alone, so that it learns the type of the answer only for the description.
func add[In, Out any](a *API, r Route, do func(ctx context.Context, c *call, in *In) (Out, error)) {
	a.declare(&r)
	register := func(of huma.API, op huma.Operation) {
		op.MaxBodyBytes, op.BodyReadTimeout = a.options.Bounds.Body, a.options.Bounds.Timeout
		op.Middlewares = huma.Middlewares{func(ctx huma.Context, next func(huma.Context)) { a.carryOut(ctx, &r, next) }}
		huma.Register(of, op, func(ctx context.Context, in *In) (*answer, error) {
			return answered(ctx, &r, func(ctx context.Context, c *call) (any, error) { return do(ctx, c, in) })
		})
	}
	a.describe = append(a.describe, func(of huma.API) {
		op := r.operation()
		op.Responses[strconv.Itoa(cmp.Or(r.status, http.StatusOK))] = &huma.Response{Content: map[string]*huma.MediaType{typeJSON: {Schema: schemaOf[Out](of)}}}
		op.Responses["default"] = problemResponse(of)
		register(of, op)
	})
	handler := sync.OnceValue(func() http.HandlerFunc {
		made := new(oneRoute)
		of := newHuma(made)
		register(of, r.operation())
		listsAreNeverNull(of.OpenAPI())
		return made.HandlerFunc
	})
	a.mux.HandleFunc(r.Method+" "+Root+r.Path, func(w http.ResponseWriter, request *http.Request) { handler()(w, request) })
}

// oneRoute takes the handler that huma makes of an operation.
type oneRoute struct{ http.HandlerFunc }

func (o *oneRoute) HandleFunc(_ string, handler func(http.ResponseWriter, *http.Request)) {
	o.HandlerFunc = handler
}

// answered returns the answer of do, or leaves it for later when the request waits.
func answered(ctx context.Context, r *Route, do func(context.Context, *call) (any, error)) (*answer, error) {
	c := callOf(ctx)
	_ = c.deadlines.SetReadDeadline(time.Time{}) // the body is read; a later deadline would end the request
	if r.waits {
		c.later = func(w http.ResponseWriter) {
			out, err := do(ctx, c)
			if err != nil {
				c.refuse(w, c.problem(err))
				return
			}
			writeJSON(w, http.StatusOK, out)
		}
		return nil, nil
	}
	out, err := do(ctx, c)
	if err != nil {
		return nil, c.problem(err)
	}
	return &answer{out}, nil
}

// readOnly is the context of a request that waits, while huma reads it. The request waits after huma has returned, on a stack that is
// half as big: huma's part of it would be kept for each waiting client.
type readOnly struct {
	humaContext
	c *call
}

// humaContext gives the embedded context another name than its method Context has.
type humaContext huma.Context

// Unwrap lets huma find the request.
func (r readOnly) Unwrap() huma.Context { return r.humaContext }

// SetStatus begins the answer, unless that comes later.
func (r readOnly) SetStatus(status int) {
	if r.c.later == nil {
		r.humaContext.SetStatus(status)
	}
}

// carryOut lets huma read and answer a request, if it is admitted. A request that waits is answered after huma has read it.
func (a *API) carryOut(ctx huma.Context, r *Route, next func(huma.Context)) {
	request, w := humago.Unwrap(ctx)
	request, leave := a.admit(w, request, r)
	if leave == nil {
		return
	}
	defer leave()
	ctx = huma.WithContext(ctx, request.Context())
	if !r.waits {
		next(ctx)
		return
	}
	c := callOf(request.Context())
	next(readOnly{ctx, c})
	if c.later != nil {
		c.later(w)
	}
}

// addRaw adds a route that reads and writes by itself. Describe completes the route in openapi.json.
func addRaw(a *API, r Route, describe func(huma.API, *huma.Operation), do func(w http.ResponseWriter, request *http.Request, c *call) error) {
	a.declare(&r)
	a.describe = append(a.describe, func(of huma.API) {
		op := r.operation()
		describe(of, &op)
		op.Responses["default"] = problemResponse(of)
		of.OpenAPI().AddOperation(&op)
	})
	a.mux.HandleFunc(r.Method+" "+Root+r.Path, func(w http.ResponseWriter, request *http.Request) {
		request, leave := a.admit(w, request, &r)
		if leave == nil {
			return
		}
		defer leave()
		c := callOf(request.Context())
		if err := do(w, request, c); err != nil {
			c.refuse(w, c.problem(err))
		}
	})
}

// declare completes a route, and notes it.
func (a *API) declare(r *Route) {
	if r.noun == "" {
		r.noun = "job"
	}
	if r.timeout == 0 {
		r.timeout = a.options.Bounds.Timeout
	}
	a.routes = append(a.routes, *r)
}

// operation begins the description of a route.
func (r *Route) operation() huma.Operation {
	return huma.Operation{
		OperationID: r.Name, Method: r.Method, Path: Root + r.Path, Summary: r.Summary, Description: r.Text, Tags: []string{r.Group},
		DefaultStatus: r.status, Extensions: map[string]any{"x-sluice-roles": rolesOf(r.Needs)}, Responses: map[string]*huma.Response{},
	}
}

// problemResponse describes the answer of a request that failed.
func problemResponse(of huma.API) *huma.Response {
	return &huma.Response{Description: "the request failed", Content: map[string]*huma.MediaType{"application/problem+json": {Schema: schemaOf[Problem](of)}}}
}

// rolesOf lists the roles that have one of these rights.
func rolesOf(needs access.Right) (roles []access.Role) {
	for _, role := range access.Roles() {
		if role.Rights()&needs != 0 {
			roles = append(roles, role)
		}
	}
	return roles
}

// slack is how long the writing of an answer may take after its deadline.
const slack = 10 * time.Second

// admit checks that the caller may send a request, and that it is within its bounds. It returns the request with its deadline, and
// leave, which ends the request. Nil: it was refused, and is answered.
func (a *API) admit(w http.ResponseWriter, request *http.Request, r *Route) (admitted *http.Request, leave func()) {
	c := callOf(request.Context())
	c.route = r
	if p := c.allow(request, r); p != nil {
		c.refuse(w, c.problem(p))
		return nil, nil
	}
	outside, refused := a.crowd.enter(c.caller.Name, r.waits, time.Now())
	if refused != nil {
		c.refuse(w, c.problem(refused))
		return nil, nil
	}
	c.deadlines = http.NewResponseController(w)
	_ = c.deadlines.SetReadDeadline(time.Now().Add(c.api.options.Bounds.Timeout)) // a recorder of tests has none
	if r.endless {
		return request, outside
	}
	_ = c.deadlines.SetWriteDeadline(time.Now().Add(r.timeout + slack))
	ctx, cancel := context.WithTimeout(request.Context(), r.timeout)
	return request.WithContext(ctx), func() {
		cancel()
		outside()
	}
}

// allow returns why a caller must not send a request. Nil: the caller may.
func (c *call) allow(request *http.Request, r *Route) *Problem {
	if !c.caller.May(r.Needs) {
		return problemOf(http.StatusForbidden, "forbidden", "the role "+string(c.caller.Role)+" may not do this", "use a token with another role, or ask an admin for one")
	}
	if key := request.Header.Get("Idempotency-Key"); key != "" {
		id, err := jobline.ParseID(key)
		if err != nil {
			return c.problem(&sluice.InvalidError{Field: "Idempotency-Key", Rule: "must be an ID of 8-4-4-4-12 hexadecimal digits"})
		}
		c.actID = id
	}
	if err := checkQuery(request); err != nil {
		return c.problem(err)
	}
	b := c.caller.Bounds
	switch {
	case b.None() || r.scope == ofJobs:
		return nil
	case r.scope == ofQueue && len(b.Tenants) == 0 && b.Queue(request.PathValue("queue")):
		return nil
	case r.scope == ofTenant && len(b.Queues) == 0 && b.Tenant(request.PathValue("tenant")):
		return nil
	case r.scope == ofStore:
		return outOfBounds("the token is bounded to some queues or tenants")
	}
	return c.problem(sluice.ErrNotFound)
}

// checkQuery refuses a parameter that is given empty, mostly from an unset variable of a script. Taken as not given, tenant= would
// list the jobs of every tenant. An empty place is the first page.
func checkQuery(request *http.Request) error {
	if request.URL.RawQuery == "" {
		return nil
	}
	query := request.URL.Query()
	for _, name := range slices.Sorted(maps.Keys(query)) {
		if slices.Contains(query[name], "") && !slices.Contains([]string{"cursor", "before", "after"}, name) {
			return &sluice.InvalidError{Field: "query." + name, Rule: "is empty; give it a value, or leave it out"}
		}
	}
	return nil
}

// writeJSON answers with a value.
func writeJSON(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(value) // the client may be gone
}
