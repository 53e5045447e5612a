package httpapi

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/access"
	"github.com/sluice-queue/sluice/flow"
)

// flows adds the routes of flows.
func (a *API) flows() {
	route := func(r Route) Route { r.Group, r.noun = "flows", "flow"; return r }
	add(a, route(Route{
		Method: "GET", Path: "/flows", Name: "list-flows", Summary: "list flows", Text: "The newest flows come first.",
		Needs: access.Look, Commands: []string{"flows ls"},
	}), func(ctx context.Context, c *call, in *BeforeInput) (flowList, error) {
		found, err := flow.List(ctx, c.api.store, in.Before, in.Limit)
		return flowList{orEmpty(found)}, err
	})
	add(a, route(Route{
		Method: "POST", Path: "/flows", Name: "start-flow", Summary: "start a flow",
		Text:  "Stores all its jobs, or none. With an `id` of yours, or the header Idempotency-Key, a flow that is sent again is stored once.",
		Needs: access.Enqueue, Commands: []string{"flows start"}, scope: ofJobs, status: 201,
	}), startFlow)
	add(a, route(Route{
		Method: "GET", Path: "/flows/{id}", Name: "get-flow", Summary: "read a flow with the states of its nodes",
		Needs: access.Look | access.Follow, Commands: []string{"flows show"}, scope: ofJobs,
	}), func(ctx context.Context, c *call, in *JobInput) (flow.Tree, error) {
		if err := c.knows(ctx, in.ID); err != nil {
			return flow.Tree{}, err
		}
		tree, err := flow.Read(ctx, c.api.store, in.ID)
		if err != nil {
			return flow.Tree{}, err
		}
		tree.Nodes, tree.CriticalPath = orEmpty(tree.Nodes), orEmpty(tree.CriticalPath)
		return tree, nil
	})
}

// startFlow starts a flow within the bounds of the caller. The IDs of nodes follow from the flow's: with the ID of a foreign flow, a
// node could run after foreign jobs, and read their results.
func startFlow(ctx context.Context, c *call, in *flowInput) (startedFlow, error) {
	for _, node := range in.Body.Nodes {
		if !c.caller.Job(node.Queue, node.Tenant) {
			return startedFlow{}, outOfBounds("the token is bounded to other queues or tenants")
		}
	}
	if in.Body.ID.IsZero() {
		in.Body.ID = c.idOf(0)
	}
	foreign, err := c.takesForeign(ctx, in.Body)
	if err != nil {
		return startedFlow{}, err
	}
	if !foreign {
		in.Body.Checker = c.api.checker
		id, err := flow.Start(ctx, c.api.store, in.Body)
		return startedFlow{id}, err
	}
	switch end, err := c.api.client().Job(ctx, in.Body.ID); {
	case err != nil && !errors.Is(err, sluice.ErrNotFound):
		return startedFlow{}, err
	case err == nil && end.Queue == flow.EndQueue: // the caller's own flow may have maps, whose jobs are in a queue of Sluice's own
		return startedFlow{in.Body.ID}, nil
	}
	return startedFlow{}, outOfBounds("the token is bounded to other queues or tenants, and the id of the flow is taken")
}

// takesForeign reports whether a job outside of the caller's bounds has the ID of a node.
func (c *call) takesForeign(ctx context.Context, f flow.Flow) (bool, error) {
	if c.caller.None() || f.ID.IsZero() {
		return false, nil
	}
	for _, node := range f.Nodes {
		if foreign, err := c.isForeign(ctx, flow.NodeID(f.ID, node.Name)); foreign || err != nil {
			return foreign, err
		}
	}
	return false, nil
}

// knows returns an ErrNotFound unless the caller knows the jobs of all nodes of a flow. One read tells it, as for a flow that is
// not there.
func (c *call) knows(ctx context.Context, id sluice.ID) error {
	if c.caller.None() {
		return nil
	}
	end, err := c.api.client().Job(ctx, id)
	if err != nil {
		return err
	}
	var f flow.Flow
	if end.Queue != flow.EndQueue || json.Unmarshal(end.Payload, &f) != nil {
		return sluice.ErrNotFound
	}
	for _, node := range f.Nodes {
		if !c.caller.Job(node.Queue, node.Tenant) {
			return sluice.ErrNotFound
		}
	}
	return nil
}

// BeforeInput chooses a page of a list whose newest items come first.
type BeforeInput struct {
	Before sluice.ID `query:"before" doc:"the last id of the page before" format:"uuid"`
	Limit  int       `query:"limit" doc:"the most items" minimum:"1" maximum:"1000" default:"100"`
}

// flowList lists flows.
type flowList struct {
	// Flows are the flows, the newest first.
	Flows []flow.Listed `json:"flows"`
}

// flowInput starts a flow.
type flowInput struct{ Body flow.Flow }

// startedFlow is a flow that began.
type startedFlow struct {
	// ID is the flow.
	ID sluice.ID `json:"id"`
}
