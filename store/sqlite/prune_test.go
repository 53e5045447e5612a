package sqlite_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
)

// Prune finds old jobs beside the writer, so a person may requeue one before its transaction begins.
func TestPruneLeavesJobsThatLiveAgain(t *testing.T) {
	t.Parallel()
	ctx, by := t.Context(), sluice.Act{By: "ops"}
	store := openStore(t, filepath.Join(t.TempDir(), "jobs.db"))
	client := sluice.NewClient(store, sluice.ClientOptions{})
	settings := sluice.DefaultSettings()
	settings.KeepCancelled = time.Millisecond
	if _, err := client.EnsureQueue(ctx, "mail", settings, by); err != nil {
		t.Fatal(err)
	}
	cancel := func(ids ...sluice.ID) {
		t.Helper()
		errs, err := store.Cancel(ctx, ids, by)
		if err != nil {
			t.Fatal(err)
		}
		for _, err := range errs {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	var ids []sluice.ID
	for range 3 {
		receipt, err := client.Enqueue(ctx, sluice.NewJob{Queue: "mail", Payload: []byte(`{}`)})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, receipt.ID)
	}
	old, waits, endsAnew := ids[0], ids[1], ids[2]
	cancel(ids...)
	time.Sleep(2 * settings.KeepCancelled)

	deleted, err := store.PruneMeanwhile(ctx, func() error {
		if _, err := store.Requeue(ctx, []sluice.ID{waits, endsAnew}, by); err != nil {
			return err
		}
		cancel(endsAnew)
		return nil
	})

	if err != nil || deleted != 1 {
		t.Fatalf("deleted %d jobs, %v; want 1, nil", deleted, err)
	}
	if _, err := client.Job(ctx, old); err == nil {
		t.Error("the job whose retention is over is still there")
	}
	for id, want := range map[sluice.ID]sluice.State{waits: sluice.StateQueued, endsAnew: sluice.StateCancelled} {
		details, err := client.Job(ctx, id)
		if err != nil {
			t.Errorf("a requeued job: %v", err)
			continue
		}
		if details.State != want || details.Generation != 2 {
			t.Errorf("a requeued job is %s in life %d, want %s in 2", details.State, details.Generation, want)
		}
	}
}
