package console

import (
	"context"
	"net/url"

	"github.com/sluice-queue/sluice"
)

func overviewPages() []page {
	return []page{{name: "overview", path: "/{$}", title: "Overview", letter: "o", load: loadOverview}}
}

// overview is the view of the first page.
type overview struct {
	Queues []queueRow
	Total  sluice.Depth
}

// queueRow is a queue in a table.
type queueRow struct {
	Name     string            `json:"name"`
	Settings map[string]string `json:"settings"`
	Depth    sluice.Depth      `json:"depth"`
}

// Paused reports whether nothing is claimed from the queue.
func (q queueRow) Paused() bool { return q.Settings["paused"] == "true" }

func loadOverview(ctx context.Context, v *visit) (any, error) {
	var read struct {
		Queues []queueRow `json:"queues"`
	}
	v.cli("sluice queues")
	if err := v.get(ctx, "/queues", url.Values{"limit": {"100"}}, &read); err != nil {
		return nil, err
	}
	view := overview{Queues: read.Queues}
	for _, q := range read.Queues {
		view.Total.Ready += q.Depth.Ready
		view.Total.Scheduled += q.Depth.Scheduled
		view.Total.Dead += q.Depth.Dead
	}
	return view, nil
}
