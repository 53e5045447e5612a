package wire

import (
	"time"

	"github.com/sluice-queue/sluice/operation"
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
	// Operation is the operation, with the version that the caller read; 0: the operation is new. Of a stored one, its state
	// and its rate are stored.
	Operation operation.Operation `json:"operation"`
	// Reason says why, for the audit.
	Reason string `json:"reason,omitempty" maxLength:"1000"`
}

// PauseBatchBody pauses a batch, or ends its pause.
type PauseBatchBody struct {
	// Paused is the reason for which the batch is paused. Missing: the pause ends.
	Paused string `json:"paused,omitempty" maxLength:"1000"`
	// Reason says why, for the audit.
	Reason string `json:"reason,omitempty" maxLength:"1000"`
}
