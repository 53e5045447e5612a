package httpapi

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/access"
	"github.com/sluice-queue/sluice/internal/event"
	"github.com/sluice-queue/sluice/search"
)

// call is one request and its sender.
type call struct {
	api    *API
	id     string // in the log and in the answer
	method string
	path   string
	caller access.Caller
	by     string // in the audit
	// request names the sender, also later.
	request *http.Request
	actID   sluice.ID
	route   *Route
	// later answers a request that waits. Nil: its route answers.
	later func(http.ResponseWriter)
	// deadlines move the deadlines of the connection.
	deadlines *http.ResponseController
}

type callKey struct{}

// callOf returns the call of a context.
func callOf(ctx context.Context) *call {
	c, _ := ctx.Value(callKey{}).(*call)
	return c
}

// maxBy is the most bytes of the header Sluice-By.
const maxBy = 100

type consoleKey struct{}

// InConsole marks the requests of the console: the audit says of their acts `in the console`. A header could be sent by anybody.
func InConsole(ctx context.Context) context.Context {
	return context.WithValue(ctx, consoleKey{}, true)
}

// inConsole ends the names of those who act in the console.
const inConsole = " in the console"

// actor returns the name of the sender in the audit: the person whom the header Sluice-By names, the token, and the console.
func actor(r *http.Request, caller access.Caller) (string, error) {
	person := strings.TrimSpace(r.Header.Get("Sluice-By"))
	switch {
	case r.Context().Value(consoleKey{}) != nil:
		return caller.Name + inConsole, nil
	case strings.HasSuffix(person, inConsole):
		return "", &sluice.InvalidError{Field: "Sluice-By", Rule: "must not end with" + inConsole}
	case len(person) > maxBy || !utf8.ValidString(person) || sluice.StoredText(person) != person:
		return "", &sluice.InvalidError{Field: "Sluice-By", Rule: fmt.Sprintf("must be valid UTF-8 of at most %d bytes", maxBy)}
	case person == "":
		return caller.Name, nil
	case caller.Name == local.Name:
		return person, nil
	}
	return person + " by " + caller.Name, nil
}

// act returns the act of the call. With the header Idempotency-Key, a request that is sent again does nothing twice: the stores find its ID in
// their audit, whichever server has it and whatever others have done since.
func (c *call) act(reason string) sluice.Act {
	id := c.actID
	if id.IsZero() {
		id = sluice.NewID()
	}
	return sluice.Act{By: c.by, Reason: reason, ID: id}
}

// idOf returns the ID of the n-th thing that the request makes. It follows from the key of the request, so that the request makes the same
// things when it is sent again. As with new IDs, the IDs of later things sort later. Without a key it is zero.
func (c *call) idOf(n int) (id sluice.ID) {
	if c.actID.IsZero() {
		return id
	}
	id = c.actID
	high := binary.BigEndian.Uint64(id[:8])
	at := (high>>16<<12 | high&0xfff) + uint64(n)
	binary.BigEndian.PutUint64(id[:8], at>>12<<16|high&0xf000|at&0xfff)
	return id
}

// within narrows a query to the queues and tenants that the caller knows.
func (c *call) within(q search.Query) search.Query {
	return q.OnlyQueues(c.caller.Queues).OnlyTenants(c.caller.Tenants)
}

// reads reports whether the caller may read payloads, checkpoints and results.
func (c *call) reads() bool { return c.caller.May(access.Read) }

// job reads a job that the caller knows. Another job is a [sluice.ErrNotFound], as one that is not stored.
func (c *call) job(ctx context.Context, id sluice.ID) (sluice.Job, error) {
	job, err := c.api.client().Job(ctx, id)
	if err == nil && !c.caller.Job(job.Queue, job.Tenant) {
		return sluice.Job{}, sluice.ErrNotFound
	}
	return job, err
}

// blocker returns which job blocks a job, if the caller may know. Else it is the job itself, so that it stays blocked.
func (c *call) blocker(ctx context.Context, job sluice.Job) (sluice.ID, error) {
	if c.caller.None() || job.BlockedBy.IsZero() || job.BlockedBy == job.ID {
		return job.BlockedBy, nil
	}
	switch _, err := c.job(ctx, job.BlockedBy); {
	case errors.Is(err, sluice.ErrNotFound):
		return job.ID, nil
	case err != nil:
		return sluice.ID{}, err
	}
	return job.BlockedBy, nil
}

// hideBlockers is blocker for a list, where a caller with bounds is told of jobs that are in the list too, or that a job names: to read
// the others would make a list dear.
func (c *call) hideBlockers(jobs []ShownJob) {
	if c.caller.None() {
		return
	}
	listed := make(map[sluice.ID]bool, len(jobs))
	for _, job := range jobs {
		listed[job.ID] = true
	}
	for i := range jobs {
		if j := &jobs[i]; !j.BlockedBy.IsZero() && !listed[j.BlockedBy] && !slices.Contains(j.After, j.BlockedBy) {
			j.BlockedBy = j.ID
		}
	}
}

// withhold removes payload, checkpoint and result from a job, unless the caller may read them.
func (c *call) withhold(job sluice.Job) sluice.Job {
	if !c.reads() {
		job.Payload, job.Checkpoint, job.Result, job.Withheld = nil, nil, nil, true
	}
	return job
}

// refuse answers with a problem, outside of a route.
func (c *call) refuse(w http.ResponseWriter, p *Problem) {
	p.RequestID = c.id
	if p.What == "" {
		p.What = sluice.Brief(c.method + " " + c.path)
		p.Detail = p.What + ": " + p.Why
	}
	c.noteRefusal(p)
	for name, values := range p.GetHeaders() {
		w.Header()[name] = values
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(p.Status)
	_ = json.NewEncoder(w).Encode(p) // the client may be gone
}

// noteRefusal logs what the caller did wrong, so that a person finds the request. Faults of the server have lines of their own.
func (c *call) noteRefusal(p *Problem) {
	if c == nil || p.Status >= http.StatusInternalServerError {
		return
	}
	c.api.log.Emit(event.RequestRefused, "", "request", c.id, "status", p.Status, "code", p.Code, "path", c.api.options.Clean(sluice.Brief(c.path)), "by", c.caller.Name)
}

// answerPanic ends a request whose handler panicked. The details are in the log.
func (c *call) answerPanic(w http.ResponseWriter) {
	value := recover()
	if value == nil {
		return
	}
	if value == http.ErrAbortHandler { //nolint:errorlint // a panic's value, by its identity, as net/http does
		panic(value)
	}
	text := c.api.options.Clean(fmt.Sprint(value))
	c.api.log.Emit(event.RequestFailed, "", "request", c.id, "path", c.path, "error", text, "stack", string(debug.Stack()))
	c.refuse(w, failed())
}
