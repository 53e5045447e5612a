package flow

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/feature"
)

// Start checks a flow and stores its jobs: all in one transaction, or none. It returns the ID of the flow, which is also the ID
// of a job that ends when all nodes have: wait for it with package await.
//
// Give a store, or InTx of a store to start the flow in a transaction of your own. A flow that breaks a rule is an
// [*InvalidError], which names the node, and a [sluice.ErrInvalid]. Starting a flow again with the same ID stores nothing.
// Start calls no middleware of clients.
func Start(ctx context.Context, to sluice.Enqueuer, f Flow) (sluice.ID, error) {
	if err := sluice.CheckGiven("store", to); err != nil {
		return sluice.ID{}, err
	}
	nodes, err := f.check()
	if err != nil {
		return sluice.ID{}, err
	}
	if f.ID.IsZero() {
		f.ID = sluice.NewID()
	} else if stored, err := isStored(ctx, to, f.ID); stored || err != nil {
		return f.ID, err
	}
	if now, err := to.Now(ctx); err != nil {
		return f.ID, fmt.Errorf("start flow %q: %w", f.Name, err)
	} else if !f.Deadline.IsZero() && !f.Deadline.After(now) {
		return f.ID, &InvalidError{Err: feature.Invalid("deadline", "it has passed")}
	}
	send := enqueues(ctx, to)
	if s := starterOf(to); s != nil {
		send = func([]sluice.Insert) error { return s.StartFlow(ctx, f) }
	}
	err = store(ctx, to, nodes, func(q queues) ([]sluice.Insert, error) { return f.inserts(nodes, q, f.Checker) }, send)
	var invalid *InvalidError
	if err != nil && !errors.As(err, &invalid) {
		err = fmt.Errorf("start flow %q: %w", f.Name, err)
	}
	return f.ID, err
}

// transaction is a transaction of the caller: the InTx of a store.
type transaction interface {
	HasJob(ctx context.Context, id sluice.ID, queue string) (bool, error)
}

// isStored reports whether a flow is stored already: nodes that it lacks must not be added to it. Behind a server, the answer is no:
// the server looks by itself.
func isStored(ctx context.Context, to sluice.Enqueuer, id sluice.ID) (has bool, err error) {
	switch in := to.(type) {
	case transaction:
		has, err = in.HasJob(ctx, id, EndQueue)
	case sluice.Store:
		if starterOf(to) != nil {
			return false, nil
		}
		var end sluice.Job
		if end, err = in.Job(ctx, id); errors.Is(err, sluice.ErrNotFound) {
			return false, nil
		}
		has = end.Queue == EndQueue
	}
	if err != nil {
		return false, fmt.Errorf("start flow %s: %w", id, err)
	}
	return has, nil
}

// starter is a store whose server starts flows, because it alone may store jobs of Sluice's own queues.
type starter interface {
	StartFlow(ctx context.Context, f Flow) error
}

func starterOf(to sluice.Enqueuer) starter {
	store, is := to.(sluice.Store)
	if !is {
		return nil // a transaction
	}
	found, _ := sluice.StoreAs[starter](store)
	return found
}

// enqueues sends jobs to a store itself.
func enqueues(ctx context.Context, to sluice.Enqueuer) func([]sluice.Insert) error {
	return func(jobs []sluice.Insert) error {
		_, err := to.Enqueue(ctx, jobs)
		return err
	}
}

// storeTries is how often jobs are sent whose queue is deleted again and again.
const storeTries = 5

// store sends jobs of nodes, all or none, by the settings of their queues.
func store(ctx context.Context, to sluice.Enqueuer, nodes []Node, jobs func(queues) ([]sluice.Insert, error), send func([]sluice.Insert) error) error {
	for try := 1; ; try++ {
		q, err := queuesOf(ctx, to, nodes)
		if err != nil {
			return err
		}
		inserts, err := jobs(q)
		if err != nil {
			return err
		}
		if err = send(inserts); !errors.Is(err, sluice.ErrQueueGone) || try == storeTries {
			return err
		}
	}
}

// queues are the queues of a flow by name. A queue that is not stored has the default settings.
type queues struct {
	by   map[string]sluice.Queue
	inTx bool // a transaction of the caller stores the jobs
}

// queuesOf makes sure that the queues of a flow may be used, and reads their settings.
func queuesOf(ctx context.Context, to sluice.Enqueuer, nodes []Node) (q queues, err error) {
	var names []string
	if starterOf(to) == nil {
		names = []string{EndQueue, MapQueue}
	}
	for _, n := range nodes {
		names = append(names, n.Queue)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	refused, err := to.Admit(ctx, names, sluice.Act{By: "producer", Reason: "a flow has a job in it", ID: sluice.NewID()})
	if err != nil {
		return q, err
	}
	for i, err := range refused {
		if err == nil {
			continue
		}
		for _, n := range nodes {
			if n.Queue == names[i] {
				return q, &InvalidError{n.Name, err}
			}
		}
		return q, err
	}
	stored, err := to.Queues(ctx, sluice.QueueFilter{Names: names})
	if err != nil {
		return q, err
	}
	_, isStore := to.(sluice.Store)
	q = queues{make(map[string]sluice.Queue, len(names)), !isStore}
	for _, queue := range stored {
		q.by[queue.Name] = queue
	}
	return q, nil
}

// settings returns the settings of a queue.
func (q queues) settings(name string) sluice.Settings {
	if queue, stored := q.by[name]; stored {
		return queue.Settings
	}
	return sluice.DefaultSettings()
}

// insert completes a job by the settings of its queue.
func (q queues) insert(job sluice.NewJob) sluice.Insert {
	queue, stored := q.by[job.Queue]
	job.Priority = cmp.Or(job.Priority, sluice.DefaultPriority)
	slices.SortFunc(job.After, func(a, b sluice.ID) int { return bytes.Compare(a[:], b[:]) })
	s := q.settings(job.Queue)
	return sluice.Insert{NewJob: job, AuditFull: s.Audit == sluice.AuditFull, ByTenant: queue.ByTenant, Known: stored && !q.inTx, MaxWaiting: s.MaxWaiting, TenantMaxWaiting: s.TenantMaxWaiting, Shed: s.Shed}
}

// check checks the payload of a node's job by the settings of its queue.
func (q queues) check(job sluice.NewJob) error {
	s := q.settings(job.Queue)
	if len(job.Payload) > s.PayloadLimit {
		return feature.Invalid("payload", fmt.Sprintf("%d bytes are more than the payload_limit of %d of queue %q", len(job.Payload), s.PayloadLimit, job.Queue))
	}
	return nil
}

// matches checks a payload by the payload_schema of its queue.
func (q queues) matches(job sluice.NewJob, checker sluice.PayloadChecker) error {
	return sluice.CheckSchema(checker, sluice.Queue{Name: job.Queue, Settings: q.settings(job.Queue)}, job.Payload)
}

// inserts are the jobs of a flow: of the nodes, sorted, and the job that ends the flow. The payload of a map is checked by the schema
// when its elements are known, unless it is the same for all of them.
func (f Flow) inserts(nodes []Node, q queues, checker sluice.PayloadChecker) ([]sluice.Insert, error) {
	end := sluice.NewJob{Queue: EndQueue}
	end.ID, end.Labels, end.AfterFailure = f.ID, map[string]string{LabelFlow: f.Name}, sluice.FailureRuns
	definition := Flow{Name: f.Name, Deadline: f.Deadline}
	over := make(map[string]bool)
	var inserts []sluice.Insert
	for _, n := range nodes {
		id := NodeID(f.ID, n.Name)
		job := n.job(f.ID, id, n.payload())
		err := q.check(job)
		if err == nil && (n.Over == "" || bytes.Equal(fill(job.Payload, nil, 0), job.Payload)) {
			err = q.matches(job, checker)
		}
		if err != nil {
			return nil, &InvalidError{n.Name, err}
		}
		if over[n.Name] = n.Over != ""; over[n.Name] {
			job = sluice.NewJob{Queue: MapQueue}
			if job.Payload, err = json.Marshal(mapping{Flow: f.ID, Node: n, OverMap: over[n.Over], Deadline: f.Deadline}); err != nil {
				return nil, &InvalidError{n.Name, err}
			}
			job.ID, job.Labels = id, labelsOf(f.ID, n.Name)
		}
		job.ExpiresAt = f.Deadline
		for _, name := range n.After {
			before := NodeID(f.ID, name)
			job.After = append(job.After, before)
			if rule := n.OnFailureOf[name]; rule != "" {
				if job.AfterFailures == nil {
					job.AfterFailures = make(map[sluice.ID]sluice.AfterFailure)
				}
				job.AfterFailures[before] = rule
			}
		}
		if len(n.After) > 0 {
			job.AfterFailure = cmp.Or(n.OnFailure, sluice.FailureCancels)
		}
		end.After = append(end.After, id)
		inserts = append(inserts, q.insert(job))
		definition.Nodes = append(definition.Nodes, Node{Name: n.Name, Queue: n.Queue, After: n.After, OnFailure: n.OnFailure, OnFailureOf: n.OnFailureOf, Over: n.Over, Tenant: n.Tenant})
	}
	var err error
	if end.Payload, err = json.Marshal(definition); err == nil {
		err = q.check(end)
	}
	if err != nil {
		return nil, &InvalidError{Err: err}
	}
	return append(inserts, q.insert(end)), nil
}

func labelsOf(flow sluice.ID, node string) map[string]string {
	return map[string]string{LabelFlow: flow.String(), LabelNode: node}
}

// job returns a job of a node.
func (n Node) job(flow, id sluice.ID, payload json.RawMessage) sluice.NewJob {
	labels := labelsOf(flow, n.Name)
	maps.Copy(labels, n.Labels)
	return sluice.NewJob{Queue: n.Queue, Payload: payload, EnqueueOptions: sluice.EnqueueOptions{
		ID: id, Tenant: n.Tenant, Priority: n.Priority, MaxAttempts: n.MaxAttempts, OrderKey: n.OrderKey, Labels: labels,
	}}
}

// mapping is the payload of a map's job.
type mapping struct {
	Flow     sluice.ID `json:"flow"`
	Node     Node      `json:"node"`
	OverMap  bool      `json:"over_map,omitempty"`
	Deadline time.Time `json:"deadline,omitzero"`
	// Map is set for the job that runs when all jobs of a map have ended: the map's own job.
	Map sluice.ID `json:"map,omitzero"`
}

// mapped is the result of a map.
type mapped struct {
	Elements int `json:"elements"`
}

// inserts returns the jobs of a map's elements, and the job that runs when all of them have ended. Without a checker, only workers
// check payloads by the schema.
func (m mapping) inserts(q queues, items []json.RawMessage, c *sluice.Claim, checker sluice.PayloadChecker) ([]sluice.Insert, error) {
	join := sluice.NewJob{Queue: MapQueue}
	join.ID, join.Labels, join.AfterFailure = joinID(m, c.Generation), labelsOf(m.Flow, m.Node.Name), sluice.FailureRuns
	inserts := make([]sluice.Insert, 0, len(items)+1)
	for i, item := range items {
		job := m.Node.job(m.Flow, ElementID(m.Flow, m.Node.Name, i), fill(m.Node.payload(), item, i))
		if job.Labels[LabelItem] = strconv.Itoa(i); c.Generation == 1 { // a requeued map does not expire, nor do its jobs
			job.ExpiresAt = m.Deadline
		}
		err := cmp.Or(job.Check(), q.check(job))
		if err == nil && checker != nil {
			err = q.matches(job, checker)
		}
		if err != nil {
			return nil, fmt.Errorf("element %d: %w", i, err)
		}
		join.After = append(join.After, job.ID)
		inserts = append(inserts, q.insert(job))
	}
	var err error
	join.Payload, err = json.Marshal(mapping{Flow: m.Flow, Map: c.ID})
	return append(inserts, q.insert(join)), err
}

// joinID names the job that runs when all jobs of a map have ended, one per life of the map.
func joinID(m mapping, generation int) sluice.ID {
	return NodeID(m.Flow, m.Node.Name+"/join/"+strconv.Itoa(generation))
}
