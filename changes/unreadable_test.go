package changes_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/changes"
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
