package flow

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/feature"
)

// Running, Completed, Failed and Cancelled are the states of a flow.
const (
	Running   State = "running"
	Completed State = "completed"
	Failed    State = "failed"
	Cancelled State = "cancelled"
)

// State is how far a flow is. A flow runs until all its nodes have ended; it has failed if one of them has.
type State string

// Listed is a flow in a list.
type Listed struct {
	// ID and Name name the flow, and State is where it is in its life.
	ID    sluice.ID `json:"id"`
	Name  string    `json:"name"`
	State State     `json:"state"`
	// Nodes counts the nodes.
	Nodes int `json:"nodes"`
	// CreatedAt is when the flow began, and FinishedAt when it ended; zero: not yet.
	CreatedAt  time.Time `json:"created_at"`
	FinishedAt time.Time `json:"finished_at,omitzero"`
	Error      string    `json:"error,omitempty"` // of a failed flow
}

// Tree is a flow with the states of its nodes.
type Tree struct {
	Listed
	// Deadline cancels the nodes that wait then. Zero: none.
	Deadline time.Time `json:"deadline,omitzero"`
	// Nodes come behind those that they run after.
	Nodes []NodeState `json:"tree"`
	// CriticalPath names the nodes, first to last, whose runs take the longest one after the other. CriticalTime is how long.
	CriticalPath []string      `json:"critical_path"`
	CriticalTime time.Duration `json:"critical_ns"`
}

// NodeState is a node as it is now.
type NodeState struct {
	// Name names the node, and Job is its job in Queue. After and Over are those of [Node].
	Name  string    `json:"name"`
	Queue string    `json:"queue"`
	Job   sluice.ID `json:"job"`
	After []string  `json:"after,omitempty"`
	Over  string    `json:"over,omitempty"`
	// State is that of the job, as people see it: see Label of [sluice.Job]. A map whose jobs run is mapped. Empty: upkeep or a
	// person has deleted the job.
	State string `json:"state"`
	// Elements are how many jobs a map has made, and Ended and FailedElements how many of them have ended and failed.
	Elements       int `json:"elements,omitempty"`
	Ended          int `json:"ended,omitempty"`
	FailedElements int `json:"failed_elements,omitempty"`
	// Took is how long the last run took, or has taken so far. For a node that has not begun, it is the mean of the nodes of the
	// flow in the same queue that have ended. For a map, it is the time from its last predecessor to its end.
	Took     time.Duration `json:"took_ns"`
	Expected bool          `json:"expected,omitempty"` // Took is a guess
	Critical bool          `json:"critical,omitempty"` // it is on the critical path
	Error    string        `json:"error,omitempty"`
	job      sluice.Job
}

// List returns flows, the newest first. Before is the ID of the last flow of the page before; zero: begin with the newest. Limit
// is 1 to 10,000; 0 means 100.
func List(ctx context.Context, store sluice.Store, before sluice.ID, limit int) ([]Listed, error) {
	limit, err := feature.PageSize(limit)
	if err != nil {
		return nil, err
	}
	page, err := sluice.GivenStore(store).Jobs(ctx, sluice.JobFilter{Queue: EndQueue, Before: before, Limit: limit})
	if err != nil {
		return nil, fmt.Errorf("list flows: %w", err)
	}
	out := make([]Listed, len(page.Jobs))
	for i, j := range page.Jobs {
		out[i] = listed(j)
	}
	return out, nil
}

func listed(j sluice.Job) Listed {
	states := map[sluice.State]State{sluice.StateCompleted: Completed, sluice.StateDead: Failed, sluice.StateCancelled: Cancelled}
	out := Listed{ID: j.ID, Name: j.Labels[LabelFlow], State: cmp.Or(states[j.State], Running), Nodes: len(j.After), CreatedAt: j.CreatedAt, FinishedAt: j.FinishedAt}
	if out.State == Failed {
		out.Error = j.Error
	}
	return out
}

// Read returns a flow with its nodes. An ID that is not that of a flow is a [sluice.ErrNotFound].
func Read(ctx context.Context, store sluice.Store, id sluice.ID) (Tree, error) {
	store = sluice.GivenStore(store)
	end, err := store.Job(ctx, id)
	if err != nil {
		return Tree{}, fmt.Errorf("flow %s: %w", id, err)
	}
	var f Flow
	if end.Queue != EndQueue || json.Unmarshal(end.Payload, &f) != nil {
		return Tree{}, fmt.Errorf("flow %s: it is a job of queue %q and no flow: %w", id, end.Queue, sluice.ErrNotFound)
	}
	now, err := store.Now(ctx)
	if err != nil {
		return Tree{}, fmt.Errorf("flow %s: %w", id, err)
	}
	tree := Tree{Listed: listed(end), Deadline: f.Deadline}
	for _, n := range f.Nodes {
		state, err := readNode(ctx, store, id, n, now)
		if err != nil {
			return Tree{}, fmt.Errorf("flow %s: node %q: %w", id, n.Name, err)
		}
		tree.Nodes = append(tree.Nodes, state)
	}
	tree.measure(now)
	return tree, nil
}

// readNode reads the job of a node, and counts the jobs of a map.
func readNode(ctx context.Context, store sluice.Store, id sluice.ID, n Node, now time.Time) (NodeState, error) {
	s := NodeState{Name: n.Name, Queue: n.Queue, Job: NodeID(id, n.Name), After: n.After, Over: n.Over}
	job, err := store.Job(ctx, s.Job)
	switch {
	case errors.Is(err, sluice.ErrNotFound):
		return s, nil
	case err != nil:
		return s, err
	}
	s.job, s.State = job, job.Label(now)
	if job.State != sluice.StateCompleted {
		s.Error = job.Error
	}
	var of mapped
	text := job.Checkpoint
	if job.State == sluice.StateCompleted {
		text = job.Result
	}
	if n.Over == "" || len(text) == 0 {
		return s, nil
	}
	if err := json.Unmarshal(text, &of); err != nil {
		return s, fmt.Errorf("number of elements: %w", err)
	}
	if s.Elements = of.Elements; !job.State.Finished() {
		s.State = "mapped"
	}
	ends, err := endsOf(ctx, store, elementIDs(id, n.Name, of.Elements))
	for _, end := range ends {
		if s.Ended++; end.State == sluice.StateDead || end.State == sluice.StateCancelled {
			s.FailedElements++
		}
	}
	return s, err
}

// measure works out how long each node takes, and the critical path.
func (t *Tree) measure(now time.Time) {
	places := make(map[string]int, len(t.Nodes))
	sum, count := make(map[string]time.Duration), make(map[string]time.Duration)
	for i := range t.Nodes {
		n := &t.Nodes[i]
		places[n.Name] = i
		n.Took = t.took(n, places, now)
		if n.job.State.Finished() && n.Took > 0 {
			sum[n.Queue], count[n.Queue] = sum[n.Queue]+n.Took, count[n.Queue]+1
		}
	}
	longest := make([]time.Duration, len(t.Nodes)) // of the paths that end with a node
	before := make([]int, len(t.Nodes))
	last := -1
	for i := range t.Nodes {
		n := &t.Nodes[i]
		if n.Took == 0 && !n.job.State.Finished() && count[n.Queue] > 0 {
			n.Took, n.Expected = sum[n.Queue]/count[n.Queue], true
		}
		before[i] = -1
		for _, name := range n.After {
			if p := places[name]; before[i] < 0 || longest[p] > longest[before[i]] {
				before[i] = p
			}
		}
		longest[i] = n.Took
		if before[i] >= 0 {
			longest[i] += longest[before[i]]
		}
		if last < 0 || longest[i] > longest[last] {
			last = i
		}
	}
	if last < 0 {
		return
	}
	t.CriticalTime = longest[last]
	for i := last; i >= 0; i = before[i] {
		t.Nodes[i].Critical = true
		t.CriticalPath = append(t.CriticalPath, t.Nodes[i].Name)
	}
	slices.Reverse(t.CriticalPath)
}

// took returns how long the last run of a node took, or has taken so far. 0: it has not begun.
func (t *Tree) took(n *NodeState, places map[string]int, now time.Time) time.Duration {
	from, to := n.job.ClaimedAt, n.job.FinishedAt
	if n.Over != "" {
		from = t.CreatedAt
		for _, name := range n.After {
			if at := t.Nodes[places[name]].job.FinishedAt; at.After(from) {
				from = at
			}
		}
		if n.Elements == 0 {
			return 0
		}
	}
	if to.IsZero() {
		to = now
	}
	if from.IsZero() || n.job.State == sluice.StateQueued && n.Over == "" {
		return 0
	}
	return max(0, to.Sub(from))
}
