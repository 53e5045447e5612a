package changes_test

import (
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/changes"
	"github.com/sluice-queue/sluice/explain"
	"github.com/sluice-queue/sluice/store/memory"
)

func TestUndoRemovesScheduledChangesThatCannotBeRead(t *testing.T) {
	t.Parallel()
	store, act := memory.New(memory.Options{}), sluice.Act{By: "ada"}
	client := sluice.NewClient(store, sluice.ClientOptions{})
	queue, err := client.EnsureQueue(t.Context(), "payments", sluice.DefaultSettings(), act)
	if err != nil {
		t.Fatal(err)
	}
	queue.Scheduled = json.RawMessage(`[{"id": "seven"}]`)
	if queue, err = store.SaveQueue(t.Context(), queue, act); err != nil {
		t.Fatal(err)
	}
	var refused *changes.Error
	if _, _, err := changes.Apply(t.Context(), store, queue, "upkeep"); !errors.As(err, &refused) || refused.Queue != "payments" || refused.Change != 0 || !errors.Is(err, sluice.ErrInvalid) {
		t.Errorf("Apply returned %v, want a changes.Error of the queue", err)
	}
	undone, err := changes.Undo(t.Context(), client, "payments", act)
	if err != nil || len(undone.Scheduled) != 0 || undone.Settings != queue.Settings {
		t.Errorf("undone to %+v, %v; want the settings without scheduled", undone, err)
	}
}

// TestUndoFindsTheChangeAmongDispatchCycles has a dispatcher write more entries of the queue than there are changes.
func TestUndoFindsTheChangeAmongDispatchCycles(t *testing.T) {
	t.Parallel()
	store, act := memory.New(memory.Options{}), sluice.Act{By: "ada"}
	client := sluice.NewClient(store, sluice.ClientOptions{})
	before, err := client.EnsureQueue(t.Context(), "payments", sluice.DefaultSettings(), act)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.ChangeSettings(t.Context(), "payments", act, func(q *sluice.Settings) error {
		q.Paused = true
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	cycle := sluice.AuditEntry{Object: audit.ObjectQueue, Name: "payments", Event: audit.EventBatch, Actor: "dispatcher", After: json.RawMessage(`{"claimed":1}`)}
	if err := store.AppendAudit(t.Context(), slices.Repeat([]sluice.AuditEntry{cycle}, 300)); err != nil {
		t.Fatal(err)
	}
	queue, err := client.Queue(t.Context(), "payments")
	if err != nil {
		t.Fatal(err)
	}
	if by, err := explain.PausedBy(t.Context(), store, queue); err != nil || by.Actor != act.By {
		t.Errorf("it was paused by %+v, %v, want ada", by, err)
	}
	if undone, err := changes.Undo(t.Context(), client, "payments", act); err != nil || undone.Settings != before.Settings {
		t.Errorf("undone to %+v, %v, want the settings of before", undone.Settings, err)
	}
}
