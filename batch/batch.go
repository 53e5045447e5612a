// Package batch groups jobs, counts them exactly, and enqueues callback jobs when all have ended.
//
// Begin with [Open]. Enqueue jobs with the option Batch of [sluice.EnqueueOptions], in transactions of your own and from
// handlers too, and then [Close] the batch. [Read] returns its progress. [Cancel], [Pause], [Resume] and [Retry] act on all
// its jobs.
//
// Read next: docs/guide/batch.md.
package batch

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/sluice-queue/sluice"
)

// Batch is a group of jobs. ID, Name, Parent and the callbacks are given to [Open]; the store keeps the rest.
type Batch struct {
	// ID names the batch. Default: a new ID. If you keep the ID, you can open the batch again after a lost answer.
	ID sluice.ID `json:"id"`
	// Name is for people, at most 200 bytes. Default: none.
	Name string `json:"name,omitempty"`
	// Parent is the open batch that this one is in: it completes only after this one. Zero: none.
	Parent sluice.ID `json:"parent,omitzero"`
	Callbacks
	Counts
	// Batches counts the batches that are directly in this one, and BatchesComplete those that are complete.
	Batches         int `json:"batches,omitempty"`
	BatchesComplete int `json:"batches_complete,omitempty"`

	// CreatedAt and CreatedBy say when the batch was opened, and by whom. All times are by the store's clock.
	CreatedAt time.Time `json:"created_at"`
	CreatedBy string    `json:"created_by,omitempty"`
	// ClosedAt is when the batch was closed. CompletedAt is when upkeep saw that all jobs had ended, and all batches in it
	// were complete. SucceededAt is when upkeep saw that all had completed. DiedAt is when upkeep saw the first dead job.
	// Each stays as it is, whatever becomes of jobs later. Zero: not yet.
	ClosedAt    time.Time `json:"closed_at,omitzero"`
	CompletedAt time.Time `json:"completed_at,omitzero"`
	SucceededAt time.Time `json:"succeeded_at,omitzero"`
	DiedAt      time.Time `json:"died_at,omitzero"`
	// Paused is the reason for which the batch is paused. Empty: it is not.
	Paused string `json:"paused,omitempty"`

	// Now is the store's clock when the store read the batch.
	Now time.Time `json:"-"`
}

// Callbacks are the jobs that a batch enqueues, each at most once.
type Callbacks struct {
	// OnComplete is enqueued when the batch is closed, all jobs have ended, and all batches in it are complete.
	OnComplete *Callback `json:"on_complete,omitempty"`
	// OnSuccess is enqueued when the batch is complete and all jobs have completed, those of batches in it too. If dead
	// jobs are requeued later and complete, it is enqueued then.
	OnSuccess *Callback `json:"on_success,omitempty"`
	// OnDeath is enqueued when the first job dies, in the batch or in a batch in it.
	OnDeath *Callback `json:"on_death,omitempty"`
}

// Counts counts the jobs of a batch. Jobs that upkeep or a person has deleted stay counted as they ended.
type Counts struct {
	// Total counts all jobs. Completed, Dead and Cancelled count the ended ones.
	Total     int `json:"total"`
	Completed int `json:"completed"`
	Dead      int `json:"dead"`
	Cancelled int `json:"cancelled"`
}

// Unfinished counts the jobs that have not ended.
func (c Counts) Unfinished() int { return c.Total - c.Completed - c.Dead - c.Cancelled }

// ended counts the jobs that have ended.
func (c Counts) ended() int { return c.Completed + c.Dead + c.Cancelled }

// State is where a batch is in its life.
type State string

// The states. A batch is complete once and for all, also if dead jobs of it are requeued.
const (
	// StateOpen: jobs can be added.
	StateOpen State = "open"
	// StateClosed: no job can be added, and some have not ended.
	StateClosed State = "closed"
	// StateComplete: all jobs had ended.
	StateComplete State = "complete"
	// StateSucceeded: all jobs have completed.
	StateSucceeded State = "succeeded"
)

// State returns where the batch is in its life.
func (b Batch) State() State {
	switch {
	case !b.SucceededAt.IsZero():
		return StateSucceeded
	case !b.CompletedAt.IsZero():
		return StateComplete
	case !b.ClosedAt.IsZero():
		return StateClosed
	}
	return StateOpen
}

// Progress returns the share of the batch's own jobs that have ended, 0 to 1. A batch without jobs has 0 until it is
// complete, and 1 then.
func (b Batch) Progress() float64 {
	switch {
	case b.Total > 0:
		return float64(b.ended()) / float64(b.Total)
	case b.CompletedAt.IsZero():
		return 0
	}
	return 1
}

// ETA returns how long the unfinished jobs will take at the average rate since the batch was opened. False: unknown,
// because jobs can still be added, the batch is paused, or no job has ended yet.
func (b Batch) ETA() (time.Duration, bool) {
	passed := b.Now.Sub(b.CreatedAt)
	if b.ClosedAt.IsZero() || b.Paused != "" || b.ended() == 0 || passed <= 0 {
		return 0, false
	}
	return time.Duration(float64(b.Unfinished()) / float64(b.ended()) * float64(passed)), true
}

// Body returns the text in which stores keep the callbacks. Empty: the batch has none.
func (b Batch) Body() (string, error) {
	if b.Callbacks == (Callbacks{}) {
		return "", nil
	}
	text, err := json.Marshal(b.Callbacks)
	return string(text), err
}

// WithBody returns the batch with the callbacks of a stored text.
func (b Batch) WithBody(body string) (Batch, error) {
	if body == "" {
		return b, nil
	}
	if err := json.Unmarshal([]byte(body), &b.Callbacks); err != nil {
		return b, fmt.Errorf("batch %s is stored with callbacks that cannot be read: %w", b.ID, err)
	}
	return b, nil
}
