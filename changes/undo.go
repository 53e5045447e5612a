package changes

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/internal/feature"
)

// Undo restores a queue's settings from before their last change, by a person, by upkeep or by plain SQL. Undo
// removes the windows and the revert that the change added, and restores the windows that it removed.
//
// Undo is itself an audited change, and a second Undo undoes it. If the audit has no change since the queue was made, the
// error is a [sluice.ErrNotFound].
func Undo(ctx context.Context, client *sluice.Client, queue string, act sluice.Act) (sluice.Queue, error) {
	return edit(ctx, client, queue, act, func(q *sluice.Queue) error {
		scheduled, unreadable := List(*q)
		if told, ok := q.Recorded(); ok && (q.Wrong != "" || unreadable != nil || told != q.Settings) {
			q.Settings = told // somebody changed it by plain SQL, and the audit lacks that
			if unreadable != nil {
				q.Scheduled = nil
			}
			return nil
		}
		entry, err := lastChange(ctx, client, queue)
		if err != nil {
			return err
		}
		before, err := InAudit(entry.Before)
		if err != nil {
			return err
		}
		after, err := InAudit(entry.After)
		if err != nil {
			return err
		}
		if err := setScheduled(q, undone(scheduled, before, after)); err != nil {
			return err
		}
		return q.Settings.UnmarshalJSON(entry.Before)
	})
}

// UndoTo restores a queue's settings as an audit entry of the queue left them, and so undoes all later changes. Version is
// the Seq of that entry. UndoTo also removes the scheduled changes that were added since, and restores the windows that
// were removed since.
//
// UndoTo is itself an audited change, which [Undo] undoes. If no change of the queue has that number, the error is a
// [sluice.ErrInvalid].
func UndoTo(ctx context.Context, client *sluice.Client, queue string, version int64, act sluice.Act) (sluice.Queue, error) {
	return edit(ctx, client, queue, act, func(q *sluice.Queue) error {
		entries, err := client.Audit(ctx, sluice.AuditFilter{Object: audit.ObjectQueue, Name: queue, Before: version + 1, Limit: 1})
		if err != nil {
			return err
		}
		if len(entries) == 0 || entries[0].Seq != version || entries[0].Event != audit.EventChange || len(entries[0].After) == 0 {
			return &sluice.InvalidError{Field: "to", Rule: fmt.Sprintf("%d must be the number of a change in the history of the queue", version)}
		}
		then, err := InAudit(entries[0].After)
		if err != nil {
			return err
		}
		now, unreadable := List(*q)
		if unreadable != nil {
			now = nil
		}
		if err := setScheduled(q, undone(now, then, now)); err != nil {
			return err
		}
		return q.Settings.UnmarshalJSON(entries[0].After)
	})
}

// lastChange returns the last audit entry that changed something since the queue was made.
func lastChange(ctx context.Context, client *sluice.Client, queue string) (last sluice.AuditEntry, err error) {
	changes := sluice.AuditFilter{Object: audit.ObjectQueue, Name: queue, Event: audit.EventChange}
	found, err := feature.LastChange(ctx, client, changes, audit.EventDelete, func(change sluice.AuditEntry) (bool, error) {
		last = change
		return true, nil
	})
	if err == nil && !found {
		err = fmt.Errorf("queue %.80q has no change to undo in the audit: %w", queue, sluice.ErrNotFound)
	}
	return last, err
}

// InAudit reads the scheduled changes from an audit entry's Before or After.
func InAudit(text json.RawMessage) ([]Change, error) {
	var queue struct {
		Scheduled []Change `json:"scheduled"`
	}
	err := json.Unmarshal(text, &queue)
	return queue.Scheduled, err
}

// undone returns the present scheduled without the scheduled changes that a change added, and with the windows that it removed.
func undone(now, before, after []Change) []Change {
	has := func(scheduled []Change, id int64) bool {
		return slices.ContainsFunc(scheduled, func(p Change) bool { return p.ID == id })
	}
	var out []Change
	for _, p := range now {
		if has(before, p.ID) || !has(after, p.ID) {
			out = append(out, p)
		}
	}
	for _, p := range before {
		if p.Window != nil && !has(after, p.ID) && !has(now, p.ID) {
			out = append(out, p)
		}
	}
	return out
}
