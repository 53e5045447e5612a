package demo

import (
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/apps/workflows/records"
)

// The list shows a run that somebody has terminated in Temporal, and a requeue starts it again.
func TestTerminatedExecutionIsFailedInTheList(t *testing.T) {
	if testing.Short() {
		t.Skip("needs a Temporal server")
	}
	t.Parallel()
	ctx, s := t.Context(), newSite(t, "1h", nil)
	d, temporal, must := s.db, s.temporal, s.must
	id, _, err := d.Enqueue(ctx, "acme", records.NewExecution{Definition: "wait"})
	must(err)
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
