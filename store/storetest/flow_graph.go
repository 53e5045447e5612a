package storetest

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/await"
	"github.com/sluice-queue/sluice/flow"
	"github.com/sluice-queue/sluice/schema"
)

func flowGraphRules() []Rule {
	return []Rule{
		{"R-882", "A flow is stored whole or not at all: each node runs after those that it names, and its handler reads their results. To start it again stores nothing.", "[flows](guide/pipeline.md)", func(w *world) {
			f := flow.Flow{ID: sluice.NewID(), Name: "nightly", Nodes: []flow.Node{
				node("report", "left", "right"), node("left", "extract"), node("right", "extract"), node("extract"),
			}}
			for range 2 {
				id, err := flow.Start(w.ctx, w.Store, f)
				w.ok(err)
				equal(w, "id", id, f.ID)
			}
			extract := w.claimOne()
			equal(w, "the first", extract.ID, flow.NodeID(f.ID, "extract"))
			w.completes(extract, `{"rows":7}`)
			for _, c := range w.claims(flow.NodeID(f.ID, "left"), flow.NodeID(f.ID, "right")) {
				got, err := flow.Result[map[string]int](w.ctx, w.Store, c.Job, "extract")
				w.ok(err)
				equal(w, "result of the node before", got["rows"], 7)
				w.completes(c, `"`+c.Labels[flow.LabelNode]+`"`)
			}
			report := w.claimOne()
			got, err := flow.Result[string](w.ctx, w.Store, report.Job, "right")
			w.ok(err)
			equal(w, "result", got, "right")
			_, err = flow.Result[string](w.ctx, w.Store, report.Job, "report")
			w.is(err, sluice.ErrNotAllowed)
			_, err = flow.Result[string](w.ctx, w.Store, report.Job, "elsewhere")
			w.is(err, sluice.ErrNotFound)
			w.flowIs(f.ID, flow.Running)
			w.completes(report, "1")
			w.flowsGoOn()
			w.flowIs(f.ID, flow.Completed)
			refused := flow.Flow{ID: sluice.NewID(), Name: "big", Nodes: []flow.Node{node("small"), node("big")}}
			refused.Nodes[1].Payload = json.RawMessage(`"` + strings.Repeat("x", sluice.DefaultSettings().PayloadLimit) + `"`)
			_, err = flow.Start(w.ctx, w.Store, refused)
			var invalid *flow.InvalidError
			if !errors.As(err, &invalid) || invalid.Node != "big" || !errors.Is(err, sluice.ErrInvalid) {
				w.Errorf("a payload that is too long: %v", err)
			}
			_, err = w.Store.Job(w.ctx, flow.NodeID(refused.ID, "small"))
			w.is(err, sluice.ErrNotFound)
		}},
		{"R-1091", "A flow that is started again with other nodes stays as it was stored, and none of them is stored.", "[flows](guide/pipeline.md)", func(w *world) {
			f := flow.Flow{ID: sluice.NewID(), Name: "nightly", Nodes: []flow.Node{node("extract")}}
			_, err := flow.Start(w.ctx, w.Store, f)
			w.ok(err)
			f.Nodes = append(f.Nodes, node("report", "extract"))
			id, err := flow.Start(w.ctx, w.Other, f)
			w.ok(err)
			equal(w, "id", id, f.ID)
			_, err = w.Store.Job(w.ctx, flow.NodeID(f.ID, "report"))
			w.is(err, sluice.ErrNotFound)
		}},
		{"R-883", "A map becomes one job per element of its node's result, once whoever does the work, and the node after it gets all results in order.", "[flows](guide/pipeline.md)", func(w *world) {
			id := w.startFlow(node("list"), mapOver("pages", "list"), node("sum", "pages"))
			w.completes(w.claimOne(), `["a","b","c","d","e"]`)
			w.claimNone("upkeep makes the jobs of the map")
			w.flowsGoOnAtOnce()
			claims := w.claim(100)
			equal(w, "elements", len(claims), 5)
			w.flowsGoOn()
			w.claimNone("each is made once")
			tree, err := flow.Read(w.ctx, w.Store, id)
			w.ok(err)
			equal(w, "state of the map", tree.Nodes[1].State, "mapped")
			equal(w, "elements as they are shown", tree.Nodes[1].Elements, 5)
			for i := range claims {
				c := claims[len(claims)-1-i]
				var page struct {
					Page string
					At   int
				}
				w.ok(json.Unmarshal(c.Payload, &page))
				equal(w, "place", fmt.Sprint(page.At), c.Labels[flow.LabelItem])
				w.completes(c, fmt.Sprintf(`"%s%d"`, page.Page, page.At))
				if i < len(claims)-1 {
					w.flowsGoOn()
					w.claimNone("elements have not ended")
				}
			}
			w.flowsGoOnAtOnce()
			sum := w.claimOne()
			got, err := flow.Results[string](w.ctx, w.Store, sum.Job, "pages")
			w.ok(err)
			equal(w, "results in order", strings.Join(got, " "), "a0 b1 c2 d3 e4")
			w.completes(sum, "1")
			w.flowsGoOn()
			w.flowIs(id, flow.Completed)
		}},
		{"R-884", "A map of no elements completes, and a map over a map gets the results of its jobs.", "[flows](guide/pipeline.md)", func(w *world) {
			w.startFlow(node("list"), mapOver("none", "list"), node("last", "none"))
			w.completes(w.claimOne(), `[]`)
			w.flowsGoOn()
			last := w.claimOne()
			got, err := flow.Results[int](w.ctx, w.Store, last.Job, "none")
			w.ok(err)
			equal(w, "results", len(got), 0)
			w.completes(last, "")
			id := w.startFlow(node("list"), mapOver("first", "list"), mapOver("second", "first"))
			w.completes(w.claimOne(), `[1,2]`)
			w.flowsGoOn()
			claims := w.claim(10)
			equal(w, "elements of the first", len(claims), 2)
			for _, c := range claims {
				w.completes(c, `"of `+c.Labels[flow.LabelItem]+`"`)
			}
			claims = nil
			// The process that settles is not the one that does the work of flows, so the second map may lie behind its low-water mark.
			for deadline := time.Now().Add(time.Minute); len(claims) == 0 && time.Now().Before(deadline); {
				w.flowsGoOn()
				claims = w.claim(10)
			}
			equal(w, "elements of the second", len(claims), 2)
			equal(w, "payload", strings.Contains(string(claims[0].Payload)+string(claims[1].Payload), `"page":"of 1"`), true)
			for _, c := range claims {
				w.completes(c, "")
			}
			w.flowsGoOn()
			w.flowIs(id, flow.Completed)
		}},
		{"R-885", "If an element of a map fails, the map is dead when all have ended, and each node after it goes on by its own rule. To requeue the element and then the map mends the flow.", "[flows](guide/pipeline.md)", func(w *world) {
			cancelled, waits := node("cancelled", "pages"), node("waits", "pages")
			waits.OnFailure = sluice.FailureWaits
			id := w.startFlow(node("list"), mapOver("pages", "list"), cancelled, waits)
			w.completes(w.claimOne(), `[1,2]`)
			w.flowsGoOn()
			claims := w.claim(10)
			w.done(by(sluice.EventBury, claims[0]))
			w.flowsGoOn()
			w.inState(flow.NodeID(id, "pages"), sluice.StateQueued)
			w.completes(claims[1], "2")
			w.flowsGoOn()
			w.inState(flow.NodeID(id, "pages"), sluice.StateDead)
			w.inState(flow.NodeID(id, "cancelled"), sluice.StateCancelled)
			w.inState(flow.NodeID(id, "waits"), sluice.StateQueued)
			w.ok(w.only(w.Store.Requeue(w.ctx, []sluice.ID{claims[0].ID}, person("mended"))))
			w.completes(w.claimOne(), "1")
			w.ok(w.only(w.Store.Requeue(w.ctx, []sluice.ID{flow.NodeID(id, "pages")}, person("mended"))))
			w.flowsGoOn()
			last := w.claimOne()
			got, err := flow.Results[int](w.ctx, w.Store, last.Job, "pages")
			w.ok(err)
			equal(w, "results", len(got), 2)
			w.completes(last, "")
			w.flowsGoOn()
			w.flowIs(id, flow.Failed)
			tree, err := flow.Read(w.ctx, w.Store, id)
			w.ok(err)
			equal(w, "why it failed", strings.Contains(tree.Error, "1 of 4 nodes failed: cancelled is cancelled"), true)
		}},
		{"R-886", "A map over no array, or over more elements than it may have, is dead and says so.", "[flows](guide/pipeline.md)", func(w *world) {
			for result, want := range map[string]string{`{"no":"array"}`: "must be a JSON array", `[1,2,3]`: "has 3 elements; the map takes at most 2", "null": "must be a JSON array"} {
				few := mapOver("pages", "list")
				few.Most = 2
				id := w.startFlow(node("list"), few)
				w.completes(w.claimOne(), result)
				w.flowsGoOn()
				w.inState(flow.NodeID(id, "pages"), sluice.StateDead)
				if text := w.job(flow.NodeID(id, "pages")).Error; !strings.Contains(text, want) {
					w.Errorf("%s: the map died of %q", result, text)
				}
				w.claimNone("nothing is made of it")
			}
		}},
		{"R-889", "Flows obey the payload_schema of their queues: a node that breaks it is refused before anything is stored, and a map with an element that breaks it is dead without a job, names the element, and can be requeued. So can the flow, which completes then.", "", func(w *world) {
			w.save(func(s *sluice.Settings) {
				s.PayloadSchema = `{"type":"object","properties":{"page":{"type":"number"}}}`
			})
			f := flow.Flow{Name: "pages", Nodes: []flow.Node{node("list"), node("odd"), mapOver("pages", "list")}}
			_, err := flow.Start(w.ctx, w.Store, f)
			w.is(err, sluice.ErrInvalid)
			f.Checker, f.Nodes[1].Payload = schema.New(), json.RawMessage("7")
			_, err = flow.Start(w.ctx, w.Store, f)
			var invalid *flow.InvalidError
			equal(w, "the error names the node", errors.As(err, &invalid) && invalid.Node == "odd" && strings.Contains(err.Error(), "payload_schema"), true)
			w.claimNone("nothing is stored")
			f.Nodes[1].Payload = nil
			id, err := flow.Start(w.ctx, w.Store, f)
			w.ok(err)
			list := w.claims(flow.NodeID(id, "list"), flow.NodeID(id, "odd"))
			w.completes(list[0], `[1,2,"three"]`)
			w.completes(list[1], "")
			w.flowsGoOn()
			w.inState(flow.NodeID(id, "pages"), sluice.StateDead)
			if text := w.job(flow.NodeID(id, "pages")).Error; !strings.Contains(text, "element 2: ") || !strings.Contains(text, "payload_schema") {
				w.Errorf("the map died of %q", text)
			}
			w.claimNone("no element has a job")
			w.save(func(s *sluice.Settings) { s.PayloadSchema = "" })
			w.ok(w.only(w.Store.Requeue(w.ctx, []sluice.ID{flow.NodeID(id, "pages")}, person("mended"))))
			w.flowsGoOn()
			elements := w.claim(10)
			equal(w, "elements", len(elements), 3)
			for _, c := range elements {
				w.completes(c, "")
			}
			w.flowsGoOn()
			w.flowIs(id, flow.Failed)
			w.ok(w.only(w.Store.Requeue(w.ctx, []sluice.ID{id}, person("mended"))))
			w.flowsGoOn()
			w.flowIs(id, flow.Completed)
		}},
		{"R-887", "The deadline of a flow cancels the nodes that wait, the jobs of maps too. A node that is to run if another fails reads why that failed.", "[flows](guide/pipeline.md)", func(w *world) {
			id, err := flow.Start(w.ctx, w.Store, flow.Flow{Name: "short", Deadline: w.Now().Add(time.Hour), Nodes: []flow.Node{node("list"), mapOver("pages", "list"), node("last", "pages")}})
			w.ok(err)
			w.completes(w.claimOne(), `[1]`)
			w.flowsGoOn()
			w.Advance(2 * time.Hour)
			_, err = w.Store.Expire(w.ctx, 100, "upkeep")
			w.ok(err)
			for _, job := range []sluice.ID{flow.ElementID(id, "pages", 0), flow.NodeID(id, "pages"), flow.NodeID(id, "last")} {
				w.inState(job, sluice.StateCancelled)
			}
			w.flowsGoOn()
			w.flowIs(id, flow.Failed)
			anyway := node("anyway", "first", "second")
			anyway.OnFailureOf = map[string]sluice.AfterFailure{"second": sluice.FailureRuns}
			id = w.startFlow(node("first"), node("second"), anyway)
			claims := w.claims(flow.NodeID(id, "first"), flow.NodeID(id, "second"))
			w.completes(claims[0], "1")
			w.done(by(sluice.EventBury, claims[1]))
			_, err = flow.Result[int](w.ctx, w.Store, w.claimOne().Job, "second")
			var failed *await.FailedError
			equal(w, "a typed error", errors.As(err, &failed) && failed.End.State == sluice.StateDead, true)
		}},
		{"R-1155", "A map that is requeued after the deadline of its flow makes jobs that do not expire.", "[flows](guide/pipeline.md)", func(w *world) {
			id, err := flow.Start(w.ctx, w.Store, flow.Flow{Name: "late", Deadline: w.Now().Add(time.Hour), Nodes: []flow.Node{node("list"), mapOver("pages", "list")}})
			w.ok(err)
			list := w.claimOne()
			w.Advance(2 * time.Hour)
			w.completes(list, `[1]`)
			_, err = w.Store.Expire(w.ctx, 100, "upkeep")
			w.ok(err)
			w.inState(flow.NodeID(id, "pages"), sluice.StateCancelled)
			w.ok(w.only(w.Store.Requeue(w.ctx, []sluice.ID{flow.NodeID(id, "pages")}, person("late, but wanted"))))
			w.flowsGoOn()
			_, err = w.Store.Expire(w.ctx, 100, "upkeep")
			w.ok(err)
			w.completes(w.claimOne(), "")
			w.flowsGoOn()
			w.inState(flow.NodeID(id, "pages"), sluice.StateCompleted)
		}},
		{"R-1156", "A map with more elements than may wait in their queue is dead without a job, names the limit, and can be requeued. One that finds the queue full waits for room.", "[back-pressure](guide/back-pressure.md)", func(w *world) {
			w.save(func(s *sluice.Settings) { s.MaxWaiting = 2 })
			id := w.startFlow(node("list"), mapOver("pages", "list"))
			w.completes(w.claimOne(), `[1,2,3]`)
			w.flowsGoOn()
			w.inState(flow.NodeID(id, "pages"), sluice.StateDead)
			if text := w.job(flow.NodeID(id, "pages")).Error; !strings.Contains(text, "max_waiting of 2") {
				w.Errorf("the map died of %q", text)
			}
			w.claimNone("no element has a job")
			w.save(func(s *sluice.Settings) { s.MaxWaiting = 3 })
			full := w.add(sluice.EnqueueOptions{})
			w.ok(w.only(w.Store.Requeue(w.ctx, []sluice.ID{flow.NodeID(id, "pages")}, person("mended"))))
			w.flowsGoOn()
			w.inState(flow.NodeID(id, "pages"), sluice.StateQueued)
			w.finishes(full)
			var claims []*sluice.Claim
			for deadline := time.Now().Add(time.Minute); len(claims) == 0 && time.Now().Before(deadline); { // a process counts the queue again in a moment
				w.Advance(time.Minute)
				w.flowsGoOn()
				claims = w.claim(10)
			}
			equal(w, "elements", len(claims), 3)
		}},
		{"R-1203", "Of several starts of a flow at the same time, with one ID and other nodes, one stores its nodes, and the others store nothing and return the ID.", "[flows](guide/pipeline.md)", func(w *world) {
			for range 5 {
				id, stores := sluice.NewID(), []sluice.Store{w.Store, w.Other}
				var all sync.WaitGroup
				for i := range 8 {
					all.Go(func() {
						f := flow.Flow{ID: id, Name: "race", Nodes: []flow.Node{node("same"), node(fmt.Sprintf("of-%d", i))}}
						if got, err := flow.Start(w.ctx, stores[i%2], f); err != nil || got != id {
							w.Errorf("start %d: %s, %v", i, got, err)
						}
					})
				}
				all.Wait()
				tree, err := flow.Read(w.ctx, w.Store, id)
				w.ok(err)
				claims := w.claims(tree.Nodes[0].Job, tree.Nodes[1].Job)
				w.claimNone("no other node is stored")
				for _, c := range claims {
					w.completes(c, "1")
				}
				w.flowsGoOn()
				w.flowIs(id, flow.Completed)
			}
		}},
		{"R-1202", "A flow whose dead or cancelled node is deleted before its end, by a person or by upkeep, fails and says so. One whose completed node is deleted completes.", "[flows](guide/pipeline.md)", func(w *world) {
			w.save(func(s *sluice.Settings) { s.KeepCompleted, s.KeepDead = time.Hour, time.Hour })
			for want, gone := range map[string]func(c *sluice.Claim){
				"1 of 2 nodes failed: gone was dead, and is deleted": func(c *sluice.Claim) {
					w.done(by(sluice.EventBury, c))
					w.ok(w.only(w.Store.DeleteJobs(w.ctx, []sluice.ID{c.ID}, person("test"))))
				},
				"1 of 2 nodes failed: gone was cancelled, and is deleted": func(c *sluice.Claim) {
					w.ok(w.only(w.Store.Cancel(w.ctx, []sluice.ID{c.ID}, person("test"))))
					w.ok(w.only(w.Store.DeleteJobs(w.ctx, []sluice.ID{c.ID}, person("test"))))
				},
				" 1 of 2 nodes failed: gone was dead, and is deleted": func(c *sluice.Claim) {
					w.done(by(sluice.EventBury, c))
					w.Advance(2 * time.Hour)
					w.prune()
				},
				"": func(c *sluice.Claim) {
					w.completes(c, "1")
					w.Advance(2 * time.Hour)
					w.prune()
				},
			} {
				id := w.startFlow(node("gone"), node("stays"))
				claims := w.claims(flow.NodeID(id, "gone"), flow.NodeID(id, "stays"))
				gone(claims[0])
				_, err := w.Store.Job(w.ctx, claims[0].ID)
				w.is(err, sluice.ErrNotFound)
				w.completes(claims[1], "1")
				w.flowsGoOn()
				for n := range 2 { // as it ended, and requeued
					tree, err := flow.Read(w.ctx, w.Store, id)
					w.ok(err)
					if want == "" {
						equal(w, "state", tree.State, flow.Completed)
						break
					}
					if tree.State != flow.Failed || !strings.Contains(tree.Error, strings.TrimSpace(want)) {
						w.Errorf("the flow is %s with the error %q, want %q", tree.State, tree.Error, want)
					}
					if n == 0 {
						w.ok(w.only(w.Store.Requeue(w.ctx, []sluice.ID{id}, person("test"))))
						w.flowsGoOn()
					}
				}
			}
		}},
	}
}

// node is a node of a flow that runs after others.
func node(name string, after ...string) flow.Node {
	return flow.Node{Name: name, Queue: queue, After: after}
}

// mapOver is a map over the result of a node.
func mapOver(name, over string) flow.Node {
	n := node(name, over)
	n.Over, n.Payload = over, json.RawMessage(`{"page":"{{item}}","at":"{{index}}"}`)
	return n
}

func (w *world) startFlow(nodes ...flow.Node) sluice.ID {
	w.Helper()
	id, err := flow.Start(w.ctx, w.Store, flow.Flow{Name: "test", Nodes: nodes})
	w.ok(err)
	return id
}

func (w *world) completes(c *sluice.Claim, result string) {
	w.Helper()
	s := by(sluice.EventComplete, c)
	if result != "" {
		s.Result = json.RawMessage(result)
	}
	w.done(s)
}

// flowsGoOn lets one process do the work of flows.
func (w *world) flowsGoOn() {
	w.Helper()
	for range 2 { // the first round of a map may find that a transaction still holds the job before it
		_, err := flow.Work(w.ctx, w.Store, "upkeep:1:x", schema.New())
		w.ok(err)
	}
}

// flowsGoOnAtOnce lets many processes do the work of flows at the same time.
func (w *world) flowsGoOnAtOnce() {
	w.Helper()
	var all sync.WaitGroup
	for i, store := range []sluice.Store{w.Store, w.Other, w.Store, w.Other} {
		all.Go(func() {
			if _, err := flow.Work(w.ctx, store, fmt.Sprintf("upkeep:%d:x", i), schema.New()); err != nil {
				w.Errorf("work of flows: %v", err)
			}
		})
	}
	all.Wait()
	w.flowsGoOn()
}

func (w *world) flowIs(id sluice.ID, want flow.State) {
	w.Helper()
	list, err := flow.List(w.ctx, w.Store, sluice.ID{}, 10)
	w.ok(err)
	for _, f := range list {
		if f.ID == id {
			equal(w, "state of the flow", f.State, want)
			return
		}
	}
	w.Errorf("flow %s is not among %d", id, len(list))
}
