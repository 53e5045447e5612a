package flow

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/feature"
	"github.com/sluice-queue/sluice/internal/graph"
)

const maxNameBytes = 255

// Check returns the first rule that the flow breaks, as an [*InvalidError] that names the node. It reads no store: [Start] also
// checks the payloads by the settings of their queues.
func (f Flow) Check() error {
	_, err := f.check()
	return err
}

// check also returns the nodes sorted behind those that they run after.
func (f Flow) check() ([]Node, error) {
	switch {
	case f.Name == "" || len(f.Name) > maxNameBytes:
		return nil, &InvalidError{Err: feature.Invalid("name", fmt.Sprintf("%.40q must have 1 to %d bytes", f.Name, maxNameBytes))}
	case len(f.Nodes) == 0 || len(f.Nodes) > MaxNodes:
		return nil, &InvalidError{Err: feature.Invalid("nodes", fmt.Sprintf("%d nodes must be 1 to %d; a map makes up to %d jobs of one node", len(f.Nodes), MaxNodes, MaxElements))}
	}
	if err := feature.CheckInstant("deadline", f.Deadline); err != nil {
		return nil, &InvalidError{Err: err}
	}
	places := make(map[string]int, len(f.Nodes))
	for i, n := range f.Nodes {
		if _, twice := places[n.Name]; twice {
			return nil, &InvalidError{n.Name, feature.Invalid("name", "another node has it too")}
		}
		places[n.Name] = i
	}
	waits := make([][]int, len(f.Nodes))
	for i, n := range f.Nodes {
		if err := n.check(places); err != nil {
			return nil, &InvalidError{n.Name, err}
		}
		for _, name := range n.After {
			waits[i] = append(waits[i], places[name])
		}
	}
	order, circles := graph.Sort(waits)
	for _, circle := range circles {
		return nil, &InvalidError{f.Nodes[circle[0]].Name, feature.Invalid("after", "the nodes wait for each other: "+f.circle(circle))}
	}
	sorted := make([]Node, len(order))
	for k, i := range order {
		sorted[k] = f.Nodes[i]
	}
	return sorted, nil
}

// circle writes the names of nodes that wait for each other.
func (f Flow) circle(places []int) string {
	const shown = 5
	var names []string
	for k, i := range places {
		if k == shown {
			names = append(names, "…")
			break
		}
		names = append(names, f.Nodes[i].Name)
	}
	return strings.Join(append(names, f.Nodes[places[0]].Name), " waits for ")
}

func (n Node) check(places map[string]int) error {
	if err := sluice.CheckQueueName(n.Name); err != nil {
		return feature.Invalid("name", strings.TrimPrefix(ruleOf(err), "queue: "))
	}
	for i, name := range n.After {
		if _, known := places[name]; !known {
			return feature.Invalid("after", fmt.Sprintf("the flow has no node %q", name))
		}
		if slices.Contains(n.After[:i], name) {
			return feature.Invalid("after", fmt.Sprintf("it names %q twice", name))
		}
	}
	for name := range n.OnFailureOf {
		if !slices.Contains(n.After, name) {
			return feature.Invalid("on_failure_of", fmt.Sprintf("the node does not run after %q", name))
		}
	}
	for _, label := range []string{LabelFlow, LabelNode, LabelItem} {
		if _, own := n.Labels[label]; own {
			return feature.Invalid("labels", fmt.Sprintf("the flow sets %q itself", label))
		}
	}
	if err := n.checkMap(); err != nil {
		return err
	}
	probe := n.job(sluice.ID{1}, sluice.ID{2}, n.payload())
	if len(n.After) > 0 {
		probe.After, probe.AfterFailure = []sluice.ID{{3}}, n.OnFailure
	}
	return cmp.Or(probe.Check(), n.checkRules())
}

// checkRules checks the failure rules.
func (n Node) checkRules() error {
	if len(n.OnFailureOf) > sluice.MaxAfterFailures {
		return feature.Invalid("on_failure_of", fmt.Sprintf("%d rules must be at most %d", len(n.OnFailureOf), sluice.MaxAfterFailures))
	}
	for _, rule := range n.OnFailureOf {
		switch rule {
		case sluice.FailureCancels, sluice.FailureRuns, sluice.FailureWaits:
		default:
			return feature.Invalid("on_failure_of", fmt.Sprintf("%.40q must be one of cancel, run, wait", rule))
		}
	}
	return nil
}

func (n Node) checkMap() error {
	switch {
	case len(n.Payload) > 0 && !json.Valid(n.Payload):
		return feature.Invalid("payload", fmt.Sprintf("it is not valid JSON: %v", json.Unmarshal(n.Payload, new(any))))
	case n.Over == "" && n.Most != 0:
		return feature.Invalid("most", "only a map has it: name a node in over")
	case n.Over == "":
		return nil
	case !slices.Contains(n.After, n.Over):
		return feature.Invalid("over", fmt.Sprintf("%q must be one of after", n.Over))
	case n.ruleFor(n.Over) == sluice.FailureRuns:
		return feature.Invalid("over", fmt.Sprintf("a map cannot run if %q has failed: there is no array", n.Over))
	case templateName.Match(n.Payload):
		return feature.Invalid("payload", fmt.Sprintf("an element cannot be the name of a field; put %q in place of a value", itemText))
	case n.Most < 0 || n.Most > MaxElements:
		return feature.Invalid("most", fmt.Sprintf("%d must be from 1 to %d", n.Most, MaxElements))
	}
	return nil
}

// ruleFor returns the failure rule for a node of After.
func (n Node) ruleFor(name string) sluice.AfterFailure {
	return cmp.Or(n.OnFailureOf[name], n.OnFailure, sluice.FailureCancels)
}

// payload is what Payload says, or its default.
func (n Node) payload() json.RawMessage {
	switch {
	case len(n.Payload) > 0:
		return n.Payload
	case n.Over != "":
		return json.RawMessage(`"` + itemText + `"`)
	}
	return json.RawMessage("{}")
}

// ruleOf returns the rule of an error without its field.
func ruleOf(err error) string {
	var invalid *sluice.InvalidError
	if errors.As(err, &invalid) {
		return invalid.Rule
	}
	return err.Error()
}
