package flow_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/flow"
	"github.com/sluice-queue/sluice/store/memory"
)

func node(name string, after ...string) flow.Node {
	return flow.Node{Name: name, Queue: "q", After: after}
}

func with(n flow.Node, change func(*flow.Node)) flow.Node {
	change(&n)
	return n
}

func TestAFlowThatBreaksARuleNamesTheNodeAndStoresNothing(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		flow flow.Flow
		node string // the node that the error names
		says string
	}{
		"no name":          {flow.Flow{Nodes: []flow.Node{node("a")}}, "", "name"},
		"no nodes":         {flow.Flow{Name: "f"}, "", "nodes"},
		"too many":         {flow.Flow{Name: "f", Nodes: make([]flow.Node, flow.MaxNodes+1)}, "", "1001 nodes must be 1 to 1000"},
		"a late deadline":  {flow.Flow{Name: "f", Deadline: time.Unix(1, 0), Nodes: []flow.Node{node("a")}}, "", "it has passed"},
		"twice":            {flow.Flow{Name: "f", Nodes: []flow.Node{node("a"), node("a")}}, "a", "another node has it too"},
		"a bad name":       {flow.Flow{Name: "f", Nodes: []flow.Node{node("a b")}}, "a b", "must be 1 to 64 letters"},
		"no queue":         {flow.Flow{Name: "f", Nodes: []flow.Node{{Name: "a"}}}, "a", "queue"},
		"queue of Sluice":  {flow.Flow{Name: "f", Nodes: []flow.Node{{Name: "a", Queue: flow.EndQueue}}}, "a", "reserved"},
		"unknown":          {flow.Flow{Name: "f", Nodes: []flow.Node{node("a", "b")}}, "a", `no node "b"`},
		"named twice":      {flow.Flow{Name: "f", Nodes: []flow.Node{node("a"), node("b", "a", "a")}}, "b", "twice"},
		"a circle":         {flow.Flow{Name: "f", Nodes: []flow.Node{node("a"), node("b", "a", "d"), node("c", "b"), node("d", "c")}}, "b", "b waits for d waits for c waits for b"},
		"itself":           {flow.Flow{Name: "f", Nodes: []flow.Node{node("a", "a")}}, "a", "a waits for a"},
		"no rule":          {flow.Flow{Name: "f", Nodes: []flow.Node{node("a"), with(node("b", "a"), func(n *flow.Node) { n.OnFailure = "shrug" })}}, "b", "shrug"},
		"rule of another":  {flow.Flow{Name: "f", Nodes: []flow.Node{node("a"), with(node("b"), func(n *flow.Node) { n.OnFailureOf = map[string]sluice.AfterFailure{"a": "run"} })}}, "b", "does not run after"},
		"no single rule":   {flow.Flow{Name: "f", Nodes: []flow.Node{node("a"), with(node("b", "a"), func(n *flow.Node) { n.OnFailureOf = map[string]sluice.AfterFailure{"a": "shrug"} })}}, "b", "shrug"},
		"label of flows":   {flow.Flow{Name: "f", Nodes: []flow.Node{with(node("a"), func(n *flow.Node) { n.Labels = map[string]string{"flow": "x"} })}}, "a", "labels"},
		"a bad template":   {flow.Flow{Name: "f", Nodes: []flow.Node{with(node("a"), func(n *flow.Node) { n.Payload = json.RawMessage(`{"item":{{item}}}`) })}}, "a", "payload"},
		"a bad place":      {flow.Flow{Name: "f", Nodes: []flow.Node{node("a"), with(node("b", "a"), func(n *flow.Node) { n.Over, n.Payload = "a", json.RawMessage(`{"{{item}}" : 1}`) })}}, "b", "name of a field"},
		"over no one":      {flow.Flow{Name: "f", Nodes: []flow.Node{with(node("a"), func(n *flow.Node) { n.Over = "b" })}}, "a", "must be one of after"},
		"over a failure":   {flow.Flow{Name: "f", Nodes: []flow.Node{node("a"), with(node("b", "a"), func(n *flow.Node) { n.Over, n.OnFailure = "a", "run" })}}, "b", "there is no array"},
		"too many at most": {flow.Flow{Name: "f", Nodes: []flow.Node{node("a"), with(node("b", "a"), func(n *flow.Node) { n.Over, n.Most = "a", 10_001 })}}, "b", "most"},
		"most of no map":   {flow.Flow{Name: "f", Nodes: []flow.Node{with(node("a"), func(n *flow.Node) { n.Most = 3 })}}, "a", "only a map"},
		"a bad priority":   {flow.Flow{Name: "f", Nodes: []flow.Node{with(node("a"), func(n *flow.Node) { n.Priority = 11 })}}, "a", "priority"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := memory.New(memory.Options{})
			_, err := flow.Start(t.Context(), store, test.flow)
			var invalid *flow.InvalidError
			if !errors.As(err, &invalid) || !errors.Is(err, sluice.ErrInvalid) || invalid.Node != test.node || !strings.Contains(err.Error(), test.says) {
				t.Errorf("got %v", err)
			}
			if page, err := store.Jobs(t.Context(), sluice.JobFilter{Limit: 10}); err != nil || len(page.Jobs) > 0 {
				t.Errorf("%d jobs are stored, %v", len(page.Jobs), err)
			}
		})
	}
}

func TestJobsOfAFlowHaveIDsOfTheirOwn(t *testing.T) {
	t.Parallel()
	seen := make(map[sluice.ID]string)
	for range 2 {
		id := sluice.NewID()
		seen[id] = "flow"
		for _, name := range []string{"a", "b", "a/", "a/join/1"} {
			for n, got := range map[string]sluice.ID{"node": flow.NodeID(id, name), "element 0": flow.ElementID(id, name, 0), "element 9999": flow.ElementID(id, name, 9999)} {
				if other := seen[got]; other != "" {
					t.Errorf("%s of %q has the ID of %s", n, name, other)
				}
				seen[got] = n + " of " + name
				if parsed, err := sluice.ParseID(got.String()); err != nil || parsed != got || got.Time() != id.Time() {
					t.Errorf("%s: %v", got, err)
				}
			}
		}
	}
}

// TestTheCriticalPathIsTheLongest compares the critical path with the longest path that a walk over all paths finds.
func TestTheCriticalPathIsTheLongest(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		store := memory.New(memory.Options{})
		f := flow.Flow{ID: sluice.NewID(), Name: "f"}
		for i := range rapid.IntRange(1, 7).Draw(t, "nodes") {
			n := node(fmt.Sprint("n", i))
			for k := range i {
				if rapid.Bool().Draw(t, "after") {
					n.After = append(n.After, fmt.Sprint("n", k))
				}
			}
			f.Nodes = append(f.Nodes, n)
		}
		if _, err := flow.Start(t.Context(), store, f); err != nil {
			t.Fatal(err)
		}
		client := sluice.NewClient(store, sluice.ClientOptions{})
		for range f.Nodes {
			claimed, err := store.Claim(t.Context(), sluice.ClaimRequest{Queue: "q", Limit: 1, Holder: "h:1:x", Lease: time.Minute, Token: sluice.NewToken()})
			if err != nil || len(claimed.Jobs) != 1 {
				t.Fatalf("claimed %d: %v", len(claimed.Jobs), err)
			}
			if _, err := store.Settle(t.Context(), []sluice.Settlement{{ID: claimed.Jobs[0].ID, Token: claimed.Jobs[0].Token, Event: sluice.EventComplete}}); err != nil {
				t.Fatal(err)
			}
		}
		tree, err := flow.Read(t.Context(), store, f.ID)
		if err != nil {
			t.Fatal(err)
		}
		took := make(map[string]time.Duration)
		for _, n := range f.Nodes {
			job, err := client.Job(t.Context(), flow.NodeID(f.ID, n.Name))
			if err != nil {
				t.Fatal(err)
			}
			took[n.Name] = job.FinishedAt.Sub(job.ClaimedAt)
		}
		var longest func(n flow.Node) time.Duration
		longest = func(n flow.Node) (most time.Duration) {
			for _, name := range n.After {
				for _, before := range f.Nodes {
					if before.Name == name {
						most = max(most, longest(before))
					}
				}
			}
			return most + took[n.Name]
		}
		var want, got time.Duration
		for _, n := range f.Nodes {
			want = max(want, longest(n))
		}
		for _, name := range tree.CriticalPath {
			got += took[name]
		}
		if got != want || tree.CriticalTime != want {
			t.Fatalf("the path %v takes %s, said to be %s, and the longest takes %s", tree.CriticalPath, got, tree.CriticalTime, want)
		}
	})
}
