package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/access"
	"github.com/sluice-queue/sluice/cmd/internal/jobline"
)

// jobBody is a job to enqueue.
type jobBody struct {
	// Queue is the name of the queue.
	Queue string `json:"queue"`
	// Payload is the body of the job: any JSON.
	Payload json.RawMessage `json:"payload"`
	// ID names the job. If you choose it, you can send the job again after a lost answer: it is stored once.
	ID sluice.ID `json:"id,omitzero"`
	// Tenant is the owner of the job.
	Tenant string `json:"tenant,omitempty"`
	// Key is the idempotency key, unique within the queue and the scope.
	Key string `json:"key,omitempty"`
	// KeyScope says how long the key refuses other jobs: unfinished, window or forever.
	KeyScope sluice.KeyScope `json:"key_scope,omitempty"`
	// KeyWindow is the length of the scope window, such as 1h.
	KeyWindow string `json:"key_window,omitempty"`
	// OnDuplicate says what becomes of a job whose key is taken: keep, replace, coalesce or debounce.
	OnDuplicate sluice.OnDuplicate `json:"on_duplicate,omitempty"`
	// DueAt is the earliest start.
	DueAt time.Time `json:"due_at,omitzero"`
	// Delay is the time from now to the earliest start, such as 10m.
	Delay string `json:"delay,omitempty"`
	// Priority is from 1 (first) to 10 (last).
	Priority int `json:"priority,omitempty"`
	// ExpiresAt cancels the job if it still waits then.
	ExpiresAt time.Time `json:"expires_at,omitzero"`
	// Labels are names and values to find the job by.
	Labels map[string]string `json:"labels,omitempty"`
	// MaxAttempts is how many failed attempts bury the job.
	MaxAttempts int `json:"max_attempts,omitempty"`
	// Timeout is the longest time of an attempt, such as 5m, from 1ms to 30d. Missing: the handler's or the queue's.
	Timeout string `json:"timeout,omitempty"`
	// OrderKey makes jobs of the queue with the same order key run one at a time, in order.
	OrderKey string `json:"order_key,omitempty"`
	// LimitKey is the value, such as a host, by which limits that are per key bound the job.
	LimitKey string `json:"limit_key,omitempty"`
	// Cost is the units, such as tokens, that the job takes of limits by cost. Default: 1.
	Cost int `json:"cost,omitempty"`
	// After lists jobs that must complete first.
	After []sluice.ID `json:"after,omitempty"`
	// AfterFailure says how the job goes on if one of them dies or is cancelled: cancel, run or wait.
	AfterFailure sluice.AfterFailure `json:"after_failure,omitempty"`
	// AfterFailures are the rules for single jobs of after, by their ids.
	AfterFailures map[string]sluice.AfterFailure `json:"after_failures,omitempty"`
	// Batch is the open batch that the job is in.
	Batch sluice.ID `json:"batch,omitzero"`
	// Hold is the reason to hold the job until its release.
	Hold string `json:"hold,omitempty"`
}

// Enqueued says what became of one job.
type Enqueued struct {
	// ID is the job, or the job that has its key. Missing: the job was refused.
	ID sluice.ID `json:"id,omitzero"`
	// Duplicate says that the job was not stored, because another has its ID or key.
	Duplicate bool `json:"duplicate,omitempty"`
	// Replaced is the waiting job that this job replaced.
	Replaced sluice.ID `json:"replaced,omitzero"`
	// Error says why the job was refused.
	Error *Problem `json:"error,omitempty"`
}

// enqueuedList says what became of a list of jobs.
type enqueuedList struct {
	// Results are in the order of the jobs.
	Results []Enqueued `json:"results"`
	Tally
}

// Tally counts what became of jobs.
type Tally struct {
	// Stored counts new jobs, Duplicates jobs that were there, and Refused jobs with an error.
	Stored     int `json:"stored"`
	Duplicates int `json:"duplicates"`
	Refused    int `json:"refused"`
}

// count counts one job.
func (t *Tally) count(e Enqueued) {
	switch {
	case e.Error != nil:
		t.Refused++
	case e.Duplicate:
		t.Duplicates++
	default:
		t.Stored++
	}
}

const (
	typeJSON   = "application/json"
	typeStream = "application/x-ndjson"
)

// maxList is the most jobs of a list.
const maxList = 10_000

func (a *API) enqueueRoutes() {
	addRaw(a, Route{
		Method: "POST", Path: "/jobs", Name: "enqueue", Group: "jobs", Summary: "enqueue jobs",
		Text: "The body is one job, a list of at most 10,000 jobs, or with the type application/x-ndjson a stream of any length with one job a line. " +
			"The answer of a list has a result for each job. The answer of a stream has a line for each line, in order, and then one with the counts; " +
			"read it while you send, or ask for `answers=refused`.",
		Needs: access.Enqueue, Commands: []string{"enqueue"}, scope: ofJobs, noun: "job that it is to run after, or batch", names: true, endless: true,
	}, describeEnqueue, func(w http.ResponseWriter, r *http.Request, c *call) error {
		kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
		switch {
		case err == nil && kind == typeStream:
			return c.enqueueStream(w, r)
		case err == nil && kind == typeJSON:
			_ = c.deadlines.SetWriteDeadline(time.Now().Add(c.api.options.Bounds.Timeout + slack))
			ctx, cancel := context.WithTimeout(r.Context(), c.api.options.Bounds.Timeout)
			defer cancel()
			return c.enqueueBody(w, r.WithContext(ctx))
		}
		return problemOf(http.StatusUnsupportedMediaType, "media_type", "the type of the body is not known", "send the header Content-Type: "+typeJSON+" or "+typeStream)
	})
}

func describeEnqueue(of huma.API, op *huma.Operation) {
	body, one, many := schemaOf[jobBody](of), schemaOf[Enqueued](of), schemaOf[enqueuedList](of)
	op.Parameters = []*huma.Param{{
		Name: "answers", In: "query", Description: "of a stream: all, or refused to get only lines about refused jobs",
		Schema: &huma.Schema{Type: huma.TypeString, Enum: []any{"all", "refused"}, Default: "all"},
	}}
	op.RequestBody = &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{
		typeJSON:   {Schema: &huma.Schema{OneOf: []*huma.Schema{body, {Type: huma.TypeArray, Items: body}}}},
		typeStream: {Schema: body},
	}}
	op.Responses["200"] = &huma.Response{Description: "the results of a list, a stream, or a duplicate", Content: map[string]*huma.MediaType{
		typeJSON: {Schema: &huma.Schema{OneOf: []*huma.Schema{one, many}}}, typeStream: {Schema: schemaOf[streamLine](of)},
	}}
	op.Responses["201"] = &huma.Response{Description: "one job was stored", Content: map[string]*huma.MediaType{typeJSON: {Schema: one}}}
}

// enqueueBody stores the job or the list of a body.
func (c *call) enqueueBody(w http.ResponseWriter, r *http.Request) error {
	text, err := c.readBody(w, r)
	if err != nil {
		return err
	}
	if !bytes.HasPrefix(bytes.TrimLeft(text, " \t\r\n"), []byte("[")) {
		return c.enqueueOne(r.Context(), w, text)
	}
	var items []json.RawMessage
	if err := json.Unmarshal(text, &items); err != nil {
		return &sluice.InvalidError{Field: "body", Rule: "is not valid JSON: " + err.Error()}
	}
	if len(items) > maxList {
		return &sluice.InvalidError{Field: "body", Rule: fmt.Sprintf("a list of %d jobs must be at most %d; send a stream", len(items), maxList)}
	}
	all := make([]offered, len(items))
	for i, item := range items {
		all[i] = c.readNamed(item, i)
	}
	out := enqueuedList{Results: c.enqueueAll(r.Context(), all, c.afterCheck(mostAfter))}
	for _, result := range out.Results {
		out.count(result)
	}
	writeJSON(w, http.StatusOK, out)
	return nil
}

// enqueueOne stores the only job of a body.
func (c *call) enqueueOne(ctx context.Context, w http.ResponseWriter, text []byte) error {
	o, check := c.readNamed(text, 0), c.afterCheck(0)
	if err := check.of(ctx, &o); err != nil {
		return err
	}
	receipt, err := c.api.client().Enqueue(ctx, o.job)
	if err == nil {
		err = check.holder(ctx, &o.job, receipt)
	}
	if err != nil {
		return err
	}
	out, status := o.became(receipt), http.StatusCreated
	if out.Duplicate {
		status = http.StatusOK
	}
	writeJSON(w, status, out)
	return nil
}

// readBody reads a body within its bounds.
func (c *call) readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, c.api.options.Bounds.Body))
	if err != nil {
		closeAfter(w, r) // else the server waits for the rest of the body, and the caller for the answer
	} else {
		_ = c.deadlines.SetReadDeadline(time.Time{})
	}
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, problemOf(http.StatusRequestEntityTooLarge, "too_large", fmt.Sprintf("the body is larger than %d bytes", large.Limit), "send less, or a stream")
	case err != nil:
		return nil, problemOf(http.StatusRequestTimeout, "too_slow", "the body did not arrive", "send it again")
	}
	return text, nil
}

// closeAfter ends the connection after the answer. In HTTP/2 each request is a stream of its own.
func closeAfter(w http.ResponseWriter, r *http.Request) {
	if r.ProtoMajor == 1 {
		w.Header().Set("Connection", "close")
	}
}

// offered is a job to enqueue, as a caller sent it.
type offered struct {
	job   sluice.NewJob
	err   error // why the text is no job that the caller may enqueue
	keyed bool  // the key of the request names the job
}

// became says what became of the job. If the key of the request names it, a job that is there is that of an earlier try.
func (o *offered) became(receipt sluice.Receipt) Enqueued {
	return Enqueued{ID: receipt.ID, Duplicate: receipt.Duplicate && (!o.keyed || receipt.ID != o.job.ID), Replaced: receipt.Replaced}
}

// readNamed reads the n-th job of a request. A job without an ID gets one by the key of the request, if it has a key.
func (c *call) readNamed(text []byte, n int) offered {
	o := c.read(text)
	if o.err == nil && o.job.ID.IsZero() && !c.actID.IsZero() {
		o.job.ID, o.keyed = c.idOf(n), true
	}
	return o
}

// read reads a job, and checks the bounds of the caller.
func (c *call) read(text []byte) offered {
	job, err := jobline.Parse(text, "")
	switch {
	case err != nil, c.caller.None():
	case !c.caller.Job(job.Queue, job.Tenant):
		err = outOfBounds("the token is bounded to other queues or tenants")
	case !job.Batch.IsZero():
		err = outOfBounds("the token is bounded, and a batch may hold jobs of every queue and tenant")
	}
	return offered{job: job, err: err}
}

// enqueueAll stores jobs, and says what became of each.
func (c *call) enqueueAll(ctx context.Context, all []offered, after *afterCheck) []Enqueued {
	out := make([]Enqueued, len(all))
	for _, step := range after.steps(all) {
		c.enqueueStep(ctx, all, step, after, out)
	}
	return out
}

// enqueueStep stores some of the jobs of a request together, and writes what became of each to out.
func (c *call) enqueueStep(ctx context.Context, all []offered, step []int, after *afterCheck, out []Enqueued) {
	jobs, places := make([]sluice.NewJob, 0, len(step)), make([]int, 0, len(step))
	for _, i := range step {
		o := &all[i]
		if err := after.of(ctx, o); err != nil {
			out[i].Error = c.problem(err)
			continue
		}
		if o.job.ID.IsZero() { // so that an unknown answer names the job
			o.job.ID = sluice.NewID()
		}
		jobs, places = append(jobs, o.job), append(places, i)
	}
	if len(jobs) == 0 {
		return
	}
	receipts, err := c.api.client().EnqueueMany(ctx, jobs)
	var batch *sluice.BatchError
	if err != nil && !errors.As(err, &batch) {
		p := c.problem(err)
		for k, i := range places {
			out[i] = Enqueued{ID: jobs[k].ID, Error: p}
		}
		after.ended = err
		return
	}
	for k, i := range places {
		if batch != nil && batch.Failed[k] != nil {
			out[i].Error = c.problem(batch.Failed[k])
			continue
		}
		if err := after.holder(ctx, &jobs[k], receipts[k]); err != nil {
			out[i].Error = c.problem(err)
			continue
		}
		after.note(&jobs[k], receipts[k])
		out[i] = all[i].became(receipts[k])
	}
}
