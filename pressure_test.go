package sluice_test

import (
	"errors"
	"testing"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/pressure"
	"github.com/sluice-queue/sluice/store/memory"
)

func TestAFullQueueRefusesEveryJobOfTheCall(t *testing.T) {
	t.Parallel()
	client := sluice.NewClient(memory.New(memory.Options{}), sluice.ClientOptions{})
	settings := sluice.DefaultSettings()
	settings.MaxWaiting = 2
	if _, err := client.EnsureQueue(t.Context(), "q", settings, ada); err != nil {
		t.Fatal(err)
	}
	job := sluice.NewJob{Queue: "q", Payload: []byte("1")}
	if _, err := client.EnqueueMany(t.Context(), []sluice.NewJob{job, job}); err != nil {
		t.Fatal(err)
	}
	_, err := client.Enqueue(t.Context(), job)
	var full *pressure.FullError
	if !errors.As(err, &full) || full.Queue != "q" || full.Limit != 2 || full.RetryAfter <= 0 {
		t.Errorf("one more: %v", err)
	}
	other := sluice.NewJob{Queue: "other", Payload: []byte("1")}
	receipts, err := client.EnqueueMany(t.Context(), []sluice.NewJob{other, job})
	var batch *sluice.BatchError
	if !errors.As(err, &batch) || len(batch.Failed) != 2 || !receipts[0].ID.IsZero() {
		t.Errorf("with a job of another queue: %v, %v", receipts, err)
	}
}
