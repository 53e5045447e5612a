package httpapi_test

import (
	"errors"
	"fmt"
	"strings"
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

// TestATokenForTenantsReadsItsOwnFlow starts a flow and reads it, with tokens of several bounds.
func TestATokenForTenantsReadsItsOwnFlow(t *testing.T) {
	t.Parallel()
	callers := make([]access.Caller, 0, 3)
	for name, bounds := range map[string]access.Bounds{"queues": {Queues: []string{"mail"}}, "tenants": {Tenants: []string{"acme"}}, "both": {Queues: []string{"mail"}, Tenants: []string{"acme"}}} {
		callers = append(callers, access.Caller{Name: name, Role: access.RoleProducer, Bounds: bounds})
	}
	s := serve(t, httpapi.Options{}, callers...)
	for _, caller := range callers {
		as := []string{"Authorization", "Bearer " + caller.Name}
		id := sluice.NewID()
		r := s.ask("POST", "/flows", fmt.Sprintf(`{"id":%q,"name":"mine","nodes":[{"name":"a","queue":"mail","tenant":"acme"},{"name":"b","queue":"mail","tenant":"acme","after":["a"]}]}`, id), as...)
		if r.status != 201 {
			t.Errorf("%s: %d %s", caller.Name, r.status, r.text)
		}
		if r := s.ask("GET", "/flows/"+id.String(), "", as...); r.status != 200 || !strings.Contains(r.text, `"name":"b"`) {
			t.Errorf("%s reads its own flow: %d %s", caller.Name, r.status, r.text)
		}
	}
}
