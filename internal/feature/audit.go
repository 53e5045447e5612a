package feature

import (
	"context"

	"github.com/sluice-queue/sluice"
)

// changesRead is how many changes LastChange reads at a time.
const changesRead = 100

// auditReader is a store, or a client of one.
type auditReader interface {
	Audit(ctx context.Context, filter sluice.AuditFilter) ([]sluice.AuditEntry, error)
}

// LastChange passes the changes of a thing to undo, the newest first, until undo returns true. Changes chooses their audit
// entries. LastChange leaves out changes that changed nothing, and those before the last entry of the event deletion. Found
// is false if undo never returned true.
func LastChange(ctx context.Context, store auditReader, changes sluice.AuditFilter, deletion sluice.Event, undo func(change sluice.AuditEntry) (bool, error)) (found bool, err error) {
	deleted, err := store.Audit(ctx, sluice.AuditFilter{Object: changes.Object, Name: changes.Name, Event: deletion, Limit: 1})
	if err != nil {
		return false, err
	}
	if len(deleted) > 0 {
		changes.After = deleted[0].Seq
	}
	for changes.Limit = changesRead; ; {
		entries, err := store.Audit(ctx, changes)
		if err != nil {
			return false, err
		}
		for _, e := range entries {
			if len(e.Before) == 0 || string(e.Before) == string(e.After) {
				continue
			}
			if found, err := undo(e); err != nil || found {
				return found, err
			}
		}
		if len(entries) < changesRead {
			return false, nil
		}
		changes.Before = entries[len(entries)-1].Seq
	}
}
