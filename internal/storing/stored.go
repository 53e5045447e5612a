// Package storing holds the texts and moves that every store writes in the same way.
//
// Begin with [QueueChanges], which the stores call when they save a queue.
//
// Read next: a store's act.go and settings.go.
package storing

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/sluice-queue/sluice"
)

// ResolvedError returns the error of a job whose run failed, as a person reports it.
func ResolvedError(act sluice.Act) string {
	return sluice.StoredText("the run failed, as " + act.By + " found out: " + act.Reason)
}

// PoisonError returns the error of a job that was buried because it lost too many holders.
func PoisonError(recoveries int) string {
	return fmt.Sprintf("poison: %d holders were lost while they ran it", recoveries)
}

// AfterUnknown returns the error of a job that runs after a job which is not stored.
func AfterUnknown(id sluice.ID) error {
	return fmt.Errorf("job %s, which it is to run after: %w", id, sluice.ErrNotFound)
}

// DueTooLate returns the error of a job that is to be due after it expires. A zero dueAt means that it has expired already.
func DueTooLate(dueAt, expiresAt time.Time) error {
	at := expiresAt.UTC().Format(time.RFC3339)
	if dueAt.IsZero() {
		return &sluice.InvalidError{Field: "due_at", Rule: "the job expired at " + at + "; requeue it when upkeep has cancelled it"}
	}
	return &sluice.InvalidError{Field: "due_at", Rule: "the job expires at " + at + "; give an earlier time"}
}

// AfterFailed returns why a job was cancelled when its predecessor failed. State is empty if the predecessor is not in the
// history any more.
func AfterFailed(id sluice.ID, state sluice.State) string {
	if state == "" {
		return fmt.Sprintf("job %s, which it was to run after, is gone from the history", id)
	}
	return fmt.Sprintf("job %s, which it was to run after, is %s", id, state)
}

// UndoneMove returns the move by which the undo of a requeue ends a job with its former outcome. False: no move does. A
// job that was cancelled is cancelled again.
func UndoneMove(outcome sluice.State) (sluice.Move, bool) {
	for _, event := range []sluice.Event{sluice.EventUndo, sluice.EventCancel} {
		if m := sluice.MoveOf(event); m.To == outcome {
			return m, true
		}
	}
	return sluice.Move{}, false
}

// HoldText returns the hold of a job as the audit keeps it. Stores write it to Before of each entry of audit.EventReleaseHold.
func HoldText(reason, by string, at time.Time) json.RawMessage {
	text, err := json.Marshal(struct {
		Reason string    `json:"reason"`
		By     string    `json:"by"`
		At     time.Time `json:"at"`
	}{reason, by, at.UTC()})
	if err != nil {
		return nil // a year that JSON has no instants for
	}
	return text
}
