package upkeep_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/flow"
	"github.com/sluice-queue/sluice/store/sqlite"
)

// TestWorkOfAFlowThatIsInterruptedIsDueAtOnce ends a process while it claims the end of a flow. Another process finds it due.
func TestWorkOfAFlowThatIsInterruptedIsDueAtOnce(t *testing.T) {
	t.Parallel()
	store, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "jobs.db"), sqlite.Options{Migrate: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	id, err := flow.Start(t.Context(), store, flow.Flow{Name: "f", Nodes: []flow.Node{{Name: "a", Queue: "q"}}})
	if err != nil {
		t.Fatal(err)
	}
	claimed, err := store.Claim(t.Context(), sluice.ClaimRequest{Queue: "q", Limit: 1, Holder: "h", Lease: time.Minute, Token: sluice.NewToken()})
	if err != nil || len(claimed.Jobs) != 1 {
		t.Fatalf("claimed %d jobs: %v", len(claimed.Jobs), err)
	}
	ended := sluice.Settlement{ID: claimed.Jobs[0].ID, Token: claimed.Jobs[0].Token, Holder: "h", Event: sluice.EventComplete}
	if errs, err := store.Settle(t.Context(), []sluice.Settlement{ended}); err != nil || errs[0] != nil {
		t.Fatal(err, errs)
	}
	ctx, end := context.WithCancel(t.Context())
	_, _ = flow.Work(ctx, &stopping{store, end}, "ended", nil)
	job, err := sluice.NewClient(store, sluice.ClientOptions{}).Job(t.Context(), id)
	if err != nil || job.State != sluice.StateQueued || time.Until(job.DueAt) > 0 {
		t.Errorf("the end of the flow is %s, due in %s; want queued and due: %v", job.State, time.Until(job.DueAt), err)
	}
	if settled, err := flow.Work(t.Context(), store, "other", nil); err != nil || settled != 1 {
		t.Errorf("another process settled %d jobs, want 1: %v", settled, err)
	}
}
