package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/event"
	"github.com/sluice-queue/sluice/worker"
)

// gatherTime is how long the first job of a batch waits for others.
const gatherTime = 20 * time.Millisecond

// batches runs a program for many jobs at a time. Each job's line settles it at once. Jobs left without an answer are
// tried alone, so that none fails the others.
type batches struct {
	runner
	size     int // jobs per batch
	programs int // programs at once

	mu       sync.Mutex
	waiting  []*ticket
	busy     int // running programs
	gathered bool
	timer    *time.Timer // runs while the first waiting job waits for others
}

// ticket is a job that waits for a program or an answer.
type ticket struct {
	ctx   context.Context
	job   *worker.Job[json.RawMessage]
	alone bool       // a program with several jobs left it unanswered
	done  chan error // receives the handler's result
	batch *batchRun  // its batch; nil while it waits; guarded by batches.mu
}

// run waits for a job's outcome.
func (b *batches) run(ctx context.Context, job *worker.Job[json.RawMessage]) error {
	t := &ticket{ctx: ctx, job: job, done: make(chan error, 1)}
	b.mu.Lock()
	b.waiting = append(b.waiting, t)
	b.begin()
	b.mu.Unlock()
	select {
	case err := <-t.done:
		return err
	case <-ctx.Done():
	}
	b.mu.Lock()
	in := t.batch
	b.waiting = slices.DeleteFunc(b.waiting, func(other *ticket) bool { return other == t })
	b.mu.Unlock()
	if in == nil {
		return worker.Snooze(0) // no program has it: no attempt
	}
	in.leave(t)
	select {
	case err := <-t.done: // the answer came at the same moment
		return err
	default:
		return ctx.Err()
	}
}

// begin starts programs for waiting jobs: at once for a full batch, after gatherTime for less.
func (b *batches) begin() {
	for b.busy < b.programs && len(b.waiting) > 0 {
		if len(b.waiting) < b.size && !b.waiting[0].alone && !b.gathered {
			if b.timer == nil {
				b.timer = time.AfterFunc(gatherTime, b.gather)
			}
			return
		}
		b.gathered = false
		b.busy++
		next := b.take()
		go b.do(next)
	}
}

// gather is called when the first job has waited gatherTime.
func (b *batches) gather() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.timer, b.gathered = nil, true
	b.begin()
	b.gathered = false
}

// take makes a batch of the first waiting jobs.
func (b *batches) take() *batchRun {
	n := 1
	for n < min(b.size, len(b.waiting)) && !b.waiting[0].alone && !b.waiting[n].alone {
		n++
	}
	next := &batchRun{of: b, open: make(map[string]*ticket, n), ended: make(chan struct{})}
	for _, t := range b.waiting[:n] {
		t.batch = next
		next.tickets = append(next.tickets, t)
		next.open[t.job.ID.String()] = t
	}
	b.waiting = slices.Delete(b.waiting, 0, n)
	next.ctx, next.end = context.WithCancelCause(context.WithoutCancel(next.tickets[0].ctx))
	return next
}

// do runs a program for a batch.
func (b *batches) do(next *batchRun) {
	err := next.run()
	left := next.unanswered()
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, t := range left {
		switch {
		case t.ctx.Err() != nil: // its handler is about to return
		case len(left) == 1 || isNoAttempt(err):
			t.done <- b.failed(t.ctx, t.job, err)
		default:
			t.alone, t.batch = true, nil
			b.waiting = slices.Insert(b.waiting, min(i, len(b.waiting)), t)
		}
	}
	b.busy--
	close(next.ended)
	b.begin()
}

// batchRun has the jobs of one program run.
type batchRun struct {
	of      *batches
	tickets []*ticket
	ctx     context.Context
	end     context.CancelCauseFunc // ends the program
	ended   chan struct{}

	mu   sync.Mutex
	open map[string]*ticket // without an answer
	odd  error              // last line that was no answer
}

// leave gives up a job that timed out or was lost. The program ends if it hangs, must stop, or has no other job.
func (n *batchRun) leave(t *ticket) {
	cause := context.Cause(t.ctx)
	if (errors.Is(cause, sluice.ErrLost) || errors.Is(cause, sluice.ErrCancelled)) && n.others() {
		return
	}
	n.end(cause)
	<-n.ended
}

// others reports whether another handler waits for the program.
func (n *batchRun) others() bool {
	return slices.ContainsFunc(n.unanswered(), func(t *ticket) bool { return t.ctx.Err() == nil })
}

// run runs the program and passes its answers on.
func (n *batchRun) run() error {
	defer n.end(nil)
	input, err := n.lines()
	if err != nil {
		return err
	}
	out := &lineWriter{each: n.answered, over: func() { n.end(errTooMuch) }, limit: maxResult + maxTail}
	said := func(line string, cut int) {
		n.of.said.Emit(event.ProgramSaid, "", "line", line, "cut", event.Count(cut))
	}
	err = n.of.execute(n.ctx, n.lease(), input, out, said)
	out.end()
	n.mu.Lock()
	odd := n.odd
	n.mu.Unlock()
	switch {
	case err != nil && odd != nil:
		return fmt.Errorf("%w (before, it printed a line that is no answer: %w)", err, odd)
	case err != nil:
		return err
	case odd != nil:
		return fmt.Errorf("it ended without an answer for the job, and printed a line that is none: %w", odd)
	}
	return errors.New("it ended without an answer for the job")
}

// lease is the shortest lease of its jobs.
func (n *batchRun) lease() time.Duration {
	shortest := time.Duration(math.MaxInt64)
	for _, t := range n.tickets {
		shortest = min(shortest, n.of.settings(n.ctx, t.job.Queue).Lease)
	}
	return shortest
}

// unanswered lists the jobs without an answer, in order.
func (n *batchRun) unanswered() []*ticket {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(n.tickets), func(t *ticket) bool { return n.open[t.job.ID.String()] != t })
}

// jobLine is a job as a program reads it.
type jobLine struct {
	ID         string            `json:"id"`
	Queue      string            `json:"queue"`
	Tenant     string            `json:"tenant,omitempty"`
	Key        string            `json:"key,omitempty"`
	Attempt    int               `json:"attempt"`
	Labels     map[string]string `json:"labels,omitempty"`
	Checkpoint json.RawMessage   `json:"checkpoint,omitempty"`
	Payload    json.RawMessage   `json:"payload"`
}

// lines formats the jobs as the program reads them.
func (n *batchRun) lines() ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	for _, t := range n.tickets {
		line := jobLine{
			ID: t.job.ID.String(), Queue: t.job.Queue, Tenant: t.job.Tenant, Key: t.job.Key, Attempt: t.job.Attempt(),
			Labels: t.job.Labels, Checkpoint: t.job.Checkpoint, Payload: t.job.Payload,
		}
		if err := encoder.Encode(line); err != nil {
			return nil, fmt.Errorf("job %s: %w", line.ID, err)
		}
	}
	return text.Bytes(), nil
}

// answered handles a line of the program.
func (n *batchRun) answered(line []byte) {
	if len(bytes.TrimSpace(line)) == 0 {
		return
	}
	a, err := readAnswer(line)
	if err == nil && a.Heartbeat && a.ID == "" {
		return
	}
	n.mu.Lock()
	t := n.open[a.ID]
	if err == nil && t == nil {
		err = fmt.Errorf("no job with the id %q waits for an answer of this program", a.ID)
	}
	if err != nil {
		n.odd = err
		n.mu.Unlock()
		n.of.log.Emit(event.OddLine, "", "error", err)
		return
	}
	if final := !a.Heartbeat && len(a.Checkpoint) == 0 && a.Progress == nil; final {
		delete(n.open, a.ID)
	}
	n.mu.Unlock()
	n.take(t, a)
}

// take applies an answer.
func (n *batchRun) take(t *ticket, a answer) {
	switch {
	case a.Heartbeat:
	case a.Progress != nil:
		t.job.Progress(*a.Progress, a.Message)
	case len(a.Checkpoint) > 0:
		// A checkpoint that cannot be saved costs some work later, not the job.
		if err := t.job.SaveCheckpoint(t.ctx, a.Checkpoint); err != nil {
			n.of.log.Emit(event.NotCheckpointed, t.job.Queue, "job", t.job.ID, "error", err)
		}
	case len(a.Result) > maxResult:
		t.done <- worker.Permanent(errTooMuch)
	case len(a.Result) > 0 && !bytes.Equal(a.Result, []byte("null")):
		t.done <- t.job.SetResult(a.Result)
	default:
		t.done <- a.outcome()
	}
}
