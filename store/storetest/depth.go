package storetest

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/batch"
	"github.com/sluice-queue/sluice/edit"
	"github.com/sluice-queue/sluice/flow"
	"github.com/sluice-queue/sluice/schedule"
)

func depthRules() []Rule {
	return []Rule{
		{"R-990", "No payload is nested deeper than 500 levels, whatever brings it: an enqueue, an edit, the node of a flow, an element of a map, the callback of a batch or a schedule.", "[limits](guide/workers-in-other-languages.md)", func(w *world) {
			id := w.add(sluice.EnqueueOptions{Delay: time.Hour})
			for payload, refused := range map[string]bool{nested(500): false, nested(501): true} {
				deep := json.RawMessage(payload)
				client := sluice.NewClient(w.Store, sluice.ClientOptions{})
				for way, bring := range map[string]func() error{
					"enqueue": func() error {
						_, err := client.Enqueue(w.ctx, sluice.NewJob{Queue: queue, Payload: deep, EnqueueOptions: sluice.EnqueueOptions{Delay: time.Hour}})
						return err
					},
					"edit": func() error { return w.edit(w.job(id), edit.Change{Payload: deep}, person("deeper")) },
					"flow": func() error {
						_, err := flow.Start(w.ctx, w.Store, flow.Flow{Name: "deep", Nodes: []flow.Node{{Name: "a", Queue: queue, Payload: deep}}})
						return err
					},
					"map": func() error {
						of := flow.Node{Name: "b", Queue: queue, After: []string{"a"}, Over: "a", Payload: deep}
						_, err := flow.Start(w.ctx, w.Store, flow.Flow{Name: "deep", Nodes: []flow.Node{{Name: "a", Queue: queue}, of}})
						return err
					},
					"batch": func() error {
						_, err := batch.Open(w.ctx, w.Store, batch.Batch{Callbacks: callbacks(queue, deep)}, person("test"))
						return err
					},
					"schedule": func() error {
						_, err := schedule.Set(w.ctx, w.Store, "deep", schedule.Definition{Queue: queue, Every: time.Hour, Payload: deep}, person("test"))
						return err
					},
				} {
					err := bring()
					if !refused {
						w.ok(err)
						continue
					}
					if w.is(err, sluice.ErrInvalid); !strings.Contains(err.Error(), "it is nested deeper than 500 levels") {
						w.Errorf("%s: %v", way, err)
					}
				}
			}
		}},
		{"R-991", "A map whose element makes a payload that is nested deeper than 500 levels is dead without a job, and names the element.", "[limits](guide/workers-in-other-languages.md)", func(w *world) {
			id := w.startFlow(node("list"), mapOver("pages", "list"))
			w.completes(w.claimOne(), "[1,"+nested(499)+"]")
			w.flowsGoOn()
			w.claims(flow.ElementID(id, "pages", 0), flow.ElementID(id, "pages", 1))
			many := mapOver("pages", "list")
			many.Payload = json.RawMessage(`[["{{item}}"]]`)
			id = w.startFlow(node("list"), many)
			w.completes(w.claimOne(), "[1,"+nested(499)+"]")
			w.flowsGoOn()
			w.inState(flow.NodeID(id, "pages"), sluice.StateDead)
			if text := w.job(flow.NodeID(id, "pages")).Error; !strings.Contains(text, "element 1: ") || !strings.Contains(text, "it is nested deeper than 500 levels") {
				w.Errorf("the map died of %q", text)
			}
			w.claimNone("no element has a job")
		}},
	}
}

// nested is a list in a list, so many levels deep.
func nested(depth int) string {
	return string(append(bytes.Repeat([]byte("["), depth), bytes.Repeat([]byte("]"), depth)...))
}
