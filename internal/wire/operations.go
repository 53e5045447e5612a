package wire

import (
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/operation"
	"github.com/sluice-queue/sluice/search"
)

// OperationList lists operations.
type OperationList struct {
	// Operations are the operations, the newest first.
	Operations []OperationView `json:"operations"`
}

// OperationView is an operation with the clock.
type OperationView struct {
	operation.Operation
	// OnProbation says that the operation still tries its canary.
	OnProbation bool `json:"on_probation,omitempty"`
	// Now is the store's clock.
	Now time.Time `json:"now"`
}

// OperationViewOf shows an operation.
func OperationViewOf(o operation.Operation) OperationView {
	return OperationView{o, o.OnProbation(), o.Now}
}

// Read reads the view.
func (v OperationView) Read() operation.Operation { return v.Seen(v.Now, v.OnProbation) }

// SaveOperationBody is an operation to store.
type SaveOperationBody struct {
	// Operation is what the caller wants of the operation.
	Operation OperationTerms `json:"operation"`
	ReasonBody
}

// OperationTerms are the parts of an operation that a caller sets. Of a stored operation, the state and the rate are stored alone.
type OperationTerms struct {
	// Version is that which the caller read. 0: the operation is new.
	Version int64 `json:"version,omitempty"`
	// Kind is the act, and Query chooses the jobs. Backfill says which fires a backfill makes up for.
	Kind     operation.Kind      `json:"kind,omitempty"`
	Query    search.Query        `json:"query,omitzero"`
	Backfill *operation.Backfill `json:"backfill,omitempty"`
	// DueAt is the new due time of a reschedule.
	DueAt time.Time `json:"due_at,omitzero"`
	// Edit is what an edit changes.
	Edit *operation.Edit `json:"edit,omitempty"`
	// Limit is the most jobs. 0: all.
	Limit int `json:"limit,omitempty" minimum:"0"`
	// Rate is how many jobs per time. 0: as fast as upkeep can.
	Rate sluice.Rate `json:"rate,omitzero"`
	// Canary is how many jobs to requeue first.
	Canary int `json:"canary,omitempty"`
	// StopIfFailed is the greatest share, 0 to 1, of requeued jobs that may fail again.
	StopIfFailed float64 `json:"stop_if_failed,omitempty"`
	// Expected is how many jobs matched before the start. ExpectedMore says that others were left uncounted.
	Expected     int  `json:"expected,omitempty"`
	ExpectedMore bool `json:"expected_more,omitempty"`
	// State is running, paused or stopped; Why says why. Of a new operation, they do not count.
	State operation.State `json:"state,omitempty"`
	Why   string          `json:"why,omitempty"`
}

// OperationTermsOf returns what a caller wants of an operation.
func OperationTermsOf(o operation.Operation) OperationTerms {
	return OperationTerms{o.Version, o.Kind, o.Query, o.Backfill, o.DueAt, o.Edit, o.Limit, o.Rate, o.Canary, o.StopIfFailed, o.Expected, o.ExpectedMore, o.State, o.Why}
}

// Read returns the operation of a name with these terms.
func (t OperationTerms) Read(id sluice.ID) operation.Operation {
	return operation.Operation{
		ID: id, Version: t.Version, Kind: t.Kind, Query: t.Query, Backfill: t.Backfill, DueAt: t.DueAt, Edit: t.Edit, Limit: t.Limit, Rate: t.Rate, Canary: t.Canary,
		StopIfFailed: t.StopIfFailed, Expected: t.Expected, ExpectedMore: t.ExpectedMore, State: t.State, Why: t.Why,
	}
}

// PauseBatchBody pauses a batch, or ends its pause.
type PauseBatchBody struct {
	// Paused is the reason for which the batch is paused. Missing: the pause ends.
	Paused string `json:"paused,omitempty" maxLength:"1000"`
	ReasonBody
}
