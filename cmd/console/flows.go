package console

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/sluice-queue/sluice/flow"
)

func flowPages() []page {
	return []page{
		{name: "flows", path: "/flows", title: "Flows", letter: "f", load: loadFlows},
		{name: "flow", path: "/flows/{id}", title: "Flow", load: loadFlow},
	}
}

// flowList is the view of /flows.
type flowList struct {
	Flows []flow.Listed `json:"flows"`
	Older string
}

// flowPage is how many flows a page has.
const flowPage = 50

func loadFlows(ctx context.Context, v *visit) (any, error) {
	var view flowList
	query := url.Values{"limit": {"50"}}
	if before := v.query.Get("before"); before != "" {
		query.Set("before", before)
	}
	v.cli("sluice flows ls")
	if err := v.get(ctx, "/flows", query, &view); err != nil {
		return nil, err
	}
	if n := len(view.Flows); n == flowPage {
		view.Older = v.with("before", view.Flows[n-1].ID.String())
	}
	return view, nil
}

// flowView is the view of /flows/{id}.
type flowView struct {
	Flow  flowTree
	Graph graph
}

// flowTree is a flow with its nodes.
type flowTree struct {
	flow.Listed
	Deadline     time.Time        `json:"deadline"`
	Tree         []flow.NodeState `json:"tree"`
	CriticalPath []string         `json:"critical_path"`
	CriticalTime time.Duration    `json:"critical_ns"`
}

// Where is the filter of its jobs.
func (f flowTree) Where() string { return "label.flow:" + f.ID.String() }

func loadFlow(ctx context.Context, v *visit) (any, error) {
	var view flowView
	id := v.pathOf("id")
	v.cli("sluice flows show " + quoted(id))
	err := v.get(ctx, "/flows/"+url.PathEscape(id), nil, &view.Flow)
	view.Graph = drawFlow(view.Flow.Tree)
	return view, err
}

// Sizes of the picture of a flow.
const (
	boxWidth, boxHeight = 176, 48
	gapX, gapY          = 56, 18
	margin              = 8
	// nameLength is the most letters of a name in a box.
	nameLength = 20
)

// graph is the picture of a flow: nodes in layers, from left to right.
type graph struct {
	Width, Height int
	Boxes         []box
	Arrows        []arrow
}

// box is a node in the picture.
type box struct {
	flow.NodeState
	X, Y int
}

// Short is the name, as far as it fits.
func (b box) Short() string {
	if name := []rune(b.Name); len(name) > nameLength {
		return string(name[:nameLength-1]) + "…"
	}
	return b.Name
}

// Label is the state, also of a job that upkeep has deleted.
func (b box) Label() string { return cmp.Or(b.State, "deleted") }

// IconX and the others are places in the picture.
func (b box) IconX() int { return b.X + 14 }
func (b box) TextX() int { return b.X + 26 }
func (b box) NameY() int { return b.Y + 20 }
func (b box) WordY() int { return b.Y + 38 }
func (b box) IconY() int { return b.Y + 34 }

// Icon is the shape of the state, as a path around the place of the icon.
func (b box) Icon() string {
	x, y := b.IconX(), b.IconY()
	switch b.State {
	case "dead", "uncertain":
		return fmt.Sprintf("M%d %dl6 11h-12z", x, y-6)
	case "claimed", "dispatched", "mapped":
		return fmt.Sprintf("M%d %dh10v10h-10z", x-5, y-5)
	}
	return fmt.Sprintf("M%d %da5 5 0 1 0 10 0a5 5 0 1 0 -10 0", x-5, y)
}

// Took is how long the node takes, for people.
func (b box) Took() string {
	if b.NodeState.Took == 0 {
		return ""
	}
	text := spanText(b.NodeState.Took)
	if b.Expected {
		text = "about " + text
	}
	return text
}

// arrow leads from a node to one that runs after it.
type arrow struct {
	Path     string
	Critical bool
}

// drawFlow places the nodes. They come behind those that they run after.
func drawFlow(nodes []flow.NodeState) graph {
	layers, layer := layersOf(nodes)
	boxes := make(map[string]*box, len(nodes))
	highest := 0
	for _, names := range layers {
		highest = max(highest, len(names))
	}
	g := graph{Width: 2*margin + max(len(layers)*(boxWidth+gapX)-gapX, 0), Height: 2*margin + max(highest*(boxHeight+gapY)-gapY, 0)}
	byName := make(map[string]flow.NodeState, len(nodes))
	for _, n := range nodes {
		byName[n.Name] = n
	}
	for i, names := range layers {
		sortLayer(names, byName, boxes)
		top := (g.Height - len(names)*(boxHeight+gapY) + gapY) / 2
		for k, name := range names {
			boxes[name] = &box{byName[name], margin + i*(boxWidth+gapX), top + k*(boxHeight+gapY)}
		}
	}
	for _, n := range nodes {
		to := boxes[n.Name]
		g.Boxes = append(g.Boxes, *to)
		for _, name := range n.After {
			from := boxes[name]
			if from == nil {
				continue
			}
			x1, y1, x2, y2 := from.X+boxWidth, from.Y+boxHeight/2, to.X, to.Y+boxHeight/2
			bend := gapX / 2
			g.Arrows = append(g.Arrows, arrow{
				Path:     fmt.Sprintf("M%d %dC%d %d %d %d %d %d", x1, y1, x1+bend, y1, x2-bend, y2, x2, y2),
				Critical: from.Critical && to.Critical && layer[name] == layer[n.Name]-1,
			})
		}
	}
	return g
}

// layersOf puts each node into the layer after the last of those that it runs after.
func layersOf(nodes []flow.NodeState) (layers [][]string, layer map[string]int) {
	layer = make(map[string]int, len(nodes))
	for _, n := range nodes {
		at := 0
		for _, name := range n.After {
			if before, placed := layer[name]; placed {
				at = max(at, before+1)
			}
		}
		layer[n.Name] = at
		for len(layers) <= at {
			layers = append(layers, nil)
		}
		layers[at] = append(layers[at], n.Name)
	}
	return layers, layer
}

// sortLayer orders nodes by the middle of those that they run after, so that few arrows cross.
func sortLayer(names []string, nodes map[string]flow.NodeState, boxes map[string]*box) {
	middle := func(name string) float64 {
		sum, n := 0.0, 0
		for _, before := range nodes[name].After {
			if b := boxes[before]; b != nil {
				sum, n = sum+float64(b.Y), n+1
			}
		}
		return sum / float64(max(n, 1))
	}
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(middle(a), middle(b)) })
}
