package httpapi_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/access"
	"github.com/sluice-queue/sluice/cmd/httpapi"
	"github.com/sluice-queue/sluice/flow"
)

// TestAFlowReadsNoResultsOfAForeignFlow starts a flow with the ID of a foreign one, whose jobs in the caller's queue show it. A node
// has the name of a foreign node, and a map goes over the result of that one.
func TestAFlowReadsNoResultsOfAForeignFlow(t *testing.T) {
	t.Parallel()
	s := serve(t, httpapi.Options{}, access.Caller{Name: "a", Role: access.RoleWorker, Bounds: access.Bounds{Queues: []string{"mail"}}})
	theirs := flow.Flow{ID: sluice.NewID(), Name: "theirs", Nodes: []flow.Node{{Name: "charge", Queue: "pay"}, {Name: "notify", Queue: "mail", After: []string{"charge"}}}}
	must(flow.Start(t.Context(), s.store, theirs))
	pruned := sluice.NewID() // of a flow of which a node is left
	must(s.client.Enqueue(t.Context(), sluice.NewJob{Queue: "pay", EnqueueOptions: sluice.EnqueueOptions{ID: flow.NodeID(pruned, "charge")}, Payload: []byte("1")}))
	s.end("pay", sluice.EventComplete)
	start := func(id sluice.ID) reply {
		return s.ask("POST", "/flows", fmt.Sprintf(`{"id":%q,"name":"mine","nodes":[{"name":"charge","queue":"mail"},{"name":"take","queue":"mail","after":["charge"],"over":"charge"}]}`, id), "Authorization", "Bearer a")
	}
	if r := start(theirs.ID); r.status != 201 {
		t.Errorf("the answer tells that the flow is there: %d %s", r.status, r.text)
	}
	if _, err := s.client.Job(t.Context(), flow.NodeID(theirs.ID, "take")); !errors.Is(err, sluice.ErrNotFound) {
		t.Errorf("the map over the foreign result is stored: %v", err)
	}
	s.problem(start(pruned), 403, "out_of_bounds")
	mine := sluice.NewID()
	for range 2 { // the second time, the map is a job of Sluice's own queue
		if r := start(mine); r.status != 201 {
			t.Errorf("the caller's own flow: %d %s", r.status, r.text)
		}
	}
}
