// Package graph holds what a workflow definition consists of: nodes, and which follows which. It is data, checked when it
// is stored; package interpreter walks it.
package graph

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"
)

// Limits of a graph.
const (
	// MaxNodes is how many nodes a graph may have.
	MaxNodes = 100
	// MaxSteps is how many nodes one execution may go through: a graph may lead back to where it was.
	MaxSteps = 1000
	// MaxDelay is the longest delay of a node.
	MaxDelay = 30 * 24 * time.Hour
)

// ErrInvalid: the graph breaks a rule. The error says which.
var ErrInvalid = errors.New("invalid graph")

// ErrGone: what was to be executed does not exist any more. The error says what is gone.
var ErrGone = errors.New("is gone")

// Kind is what a node does.
type Kind string

// The kinds of nodes.
const (
	// Delay waits for Node.For.
	Delay Kind = "delay"
	// HTTP calls Node.URL, and keeps the status and the body under the node's id.
	HTTP Kind = "http"
	// Condition goes on with Node.Next if Node.Variable compares to Node.Value as Node.Op says, else with Node.Else.
	Condition Kind = "condition"
	// Set gives Node.Variable the value Node.Value.
	Set Kind = "set"
)

// Node is one node of a graph. Which fields count depends on its kind.
type Node struct {
	ID   string `json:"id"`
	Kind Kind   `json:"kind"`
	// Next is the id of the node that follows; empty: the execution ends here.
	Next string `json:"next,omitempty"`
	// Else follows on a condition that does not hold; empty: the execution ends here.
	Else string `json:"else,omitempty"`

	// For is how long a delay waits, such as 500ms or 1h.
	For string `json:"for,omitempty"`
	// Method and URL say what an HTTP node calls; the method is POST if it is empty. The variables are the body.
	Method string `json:"method,omitempty"`
	URL    string `json:"url,omitempty"`
	// Variable is what a condition looks at, and what a set node sets.
	Variable string `json:"variable,omitempty"`
	// Op compares: equal, less or greater. The last two are for numbers.
	Op    string `json:"op,omitempty"`
	Value any    `json:"value,omitempty"`
}

// Graph is a workflow definition.
type Graph struct {
	// Start is the id of the first node.
	Start string `json:"start"`
	Nodes []Node `json:"nodes"`
}

// Parse reads a graph and checks it.
func Parse(text []byte) (Graph, error) {
	var g Graph
	if err := json.Unmarshal(text, &g); err != nil {
		return g, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return g, g.Check()
}

// Node finds a node by its id.
func (g Graph) Node(id string) (Node, bool) {
	at := slices.IndexFunc(g.Nodes, func(n Node) bool { return n.ID == id })
	if at < 0 {
		return Node{}, false
	}
	return g.Nodes[at], true
}

// Check says which rule the graph breaks, as an ErrInvalid.
func (g Graph) Check() error {
	if len(g.Nodes) == 0 || len(g.Nodes) > MaxNodes {
		return fmt.Errorf("%w: it has %d nodes, and may have 1 to %d", ErrInvalid, len(g.Nodes), MaxNodes)
	}
	if _, found := g.Node(g.Start); !found {
		return fmt.Errorf("%w: it starts with %q, which is not one of its nodes", ErrInvalid, g.Start)
	}
	seen := make(map[string]bool)
	for _, n := range g.Nodes {
		if n.ID == "" || seen[n.ID] {
			return fmt.Errorf("%w: each node needs an id of its own, and %q is none", ErrInvalid, n.ID)
		}
		seen[n.ID] = true
		for _, next := range []string{n.Next, n.Else} {
			if _, found := g.Node(next); next != "" && !found {
				return fmt.Errorf("%w: node %q leads to %q, which is not one of its nodes", ErrInvalid, n.ID, next)
			}
		}
		if err := n.check(); err != nil {
			return fmt.Errorf("%w: node %q: %w", ErrInvalid, n.ID, err)
		}
	}
	return nil
}

func (n Node) check() error {
	switch n.Kind {
	case Delay:
		if wait, err := time.ParseDuration(n.For); err != nil || wait < 0 || wait > MaxDelay {
			return fmt.Errorf("it waits for %q, which is not a duration from 0s to %s", n.For, MaxDelay)
		}
	case HTTP:
		if at, err := url.Parse(n.URL); err != nil || at.Host == "" || at.Scheme != "http" && at.Scheme != "https" {
			return fmt.Errorf("it calls %q, which is not an http or https URL", n.URL)
		}
	case Condition:
		if n.Variable == "" || !slices.Contains([]string{"equal", "less", "greater"}, n.Op) {
			return errors.New("a condition needs a variable, and one of the ops equal, less and greater")
		}
	case Set:
		if n.Variable == "" {
			return errors.New("it needs the variable that it sets")
		}
	default:
		return fmt.Errorf("there is no kind %q", n.Kind)
	}
	return nil
}

// Holds decides a condition. Numbers are compared as numbers, everything else by its JSON.
func (n Node) Holds(variables map[string]any) bool {
	left, leftNumber := variables[n.Variable].(float64)
	right, rightNumber := n.Value.(float64)
	numbers := leftNumber && rightNumber
	switch n.Op {
	case "less":
		return numbers && cmp.Less(left, right)
	case "greater":
		return numbers && cmp.Less(right, left)
	}
	if numbers {
		return left == right
	}
	x, _ := json.Marshal(variables[n.Variable]) // it came from JSON
	y, _ := json.Marshal(n.Value)
	return string(x) == string(y)
}

// Work is what an execution has to do.
type Work struct {
	Graph Graph `json:"graph"`
	// Variables are what the execution was given.
	Variables map[string]any `json:"variables"`
}

// Step is one node that an execution has gone through.
type Step struct {
	// Number counts the steps of a run from 1.
	Number int             `json:"number"`
	Node   string          `json:"node"`
	Kind   Kind            `json:"kind"`
	Result json.RawMessage `json:"result"`
	// EndedAt is when it was done.
	EndedAt time.Time `json:"ended_at"`
}
