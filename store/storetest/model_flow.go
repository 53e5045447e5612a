package storetest

import (
	"encoding/json"
	"time"

	"pgregory.net/rapid"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/flow"
)

// modelFlow is what the model knows of a flow: a node, and a map over its result. The node's job and those of the elements are jobs
// of the model like others.
type modelFlow struct {
	id       sluice.ID
	result   json.RawMessage // of the node, when it completes by a settlement
	elements int
	orderKey string // of the elements
	settled  bool   // it has completed so
	made     bool   // the jobs of the elements are stored
	ended    sluice.State
	quiet    time.Duration // since when upkeep has seen all elements ended; 0: it has not
}

// maxModelFlows keeps the jobs of a run few.
const maxModelFlows = 3

func (m *machine) startFlow(t *rapid.T) {
	if len(m.flows) == maxModelFlows {
		t.Skip("there are enough flows")
	}
	m.tick()
	f := &modelFlow{id: sluice.NewID(), elements: rapid.IntRange(0, 3).Draw(t, "elements")}
	items := make([]int, f.elements)
	f.result, _ = json.Marshal(items) // numbers
	list := flow.Node{Name: "list", Queue: m.queue, Priority: rapid.IntRange(4, 6).Draw(t, "priority")}
	pages := flow.Node{Name: "pages", Queue: m.queue, After: []string{"list"}, Over: "list", OrderKey: rapid.SampledFrom([]string{"", "x"}).Draw(t, "order key")}
	for range 2 { // the second time it stores nothing
		_, err := flow.Start(m.ctx, m.store(t), flow.Flow{ID: f.id, Name: "model", Nodes: []flow.Node{pages, list}})
		m.must(err)
	}
	m.flows = append(m.flows, f)
	m.modelEnqueue(sluice.EnqueueOptions{ID: f.listID(), Priority: list.Priority})
	f.orderKey = pages.OrderKey
}

func (f *modelFlow) listID() sluice.ID { return flow.NodeID(f.id, "list") }

// resultOf is the result with which a job completes: the node of a flow gives its array.
func (m *machine) resultOf(s sluice.Settlement) json.RawMessage {
	for _, f := range m.flows {
		if f.listID() == s.ID && s.Event == sluice.EventComplete {
			return f.result
		}
	}
	return nil
}

// noteResult notes that a settlement has completed the node of a flow.
func (m *machine) noteResult(s sluice.Settlement) {
	for _, f := range m.flows {
		if f.listID() == s.ID && s.Event == sluice.EventComplete {
			f.settled = true
		}
	}
}

// workOnFlows lets upkeep make the jobs of maps, and end maps.
func (m *machine) workOnFlows(t *rapid.T) {
	m.tick()
	store := m.store(t)
	for range 3 { // a round may find that a transaction still holds the job before it
		_, err := flow.Work(m.ctx, store, "upkeep:1:x", nil)
		m.must(err)
	}
	for _, f := range m.flows {
		if f.ended != "" || m.jobs[f.listID()].state != sluice.StateCompleted {
			continue
		}
		if !f.settled { // a person has completed the node: there is no array
			f.ended = sluice.StateDead
			continue
		}
		if !f.made {
			f.made = true
			for i := range f.elements {
				m.modelEnqueue(sluice.EnqueueOptions{ID: flow.ElementID(f.id, "pages", i), Priority: sluice.DefaultPriority, OrderKey: f.orderKey})
			}
		}
		m.endMap(f)
	}
}

// endMap lets the map end that must have ended now, or may have: if an element was requeued after its end, the store may have asked
// before that.
func (m *machine) endMap(f *modelFlow) {
	want, again := sluice.StateCompleted, false
	for i := range f.elements {
		job := m.jobs[flow.ElementID(f.id, "pages", i)]
		if !job.state.Finished() {
			f.quiet = 0
			return
		}
		if again = again || job.generation > 1; job.state != sluice.StateCompleted {
			want = sluice.StateDead
		}
	}
	if f.quiet == 0 {
		f.quiet = m.now
	}
	if again && m.now < f.quiet+11*minute {
		job, err := m.bench.Store.Job(m.ctx, flow.NodeID(f.id, "pages"))
		m.must(err)
		if !job.State.Finished() {
			return
		}
	}
	f.ended = want
}

// agreeOnFlows makes sure that the maps of the store are as far as those of the model, and that no flow ends before its map.
func (m *machine) agreeOnFlows() {
	for _, f := range m.flows {
		if list := m.jobs[f.listID()]; f.ended == "" && list.state.Finished() && list.state != sluice.StateCompleted {
			f.ended = sluice.StateCancelled
		}
		got, err := m.bench.Store.Job(m.ctx, flow.NodeID(f.id, "pages"))
		m.must(err)
		if want := f.ended; want == "" && got.State.Finished() || want != "" && got.State != want {
			m.Fatalf("the map of flow %s is %s (%s), the model has %+v", f.id, got.State, got.Error, *f)
		}
		end, err := m.bench.Store.Job(m.ctx, f.id)
		m.must(err)
		if end.State.Finished() && f.ended == "" {
			m.Fatalf("flow %s is %s before its map has ended", f.id, end.State)
		}
		if _, err := m.bench.Store.Job(m.ctx, flow.ElementID(f.id, "pages", 0)); (err == nil) != (f.made && f.elements > 0) {
			m.Fatalf("the first element of flow %s: %v, the model has %+v", f.id, err, *f)
		}
	}
}
