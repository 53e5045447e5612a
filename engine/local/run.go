package local

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/engine"
	"github.com/sluice-queue/sluice/internal/jsonscan"
	"github.com/sluice-queue/sluice/worker"
)

// MaxRefBytes is the length of the longest ref, in bytes.
const MaxRefBytes = 1000

// maxReasonBytes is the most bytes of a reason that the audit stores.
const maxReasonBytes = 1000

// Run is a run in the hands of its function.
type Run[T any] struct {
	// Run is the request to the engine. Its delay has passed.
	engine.Run
	// Queue is the queue of the job.
	Queue string
	// Input is the payload as a Go value.
	Input T
	// Execution differs each time the run is executed.
	Execution string
}

// Func does a run. Its result is stored as JSON; an error fails the run. A Func must be safe to run again, and
// should return when its context ends. The context ends when the run is cancelled, exceeds its timeout
// ([worker.ErrTimeout]), or the process ends. A Func that ignores a timeout keeps its run and its slot until it
// returns.
type Func[T any] func(ctx context.Context, run *Run[T]) (result any, err error)

// Handle lets an engine execute the runs of a type in this process. A payload that does not fit T fails the
// run. Call Handle before [Engine.Run], once for each type.
func Handle[T any](e *Engine, runType string, do Func[T], options worker.QueueOptions) {
	e.types = append(e.types, runType)
	if do == nil {
		worker.Handle[envelope](e.worker, sluice.QueueOf[envelope](QueueOf(runType)), nil, options)
		return
	}
	worker.Handle(e.worker, sluice.QueueOf[envelope](QueueOf(runType)), func(ctx context.Context, job *worker.Job[envelope]) error {
		run, err := open[T](job)
		if err != nil {
			return worker.Permanent(err)
		}
		ctx, stop := job.Payload.within(ctx)
		defer stop()
		result, err := do(ctx, run)
		switch {
		case err != nil && errors.Is(context.Cause(ctx), worker.ErrTimeout):
			return worker.Permanent(fmt.Errorf("%w after %s: %w", worker.ErrTimeout, job.Payload.timeout(), err))
		case err != nil || result == nil:
			return err
		}
		return job.SetResult(result)
	}, options)
}

// envelope is the payload of a run's job.
type envelope struct {
	Ref        string            `json:"ref"`
	Queue      string            `json:"queue"`
	Job        sluice.ID         `json:"job"`
	Generation int               `json:"generation"`
	Attempt    int               `json:"attempt"`
	Tenant     string            `json:"tenant,omitempty"`
	Priority   int               `json:"priority,omitempty"`
	Labels     map[string]string `json:"labels,omitempty"`
	TimeoutMS  int64             `json:"timeout_ms,omitempty"`
	Work       string            `json:"work,omitempty"`
	Text       string            `json:"text,omitempty"`    // a payload that is nested too deep to stand in this one
	Payload    json.RawMessage   `json:"payload,omitempty"` // must stay last
}

func (e envelope) timeout() time.Duration { return time.Duration(e.TimeoutMS) * time.Millisecond }

// within gives the run's context its timeout.
func (e envelope) within(ctx context.Context) (context.Context, context.CancelFunc) {
	if e.TimeoutMS == 0 {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, e.timeout(), worker.ErrTimeout)
}

// open takes a run out of its envelope.
func open[T any](job *worker.Job[envelope]) (*Run[T], error) {
	e := job.Payload
	if e.Text != "" {
		e.Payload = json.RawMessage(e.Text)
	}
	run := &Run[T]{
		Run: engine.Run{
			Ref: e.Ref, Job: e.Job, Generation: e.Generation, Attempt: e.Attempt, Tenant: e.Tenant, Priority: e.Priority,
			Labels: e.Labels, Work: e.Work, Payload: e.Payload,
		},
		Queue: e.Queue, Execution: fmt.Sprintf("%x", job.Token),
	}
	var err error
	run.Input, err = sluice.QueueOf[T](e.Queue).Decode(e.Payload)
	return run, err
}

// newJob returns the job for a run. The job has no tenant, because the tenant's limits already applied to the
// run's job. A broken rule is an ErrInvalid.
func newJob(queue string, target engine.Target, run engine.Run) (sluice.NewJob, error) {
	switch {
	case run.Ref == "":
		return sluice.NewJob{}, &sluice.InvalidError{Field: "ref", Rule: "it is empty"}
	case len(run.Ref) > MaxRefBytes:
		return sluice.NewJob{}, &sluice.InvalidError{Field: "ref", Rule: fmt.Sprintf("%d bytes are more than %d", len(run.Ref), MaxRefBytes)}
	case !utf8.ValidString(run.Ref):
		return sluice.NewJob{}, &sluice.InvalidError{Field: "ref", Rule: "it is not valid UTF-8"}
	}
	if fault := jsonscan.Fault(run.Payload); fault != "" {
		return sluice.NewJob{}, &sluice.InvalidError{Field: "payload", Rule: fault}
	}
	text := "" // of a payload that is as deep as payloads may be
	if list := slices.Concat([]byte("["), run.Payload, []byte("]")); !jsonscan.Shallow(list) && jsonscan.Fault(list) != "" {
		text = string(run.Payload)
	}
	payload, err := json.Marshal(envelope{
		Text: text, Ref: run.Ref, Queue: target.Queue, Job: run.Job, Generation: run.Generation, Attempt: run.Attempt, Tenant: run.Tenant,
		Priority: run.Priority, Labels: run.Labels, Work: run.Work, TimeoutMS: max(cmp.Or(run.Timeout, target.Timeout), 0).Milliseconds(),
	})
	if err != nil {
		return sluice.NewJob{}, &sluice.InvalidError{Field: "run", Rule: err.Error()}
	}
	if text == "" { // it is appended byte for byte; encoding/json would rewrite it
		payload = slices.Concat(bytes.TrimSuffix(payload, []byte("}")), []byte(`,"payload":`), run.Payload, []byte("}"))
	}
	return sluice.NewJob{Queue: queue, Payload: payload, EnqueueOptions: sluice.EnqueueOptions{
		ID: idOf(queue, run.Ref), Delay: max(run.Delay, 0), Priority: run.Priority, Labels: labelsOf(run),
	}}, nil
}

// labelsOf returns the labels of a run's job: the id of the job that asked for the run, and the run's headers
// that fit.
func labelsOf(run engine.Run) map[string]string {
	labels := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(run.Headers)) {
		if value := run.Headers[name]; len(labels) < sluice.MaxLabels-1 && fits(name) && name != "" && fits(value) {
			labels[name] = value
		}
	}
	labels["job"] = run.Job.String()
	return labels
}

// fits reports whether a text can be a label.
func fits(text string) bool {
	return len(text) <= sluice.MaxLabelBytes && utf8.ValidString(text) && !strings.ContainsFunc(text, unicode.IsControl)
}

// idOf returns the id of a run's job: a UUID of version 8, made from the queue and the ref.
func idOf(queue, ref string) sluice.ID {
	sum := sha256.Sum256([]byte(queue + "\x00" + ref))
	id := sluice.ID(sum[:16])
	id[6] = id[6]&0x0f | 0x80
	id[8] = id[8]&0x3f | 0x80
	return id
}

// queueOf returns the queue of a target's runs. queueOf ignores the namespace and the task queue, so a queue's
// settings can stay when it changes engines.
func queueOf(target engine.Target) (string, error) {
	queue := QueueOf(target.Type)
	if target.Type == "" {
		return "", &sluice.InvalidError{Field: "run_type", Rule: "it is empty"}
	}
	if err := sluice.CheckQueueName(queue); err != nil {
		return "", fmt.Errorf("run_type %.80q, whose runs would be the jobs of a queue: %w", target.Type, err)
	}
	return queue, nil
}

// outcomeOf returns a run's outcome from its stored job.
func outcomeOf(job sluice.Job, ref string, results bool) engine.Outcome {
	var e envelope
	if err := json.Unmarshal(job.Payload, &e); err != nil || e.Job.IsZero() || ref != "" && e.Ref != ref {
		return engine.Outcome{Ref: ref, State: engine.Foreign} // somebody enqueued it by hand
	}
	out := engine.Outcome{Ref: e.Ref, Job: e.Job, Work: e.Work, State: engine.Running, StartedAt: job.CreatedAt}
	switch job.State {
	case sluice.StateCompleted:
		out.State = engine.Completed
		if results {
			out.Result = job.Result
		}
	case sluice.StateCancelled:
		out.State, out.Error = engine.Cancelled, job.Error
	case sluice.StateDead:
		out.State, out.Error = engine.Failed, job.Error
		if strings.HasPrefix(job.Error, worker.ErrTimeout.Error()+" after ") {
			out.State = engine.TimedOut
		}
	}
	if out.State.Over() {
		out.EndedAt = job.FinishedAt
	}
	return out
}

// plainReason makes a reason fit for the audit.
func plainReason(reason string) string {
	reason = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(reason, "\uFFFD"))
	return strings.ToValidUTF8(reason[:min(len(reason), maxReasonBytes)], "")
}
