package httpapi

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/access"
	"github.com/sluice-queue/sluice/admission"
	"github.com/sluice-queue/sluice/engine"
	"github.com/sluice-queue/sluice/internal/event"
	"github.com/sluice-queue/sluice/pressure"
)

// Problem is the answer to a request that failed, by RFC 9457 (application/problem+json).
type Problem struct {
	// Title is the status in words, and Status the status code.
	Title  string `json:"title"`
	Status int    `json:"status"`
	// Code names the kind of problem for programs, such as not_found.
	Code string `json:"code"`
	// Detail is one sentence for people: what failed, and why.
	Detail string `json:"detail"`
	// What failed, such as `cancel jobs`. Why says the cause, and Do the remedy.
	What string `json:"what,omitempty"`
	Why  string `json:"why"`
	Do   string `json:"do"`
	// Fields are the parts of the request that break a rule.
	Fields []FieldProblem `json:"fields,omitempty"`
	// RetryAfterSeconds is how long to wait before the next try. Missing: nobody knows.
	RetryAfterSeconds float64 `json:"retry_after_seconds,omitempty"`
	// About has the names and numbers of the error, such as the full queue and its limit.
	About map[string]any `json:"about,omitempty"`
	// RequestID is in the server's log too.
	RequestID string `json:"request_id,omitempty"`

	retryAfter time.Duration
}

// FieldProblem is a part of a request that breaks a rule.
type FieldProblem struct {
	// Field names the part, such as body.ids[3] or query.limit, and Rule the rule.
	Field string `json:"field"`
	Rule  string `json:"rule"`
}

// Error returns the cause.
func (p *Problem) Error() string { return p.Why }

// GetStatus returns the status code.
func (p *Problem) GetStatus() int { return p.Status }

// ContentType returns the media type of problems.
func (p *Problem) ContentType(string) string { return "application/problem+json" }

// GetHeaders returns the headers that go with the problem.
func (p *Problem) GetHeaders() http.Header {
	h := http.Header{}
	if p.retryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(int(math.Ceil(p.retryAfter.Seconds()))))
	}
	if p.Status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", `Bearer realm="sluice"`)
	}
	return h
}

// problemOf makes a problem.
func problemOf(status int, code, why, do string) *Problem {
	return &Problem{Title: http.StatusText(status), Status: status, Code: code, Why: why, Detail: why, Do: do}
}

// after makes a problem that passes in time.
func (p *Problem) after(d time.Duration) *Problem {
	p.retryAfter = max(d, time.Second)
	p.RetryAfterSeconds = d.Seconds()
	return p
}

// with says what the problem is about, for programs.
func (p *Problem) with(about map[string]any) *Problem {
	p.About = about
	return p
}

func failed() *Problem {
	return problemOf(http.StatusInternalServerError, "failed", "the server failed", "look for the request id in the server's log")
}

// outOfBounds refuses a caller whose token is bounded.
func outOfBounds(why string) *Problem {
	return problemOf(http.StatusForbidden, "out_of_bounds", why, "use a token that is not bounded so, or ask an admin for one")
}

// kinds are the library's errors that a caller can act on, the most special first.
var kinds = []struct {
	err    error
	status int
	code   string
	do     string
}{
	{sluice.ErrInvalid, http.StatusUnprocessableEntity, "invalid", "correct it and send it again"},
	{sluice.ErrNotFound, http.StatusNotFound, "not_found", "list what there is"},
	{sluice.ErrNotAllowed, http.StatusConflict, "not_allowed", "look at the object's state"},
	{sluice.ErrDuplicate, http.StatusConflict, "duplicate", "wait for the job that holds the key, or cancel it"},
	{access.ErrTaken, http.StatusConflict, "conflict", "rotate that token, or choose another name"},
	{sluice.ErrConflict, http.StatusConflict, "conflict", "read it again, and repeat the change"},
	{sluice.ErrLost, http.StatusConflict, "lost", "end the work on the job: somebody else has it, or will have it"},
	{sluice.ErrQueueGone, http.StatusConflict, "queue_gone", "send it again"},
	{sluice.ErrReader, http.StatusForbidden, "store_reads_only", "give the server a role of the database that may write"},
	{sluice.ErrFollower, http.StatusConflict, "follower_failed", "nothing was changed; mend the statement of the follower"},
	{sluice.ErrMoved, http.StatusServiceUnavailable, "store_moved", "give the server the address of the new store"},
	{sluice.ErrNewerSchema, http.StatusServiceUnavailable, "newer_schema", "deploy the newer program on the server"},
	{sluice.ErrNotMigrated, http.StatusServiceUnavailable, "not_migrated", "run `sluice migrate` on the server"},
	{engine.ErrUnavailable, http.StatusBadGateway, "engine_unavailable", "send it again when the engine answers"},
	{engine.ErrTarget, http.StatusConflict, "engine_target", "correct the engine's settings of the queue"},
}

// problem makes a problem of an error.
func (c *call) problem(err error) *Problem {
	p := c.kindOf(err)
	if c.route != nil {
		p.What = c.route.Summary
		knowsAll := c.route.names && c.caller.None()
		if p.Code == "not_found" && !knowsAll { // the same for what there is not and for what the caller must not know
			p.Why = "there is no such " + c.route.noun
		}
		if p.Code == "duplicate" && len(c.caller.Tenants) > 0 { // another tenant's job may hold the key
			p.Why = "another unfinished job holds the key"
		}
		p.Detail = p.What + ": " + p.Why
	}
	p.RequestID = c.id
	return p
}

func (c *call) kindOf(err error) *Problem {
	var problem *Problem
	if errors.As(err, &problem) {
		copied := *problem
		return &copied
	}
	var full *pressure.FullError
	if errors.As(err, &full) && full.Tenant == "" && len(c.caller.Tenants) > 0 { // the jobs of all tenants wait
		told := *full
		told.Waiting = told.Limit
		err = &told
	}
	why := c.api.options.Clean(sluice.Brief(err.Error()))
	var unknown *admission.UnknownQueueError
	var limit *admission.QueueLimitError
	var notEmpty *sluice.QueueNotEmptyError
	var runner *sluice.OtherRunnerError
	switch {
	case errors.As(err, &full) && full.RetryAfter > 0:
		return problemOf(http.StatusTooManyRequests, "full", why, "send it again later").after(full.RetryAfter).with(aboutFull(full))
	case errors.As(err, &full):
		return problemOf(http.StatusUnprocessableEntity, "full", why, "split the request").with(aboutFull(full))
	case errors.As(err, &unknown):
		return notAdmitted(why).with(map[string]any{"queue": unknown.Queue})
	case errors.As(err, &limit) && !c.caller.None(): // the count and the bound tell of queues that the caller must not know
		return notAdmitted(fmt.Sprintf("queue %q is not made: the store has as many queues as it may have", limit.Queue)).with(map[string]any{"queue": limit.Queue, "limit_reached": true})
	case errors.As(err, &limit):
		return notAdmitted(why).with(map[string]any{"queue": limit.Queue, "stored": limit.Stored, "max_queues": limit.MaxQueues})
	case errors.As(err, &runner):
		return problemOf(http.StatusConflict, "other_runner", why, "let the engine run the jobs, or clear the queue's engine").with(map[string]any{"queue": runner.Queue, "engine": runner.Engine, "claimed": runner.Claimed})
	case errors.As(err, &notEmpty):
		return problemOf(http.StatusConflict, "not_empty", why, "empty the queue first").with(map[string]any{"queue": notEmpty.Queue, "holds": notEmpty.Holds})
	case errors.Is(err, context.DeadlineExceeded):
		return problemOf(http.StatusServiceUnavailable, "timeout", "the answer took too long", "ask for less, or send it again").after(time.Second)
	case errors.Is(err, context.Canceled):
		return problemOf(http.StatusServiceUnavailable, "ended", "the request or the server ended before the answer", "send it again").after(time.Second)
	}
	for _, kind := range kinds {
		if errors.Is(err, kind.err) {
			p := problemOf(kind.status, kind.code, why, kind.do)
			var invalid *sluice.InvalidError
			if errors.As(err, &invalid) {
				p.Fields = []FieldProblem{{invalid.Field, invalid.Rule}}
			}
			if kind.status == http.StatusServiceUnavailable {
				p.retryAfter = 5 * time.Second
			}
			return p
		}
	}
	if errors.Is(err, sluice.ErrDiskFull) {
		c.api.log.Emit(event.RequestUnanswered, "", "request", c.id, "path", c.path, "error", why)
		return problemOf(http.StatusServiceUnavailable, "disk_full", "the disk of the store's database is full", "make room on that disk, or ask who runs the server to; then send it again").after(5 * time.Second)
	}
	if errors.Is(err, sluice.ErrUnavailable) {
		c.api.log.Emit(event.RequestUnanswered, "", "request", c.id, "path", c.path, "error", why)
		return problemOf(http.StatusServiceUnavailable, "store_unavailable", "the store does not answer", "send it again").after(time.Second)
	}
	c.api.log.Emit(event.RequestFailed, "", "request", c.id, "path", c.path, "error", why)
	return failed()
}

// aboutFull says what is full.
func aboutFull(e *pressure.FullError) map[string]any {
	return map[string]any{"queue": e.Queue, "tenant": e.Tenant, "waiting": e.Waiting, "limit": e.Limit, "jobs": e.Jobs}
}

// notAdmitted refuses a new queue.
func notAdmitted(why string) *Problem {
	return problemOf(http.StatusConflict, "queue_not_admitted", why, "name a queue that exists, or ask an operator to make the queue")
}

// fromHuma makes a problem of an error of the request's form, which huma has found.
func fromHuma(c *call, m *huma.ErrorModel) *Problem {
	code := map[int]string{
		http.StatusRequestEntityTooLarge: "too_large", http.StatusRequestTimeout: "too_slow", http.StatusUnsupportedMediaType: "media_type",
	}[m.Status]
	if code == "" {
		code = "invalid"
	}
	p := problemOf(m.Status, code, m.Detail, "correct it and send it again; see "+Root+"/openapi.json")
	for i, detail := range m.Errors {
		if detail == nil {
			continue
		}
		if i == 0 {
			p.Why = fmt.Sprintf("invalid %s: %s", detail.Location, detail.Message)
		}
		if p.Fields = append(p.Fields, FieldProblem{detail.Location, detail.Message}); len(p.Fields) == 20 {
			break
		}
	}
	p.Detail = p.Why
	if c != nil {
		p.RequestID = c.id
		if c.route != nil {
			p.What = c.route.Summary
			p.Detail = p.What + ": " + p.Why
		}
	}
	return p
}
