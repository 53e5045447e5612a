// Package domain says what a kind of work brings along: its tables, its queue with the settings that it begins with,
// the workflows of its two phases, and where its submissions come in. Payments are one, invoices another; nothing else in
// the application, and nothing in Sluice, knows which there are.
package domain

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/sluice-queue/sluice"
)

// Domain is one kind of work.
type Domain struct {
	// Queue is Sluice's queue of the domain, and Preset how it behaves until an operator changes it.
	Queue  string
	Preset sluice.Settings
	// Path is where its REST endpoints are.
	Path string
	// Tables makes the domain's tables where they are not there yet.
	Tables string
	// Follow keeps an item as its job is, whoever moves the job; see sluice.Follower.
	Follow string
	// Astray lists the items that do not say what became of their jobs; see books.Books.Astray.
	Astray string
	// Init is phase A, Exec is phase B.
	Init, Exec Work
	// Status tells how one item stands; sluice.ErrNotFound: there is none of that id.
	Status func(ctx context.Context, id string) (Standing, error)
}

// Standing is how far an item has come.
type Standing struct {
	// Status is the domain's word for it.
	Status string
	// Failure is why its job is dead or cancelled, or that a person has said that it was done; empty: none of these.
	Failure string
}

// Follower has each item follow its job from when it is scheduled to its end. A job that is requeued revives it; that it
// is done is told by phase B, or by a person who resolves a job that is uncertain.
func (d Domain) Follower() sluice.Follower {
	return sluice.Follower{
		Name: d.Queue, Queue: d.Queue, Statement: d.Follow,
		States: []sluice.State{sluice.StateQueued, sluice.StateCompleted, sluice.StateDead, sluice.StateCancelled},
	}
}

// Work is a workflow and the worker that runs it.
type Work struct {
	// Workflow is the type's name, and TaskQueue where its worker listens.
	Workflow  string
	TaskQueue string
	// Workflows and Activities are how many the worker runs at once.
	Workflows, Activities int
	// Register gives the worker the workflow and its activities.
	Register func(Registry)
}

// Registry is what a worker and Temporal's test suite both have.
type Registry interface {
	RegisterWorkflowWithOptions(definition any, options workflow.RegisterOptions)
	RegisterActivityWithOptions(definition any, options activity.RegisterOptions)
}

// Worker makes the worker that runs the work.
func (w Work) Worker(c client.Client) worker.Worker {
	made := worker.New(c, w.TaskQueue, worker.Options{
		MaxConcurrentWorkflowTaskExecutionSize: w.Workflows, MaxConcurrentActivityExecutionSize: w.Activities,
		WorkerStopTimeout: 10 * time.Second,
	})
	w.Register(made)
	return made
}

// Result tells what phase A made of submissions.
type Result struct {
	// Scheduled ones wait until they are due, Duplicates were submitted before.
	Scheduled  int `json:"scheduled"`
	Duplicates int `json:"duplicates"`
	// Refused ones are stored nowhere.
	Refused []Refusal `json:"refused,omitempty"`
}

// Refusal tells why a submission was not taken.
type Refusal struct {
	// Line is its place in what was submitted, counted from 1.
	Line   int    `json:"line"`
	ID     string `json:"id,omitempty"`
	Reason string `json:"reason"`
}

// Add takes in the result of what was submitted in the next lines.
func (r *Result) Add(next Result, linesBefore int) {
	r.Scheduled += next.Scheduled
	r.Duplicates += next.Duplicates
	for _, refusal := range next.Refused {
		refusal.Line += linesBefore
		r.Refused = append(r.Refused, refusal)
	}
}

// MaxSubmission is how many items go through phase A together: one workflow costs Temporal the same for one or many,
// and its arguments stay far below the limit of 2 MiB.
const MaxSubmission = 200

// Submit runs phase A for some items, at most MaxSubmission, and returns its result. The same items submitted again
// find the workflow that has them, or are duplicates.
func (d Domain) Submit(ctx context.Context, c client.Client, items []json.RawMessage) (Result, error) {
	var result Result
	text, err := json.Marshal(items)
	if err != nil {
		return result, fmt.Errorf("%w: submit into %q: %w", sluice.ErrInvalid, d.Queue, err)
	}
	run, err := c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID: fmt.Sprintf("init-%s-%x", d.Queue, sha256.Sum256(text)), TaskQueue: d.Init.TaskQueue,
	}, d.Init.Workflow, items)
	if err != nil {
		return result, fmt.Errorf("start %s: %w", d.Init.Workflow, err)
	}
	if err := run.Get(ctx, &result); err != nil {
		return result, fmt.Errorf("%s %s: %w", d.Init.Workflow, run.GetID(), err)
	}
	return result, nil
}

// Decode reads items, each of which must pass a check. Those that do not are refused alone.
func Decode[T any](items []json.RawMessage, check func(T) error) (good []Item[T], refused []Refusal) {
	for i, text := range items {
		var value T
		err := json.Unmarshal(text, &value)
		if err == nil {
			err = check(value)
		}
		if err != nil {
			refused = append(refused, Refusal{Line: i + 1, Reason: err.Error()})
			continue
		}
		good = append(good, Item[T]{Line: i + 1, Value: value})
	}
	return good, refused
}

// Named reports whether a text can name a party. One that the database or Sluice refuses would hold up all items that are
// submitted with it.
func Named(text string) bool { return text != "" && sluice.CheckTenantName(text) == nil }

// Dated reports whether an instant can be that of a job.
func Dated(at time.Time) bool { return at.UTC().Year() >= 1970 && at.UTC().Year() <= 9999 }

// Item is a submission and its place.
type Item[T any] struct {
	Line  int `json:"line"`
	Value T   `json:"value"`
}

// Permanent keeps Temporal from trying again what can never succeed.
func Permanent(err error) error {
	if errors.Is(err, sluice.ErrInvalid) {
		return temporal.NewNonRetryableApplicationError(err.Error(), "invalid", err)
	}
	return err
}

// RetryPolicy is how activities are tried again: for as long as it takes, but never less often than every ten seconds.
func RetryPolicy() *temporal.RetryPolicy {
	return &temporal.RetryPolicy{InitialInterval: time.Second, BackoffCoefficient: 2, MaximumInterval: 10 * time.Second}
}
