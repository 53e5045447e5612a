package remote

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/admission"
	"github.com/sluice-queue/sluice/pressure"
)

// ErrRefused: the server does not know the token, or the token may not do this. The error is an [*Error], which says what
// to do.
var ErrRefused = errors.New("refused by the server")

// Error is the answer of a server that refused or failed a call. errors.Is and errors.As find the library's errors in it, such
// as [sluice.ErrNotFound] and [*sluice.InvalidError].
type Error struct {
	// Status is the status of HTTP. Code names the kind of error, such as not_found; see docs/api.md.
	Status int
	Code   string
	// Why says the cause, and Do the remedy.
	Why string
	Do  string
	// RequestID finds the request in the server's log.
	RequestID string

	verb  string
	cause error
}

// Error says what failed, and why.
func (e *Error) Error() string { return e.verb + ": " + e.Why }

// Unwrap returns the library's error.
func (e *Error) Unwrap() error { return e.cause }

// UnsupportedError says that a call needs the database itself. It is an [errors.ErrUnsupported].
type UnsupportedError struct {
	// What cannot be done over HTTP, Why, and what to Do instead.
	What string
	Why  string
	Do   string
}

// Error says what, why, and what to do.
func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("%s is not possible over HTTP: %s; %s", e.What, e.Why, e.Do)
}

// Is makes an UnsupportedError an [errors.ErrUnsupported]. As the ports of features promise, it is a [sluice.ErrNotFound] too.
func (e *UnsupportedError) Is(target error) bool {
	return target == errors.ErrUnsupported || target == sluice.ErrNotFound
}

// theServer refuses what the server does by itself.
func (s *Store) theServer(what string) error {
	if err := s.opened(what); err != nil {
		return err
	}
	return &UnsupportedError{what, "the server does it", "leave it to `sluice serve`, or open the database"}
}

// theDatabase refuses what only a program beside the database can do.
func (s *Store) theDatabase(what string) error {
	if err := s.opened(what); err != nil {
		return err
	}
	return &UnsupportedError{what, "the server has no request for it", "open the database, such as with --db postgres://…"}
}

// opened returns the error of a store that is closed.
func (s *Store) opened(verb string) error {
	if s.closing.Err() != nil {
		return fmt.Errorf("%s: the store is closed: %w", verb, sluice.ErrUnavailable)
	}
	return nil
}

// Lacks returns the error for a feature that the store lacks; lacks is such as "keeps no alerts".
func (s *Store) Lacks(lacks string) error {
	return &UnsupportedError{"This", "a store over HTTP " + lacks, "use the request of docs/api.md, or open the database, such as with --db postgres://…"}
}

// problem is the body of an answer that says why a request failed.
type problem struct {
	Status     int     `json:"status"`
	Code       string  `json:"code"`
	Why        string  `json:"why"`
	Do         string  `json:"do"`
	RequestID  string  `json:"request_id"`
	RetryAfter float64 `json:"retry_after_seconds"`
	Fields     []struct {
		Field string `json:"field"`
		Rule  string `json:"rule"`
	} `json:"fields"`
	About about `json:"about"`
}

// about has the names and numbers of errors.
type about struct {
	Queue     string            `json:"queue"`
	Tenant    string            `json:"tenant"`
	Waiting   int               `json:"waiting"`
	Limit     int               `json:"limit"`
	Jobs      int               `json:"jobs"`
	Stored    int               `json:"stored"`
	MaxQueues int               `json:"max_queues"`
	AtLimit   bool              `json:"limit_reached"` // without the numbers, for a token with bounds
	Engine    string            `json:"engine"`
	Claimed   string            `json:"claimed"`
	Holds     sluice.QueueHolds `json:"holds"`
}

// sentinels are the library's errors by the codes of problems.
var sentinels = map[string]error{
	"not_found": sluice.ErrNotFound, "not_allowed": sluice.ErrNotAllowed, "duplicate": sluice.ErrDuplicate, "conflict": sluice.ErrConflict,
	"lost": sluice.ErrLost, "queue_gone": sluice.ErrQueueGone, "store_reads_only": sluice.ErrReader, "follower_failed": sluice.ErrFollower,
	"store_moved": sluice.ErrMoved, "newer_schema": sluice.ErrNewerSchema, "not_migrated": sluice.ErrNotMigrated, "disk_full": sluice.ErrDiskFull,
	"unauthorized": ErrRefused, "forbidden": ErrRefused, "out_of_bounds": ErrRefused, "behind_proxy": ErrRefused, "other_name": ErrRefused, "other_site": ErrRefused,
}

// passes are the codes of problems that pass in time. Nothing was stored, or the call can be repeated.
var passes = map[string]bool{
	"store_unavailable": true, "timeout": true, "ended": true, "draining": true, "too_many_requests": true, "too_many_at_once": true, "too_many_unknown": true,
}

// err returns the error of a problem.
func (p *problem) err(verb string) error {
	out := &Error{Status: p.Status, Code: p.Code, Why: p.Why, Do: p.Do, RequestID: p.RequestID, verb: verb, cause: sentinels[p.Code]}
	switch {
	case len(p.Fields) > 0 && (p.Code == "invalid" || p.Code == "too_large"):
		out.cause = &sluice.InvalidError{Field: strings.TrimPrefix(p.Fields[0].Field, "body."), Rule: p.Fields[0].Rule}
	case p.Code == "invalid", p.Code == "too_large", p.Code == "media_type":
		out.cause = &sluice.InvalidError{Field: "request", Rule: p.Why}
	case p.Code == "full":
		out.cause = &pressure.FullError{
			Queue: p.About.Queue, Tenant: p.About.Tenant, Waiting: p.About.Waiting, Limit: p.About.Limit, Jobs: p.About.Jobs,
			RetryAfter: max(0, seconds(p.RetryAfter)),
		}
	case p.Code == "queue_not_admitted" && (p.About.MaxQueues > 0 || p.About.AtLimit):
		out.cause = &admission.QueueLimitError{Queue: p.About.Queue, Stored: p.About.Stored, MaxQueues: p.About.MaxQueues}
	case p.Code == "queue_not_admitted":
		out.cause = &admission.UnknownQueueError{Queue: p.About.Queue}
	case p.Code == "not_empty":
		out.cause = &sluice.QueueNotEmptyError{Queue: p.About.Queue, Holds: p.About.Holds}
	case p.Code == "other_runner":
		out.cause = &sluice.OtherRunnerError{Queue: p.About.Queue, Engine: p.About.Engine, Claimed: p.About.Claimed}
	case passes[p.Code]:
		out.cause = sluice.ErrUnavailable
	}
	return out
}

// readProblem reads the problem of an answer. An answer of something between, such as a proxy, is one that passes in time if
// its status says so.
func readProblem(status int, body []byte) *problem {
	var p problem
	if err := json.Unmarshal(body, &p); err == nil && p.Code != "" {
		p.Status = status
		return &p
	}
	p = problem{Status: status, Code: "no_problem", Why: fmt.Sprintf("the server answered %d %s, and it is no Sluice server", status, http.StatusText(status)), Do: "look at the address, and at the proxies before the server"}
	if status >= http.StatusInternalServerError || status == http.StatusTooManyRequests || status == http.StatusRequestTimeout {
		p.Code = "store_unavailable"
	}
	return &p
}
