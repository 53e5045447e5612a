package worker_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/worker"
)

// TestAHandlerIsTestedWithAJobMadeByHand calls handlers with jobs that no worker claimed, as the unit tests of users do.
func TestAHandlerIsTestedWithAJobMadeByHand(t *testing.T) {
	t.Parallel()
	type progress struct{ Uploaded int }
	var handler worker.Handler[payment] = func(ctx context.Context, job *worker.Job[payment]) error {
		var at progress
		if _, err := job.LoadCheckpoint(&at); err != nil {
			return err
		}
		if err := job.SaveCheckpoint(ctx, progress{Uploaded: at.Uploaded + job.Attempt()}); err != nil {
			return err
		}
		return job.SetResult(job.Payload.Cents)
	}
	for name, job := range map[string]*worker.Job[payment]{
		"with a payload alone": {Payload: payment{"acme", 4200}},
		"with a claim":         {Claim: &sluice.Claim{Job: sluice.Job{ID: sluice.NewID()}}, Payload: payment{"acme", 4200}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, want := range []string{`{"Uploaded":1}`, `{"Uploaded":2}`} { // the second call finds the checkpoint of the first
				if err := handler(t.Context(), job); err != nil {
					t.Fatal(err)
				}
				if string(job.Checkpoint) != want || string(job.Result) != "4200" {
					t.Errorf("checkpoint %s and result %s, want %s and 4200", job.Checkpoint, job.Result, want)
				}
			}
		})
	}
}

// TestAJobMadeByHandRefusesWhatAStoreRefuses passes values that no store takes.
func TestAJobMadeByHandRefusesWhatAStoreRefuses(t *testing.T) {
	t.Parallel()
	var job worker.Job[payment]
	large := strings.Repeat("a", sluice.MaxResultBytes)
	for name, err := range map[string]error{
		"a large result":     job.SetResult(large),
		"a large checkpoint": job.SaveCheckpoint(t.Context(), large),
	} {
		if !errors.Is(err, sluice.ErrInvalid) {
			t.Errorf("%s: %v, want an ErrInvalid", name, err)
		}
	}
	if job.SetResult(make(chan int)) == nil || job.SaveCheckpoint(t.Context(), make(chan int)) == nil {
		t.Error("a channel was taken for JSON")
	}
	if found, err := job.LoadCheckpoint(new(string)); found || err != nil {
		t.Errorf("a checkpoint was found: %t, %v", found, err)
	}
}
