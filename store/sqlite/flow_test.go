package sqlite_test

import (
	"testing"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/flow"
	"github.com/sluice-queue/sluice/store/sqlite"
)

// TestFlowThatIsThereStaysInATransaction starts a flow, and in transactions of the caller again, with another node.
func TestFlowThatIsThereStaysInATransaction(t *testing.T) {
	t.Parallel()
	store, client := newStore(t)
	f := flow.Flow{ID: sluice.NewID(), Name: "nightly", Nodes: []flow.Node{{Name: "extract", Queue: "q"}}}
	for range 2 {
		err := store.Transact(t.Context(), func(tx sqlite.Tx) error {
			_, err := flow.Start(t.Context(), store.InTx(tx), f)
			f.Nodes = append(f.Nodes[:1:1], flow.Node{Name: "report", Queue: "q"})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if got := stateOf(t, client, flow.NodeID(f.ID, "extract")); got != sluice.StateQueued {
		t.Errorf("the node is %q", got)
	}
	if got := stateOf(t, client, flow.NodeID(f.ID, "report")); got != "" {
		t.Errorf("the new node is stored: it is %q", got)
	}
}
