package temporal_test

import (
	"errors"
	"log/slog"
	"testing"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/dispatcher"
	"github.com/sluice-queue/sluice/engine"
	"github.com/sluice-queue/sluice/engine/enginetest"
	adapter "github.com/sluice-queue/sluice/engine/temporal"
	"github.com/sluice-queue/sluice/store/memory"
	"github.com/sluice-queue/sluice/upkeep"
)

// TestARequestMayBeAdjustedButNotWhatARunIsKnownBy adds a retry policy. Temporal then retries a failed workflow within
// one run. Changes to the id and the memo have no effect.
func TestARequestMayBeAdjustedButNotWhatARunIsKnownBy(t *testing.T) {
	t.Parallel()
	b := newBench(t, adapter.Options{Adjust: func(_ engine.Target, _ engine.Run, request *workflowservice.StartWorkflowExecutionRequest) {
		request.RetryPolicy = &commonpb.RetryPolicy{InitialInterval: durationpb.New(100 * time.Millisecond), MaximumAttempts: 3}
		request.WorkflowId, request.CronSchedule, request.Memo = "another", "* * * * *", nil
		request.WorkflowIdReusePolicy = enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE
	}}, client.Options{})
	b.work(t, func(ctx workflow.Context, _ any) (string, error) {
		if workflow.GetInfo(ctx).Attempt < 2 {
			return "", errors.New("the bank is away")
		}
		return "paid", nil
	})
	run := newRun(`{}`)
	b.started(t, run, run)
	if out := b.becomes(t, run.Ref, engine.Completed); out.Job != run.Job {
		t.Errorf("the run is %+v", out)
	}
	if out := b.ended(t, run.Ref); out.State != engine.Completed || out.Job != run.Job {
		t.Errorf("it is listed as %+v", out)
	}
	b.started(t, run)
}

// TestARunWhoseJobTheStoreHasLostIsAdopted enqueues work in a store, loses the store, and enqueues the same work in
// another.
func TestARunWhoseJobTheStoreHasLostIsAdopted(t *testing.T) {
	t.Parallel()
	b := newBench(t, adapter.Options{}, client.Options{})
	diary := &enginetest.Diary{}
	b.work(t, obey(diary))
	settings := sluice.DefaultSettings()
	settings.Engine, settings.RunType, settings.RunRef = "temporal", b.target.Type, "{queue}-{key}"
	engines := map[string]engine.Engine{"temporal": b.engine}
	quiet := slog.New(slog.DiscardHandler)
	for _, c := range []struct {
		payload string
		want    sluice.State
	}{
		{`{"do":"complete"}`, sluice.StateCompleted},
		{`{"do":"complete"}`, sluice.StateCompleted}, // adopts the run of the job before
		{`{"do":"fail"}`, sluice.StateDead},          // the work differs, but its ref is taken
	} {
		store := memory.New(memory.Options{})
		jobs := sluice.NewClient(store, sluice.ClientOptions{})
		if _, err := jobs.EnsureQueue(t.Context(), b.target.Queue, settings, sluice.Act{By: "test"}); err != nil {
			t.Fatal(err)
		}
		job, err := jobs.Enqueue(t.Context(), sluice.NewJob{Queue: b.target.Queue, Payload: []byte(c.payload), EnqueueOptions: sluice.EnqueueOptions{Key: "invoice-7"}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := dispatcher.New(store, dispatcher.Options{Engines: engines, Logger: quiet}).Once(t.Context(), b.target.Queue); err != nil {
			t.Fatal(err)
		}
		until(t, "the job is "+string(c.want), func() bool {
			if _, err := upkeep.New(store, upkeep.Options{Engines: engines, Logger: quiet}).Once(t.Context(), true); err != nil {
				t.Fatal(err)
			}
			found, err := jobs.Job(t.Context(), job.ID)
			return err == nil && found.State == c.want
		})
	}
	if n := len(diary.Of(b.target.Queue + "-invoice-7")); n != 1 {
		t.Errorf("the work was done %d times", n)
	}
}
