package postgres_test

import (
	"errors"
	"testing"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/flow"
)

// TestFlowThatIsThereStaysInATransaction starts a flow, and in a transaction of the caller again, with another node.
func TestFlowThatIsThereStaysInATransaction(t *testing.T) {
	t.Parallel()
	store, client := newStore(t)
	for kind, start := range begin(t, store) {
		f := flow.Flow{ID: sluice.NewID(), Name: "nightly", Nodes: []flow.Node{{Name: "extract", Queue: "q"}}}
		for range 2 {
			tx := start()
			_, err := flow.Start(t.Context(), tx.enqueuer, f)
			if err = errors.Join(err, tx.commit()); err != nil {
				t.Fatalf("%s: %v", kind, err)
			}
			f.Nodes = append(f.Nodes[:1:1], flow.Node{Name: "report", Queue: "q"})
		}
		if got := stateOf(t, client, flow.NodeID(f.ID, "extract")); got != sluice.StateQueued {
			t.Errorf("%s: the node is %q", kind, got)
		}
		if got := stateOf(t, client, flow.NodeID(f.ID, "report")); got != "" {
			t.Errorf("%s: the new node is stored: it is %q", kind, got)
		}
	}
}
