package demo

import (
	"io"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/apps/workflows/records"
	"github.com/sluice-queue/sluice/apps/workflows/service"
	"github.com/sluice-queue/sluice/internal/temporaltest"
)

// A run that somebody ends in Temporal is told by the list, and a requeue begins it anew.
func TestTerminatedExecutionIsFailedInTheList(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a Temporal server")
	}
	t.Parallel()
	ctx := t.Context()
	d, err := records.Open(ctx, filepath.Join(t.TempDir(), "workflows.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	logger := slog.New(slog.NewTextHandler(io.Discard, nil))
	temporal, err := service.Dial(temporaltest.Address(t), logger)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(temporal.Close)
	taskQueue := "terminate-" + sluice.NewID().String()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(service.Prepare(ctx, d, taskQueue))
	must(d.SaveWorkspace(ctx, records.Workspace{ID: "acme", Name: "Acme", Plan: "PRO"}, "test"))
	must(d.SaveDefinition(ctx, "acme", records.Definition{ID: "wait", Name: "Wait"}))
	must(d.SaveVersion(ctx, "acme", "wait", 1, []byte(`{"start":"wait","nodes":[{"id":"wait","kind":"delay","for":"1h"}]}`)))
	id, _, err := d.Enqueue(ctx, "acme", records.NewExecution{Definition: "wait"})
	must(err)
	ended := make(chan error, 1)
	go func() {
		ended <- service.Service{Database: d, Temporal: temporal, TaskQueue: taskQueue, Logger: logger}.Run(ctx)
	}()
	t.Cleanup(func() {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})

	await := func(state records.State) records.Execution {
		t.Helper()
		for {
			all, err := d.Executions(ctx, "acme", 10)
			must(err)
			if len(all) == 1 && all[0].State == state {
				return all[0]
			}
			time.Sleep(50 * time.Millisecond)
		}
	}
	await(records.Running)
	must(temporal.TerminateWorkflow(ctx, "execution-"+id.String(), "", "by hand"))
	if e := await(records.Failed); e.Error == "" || e.EndedAt.IsZero() {
		t.Errorf("the list says %+v", e)
	}
	must(d.Client.Requeue(ctx, []sluice.ID{id}, sluice.Act{By: "ada", Reason: "it was a mistake"}))
	if e := await(records.Running); e.Error != "" || !e.EndedAt.IsZero() {
		t.Errorf("after a requeue the list says %+v", e)
	}
	must(temporal.TerminateWorkflow(ctx, "execution-"+id.String()+"-g2", "", "the test is over"))
	await(records.Failed)
	if astray, err := d.Astray(ctx); err != nil || len(astray) > 0 {
		t.Errorf("%v, %v", astray, err)
	}
}
