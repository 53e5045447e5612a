// Package flow stores graphs of jobs: each node of a flow is a job that runs after other nodes and reads their results.
//
// Begin with [Start], which checks a [Flow] and stores all its jobs in one transaction. A handler reads the results of earlier
// nodes with [Result] and [Results]. [Read] shows a flow with its critical path. Upkeep makes the jobs of maps and ends flows.
//
// A flow stays a graph of jobs that is known when it starts. It has no loops, no code between its jobs and no signals: see
// docs/guide/pipeline.md for the line to Temporal.
//
// Read next: docs/guide/pipeline.md, then start.go.
package flow

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"time"

	"github.com/sluice-queue/sluice"
)

// MaxNodes is the most nodes of a flow. MaxElements is the most jobs that one map makes.
const (
	MaxNodes    = 1000
	MaxElements = sluice.MaxAfter
)

// Queues of Sluice's own: EndQueue has one job per flow, which runs when all nodes have ended, and MapQueue the jobs of maps. Upkeep
// works on both.
const (
	EndQueue = "sluice.flow.end"
	MapQueue = "sluice.flow.map"
)

// The labels of a flow's jobs: the flow's ID, the node's name, and the place of a map's job in the array, from 0.
const (
	LabelFlow = "flow"
	LabelNode = "node"
	LabelItem = "item"
)

// itemText and indexText stand in the payload of a map for the element and its place.
const (
	itemText  = "{{item}}"
	indexText = "{{index}}"
)

// Flow is a graph of jobs.
type Flow struct {
	// ID names the flow. If you keep the ID, you can start the same flow again after a lost answer. Default: a new ID.
	ID sluice.ID `json:"id,omitzero"`
	// Name tells people which flow it is, at most 255 bytes. Required.
	Name string `json:"name"`
	// Deadline cancels the nodes that wait at that time. Runs that have begun go on to their queue's timeout. Default: none.
	Deadline time.Time `json:"deadline,omitzero"`
	// Nodes are the jobs, in any order, at most [MaxNodes]. Required.
	Nodes []Node `json:"nodes"`
	// Checker checks payloads in queues with a payload_schema; package schema has one. Start needs it only for such queues. Default:
	// none, so that such a queue is refused.
	Checker sluice.PayloadChecker `json:"-"`
}

// Node is a job of a flow, or a map: one job per element of an array.
type Node struct {
	// Name names the node in its flow, as the name of a queue. Required.
	Name string `json:"name"`
	// Queue is the queue of the node's job, or of the jobs of its map. Required.
	Queue string `json:"queue"`
	// Payload is the body of the job, as JSON. Default: {}.
	//
	// In the payload of a map, each JSON string "{{item}}" becomes the element, and "{{index}}" its place, from 0. Default: the element.
	Payload json.RawMessage `json:"payload,omitempty"`
	// After names the nodes that must end first. Default: none.
	After []string `json:"after,omitempty"`
	// OnFailure says how the node goes on if a node of After dies or is cancelled. Default: it is cancelled.
	OnFailure sluice.AfterFailure `json:"on_failure,omitempty"`
	// OnFailureOf are the rules for single nodes of After, at most [sluice.MaxAfterFailures]. Default: OnFailure.
	OnFailureOf map[string]sluice.AfterFailure `json:"on_failure_of,omitempty"`
	// Over makes the node a map: it names a node of After whose result is a JSON array, or a map. When that has completed, the
	// node becomes one job per element, all at once. The map completes when all its jobs have; if one fails, it is dead.
	// Default: the node is a job.
	Over string `json:"over,omitempty"`
	// Most is the most elements of a map; a longer array makes it dead. Default, and most: [MaxElements].
	Most int `json:"most,omitempty"`
	// Tenant, Priority, MaxAttempts, OrderKey and Labels are those of the job, or of each job of a map; see
	// [sluice.EnqueueOptions]. A node has no idempotency key: the ID of the flow does that for all its nodes.
	Tenant      string            `json:"tenant,omitempty"`
	Priority    int               `json:"priority,omitempty"`
	MaxAttempts int               `json:"max_attempts,omitempty"`
	OrderKey    string            `json:"order_key,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
}

// InvalidError says which rule a flow breaks, and which node. It is a [sluice.ErrInvalid].
type InvalidError struct {
	// Node is the name of the node. Empty: the flow itself.
	Node string
	// Err is the rule.
	Err error
}

// Error names the node, the field and the rule.
func (e *InvalidError) Error() string {
	if e.Node == "" {
		return fmt.Sprintf("flow: %v", e.Err)
	}
	return fmt.Sprintf("flow: node %q: %v", e.Node, e.Err)
}

// Unwrap returns the rule.
func (e *InvalidError) Unwrap() error { return e.Err }

// NodeID returns the ID of a node's job. It follows from the ID of the flow, so it needs no look into the store.
func NodeID(flow sluice.ID, node string) sluice.ID {
	sum := sha256.Sum256(append(flow[:], node...))
	id := flow
	copy(id[6:], sum[:10])
	id[6], id[8] = id[6]&0x0f|0x70, id[8]&0x3f|0x80
	return id
}

// ElementID returns the ID of the job that a map has made of an element. Index is its place in the array, from 0.
func ElementID(flow sluice.ID, node string, index int) sluice.ID {
	id := NodeID(flow, node+"/")
	binary.BigEndian.PutUint32(id[12:], uint32(index))
	return id
}
