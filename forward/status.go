package forward

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/sluice-queue/sluice"
)

// Status is what waits in a queue to be forwarded.
type Status struct {
	Queue string `json:"queue"`
	// Waiting jobs were not sent yet, OnTheWay ones were, and no answer came yet. Each figure is at most DepthLimit.
	Waiting  int `json:"waiting"`
	OnTheWay int `json:"on_the_way"`
	// Since is since when the first of them waits; zero: none does, or only what is not due yet.
	Since time.Time `json:"since,omitzero"`
	// Centres are those to which jobs are on their way.
	Centres []string `json:"centres,omitempty"`
	// Dead jobs were refused, Uncertain ones may have arrived: both wait for a person.
	Dead      int `json:"dead"`
	Uncertain int `json:"uncertain"`
	// Forwarders are the processes that forward the queue, as they last told the store.
	Forwarders []string `json:"forwarders,omitempty"`
}

// StatusOf tells what waits in queues of a local store, of which the centre need not be there.
func StatusOf(ctx context.Context, local sluice.Store, queues []string) ([]Status, error) {
	local = sluice.GivenStore(local)
	holders, err := local.Holders(ctx)
	if err != nil {
		return nil, err
	}
	var all []Status
	for _, queue := range queues {
		one, err := statusOf(ctx, local, queue)
		if err != nil {
			return nil, err
		}
		for _, h := range holders {
			if h.Role == sluice.RoleForwarder && slices.Contains(h.Queues, queue) {
				one.Forwarders = append(one.Forwarders, h.ID)
			}
		}
		all = append(all, one)
	}
	return all, nil
}

func statusOf(ctx context.Context, local sluice.Store, queue string) (Status, error) {
	depth, err := local.Depth(ctx, queue)
	if err != nil {
		return Status{}, err
	}
	out := Status{
		Queue: queue, Waiting: min(depth.Ready+depth.Scheduled+depth.Blocked, sluice.DepthLimit), Since: depth.OldestDue,
		Dead: depth.Dead, Uncertain: depth.Uncertain,
	}
	for after := (sluice.ID{}); ; {
		away, err := local.Dispatches(ctx, sluice.DispatchFilter{Queue: queue, After: after})
		if err != nil {
			return Status{}, err
		}
		for _, c := range away {
			out.count(c)
		}
		if len(away) < sluice.DispatchLimit || out.OnTheWay >= sluice.DepthLimit {
			return out, nil
		}
		after = away[len(away)-1].ID
	}
}

// count takes in a job of which a run is intended, if it is on its way to a centre.
func (s *Status) count(c *sluice.Claim) {
	centre, ours := strings.CutPrefix(c.Engine, Engine+"/")
	if !ours {
		return
	}
	s.OnTheWay++
	if !slices.Contains(s.Centres, centre) {
		s.Centres = append(s.Centres, centre)
	}
	if s.Since.IsZero() || c.CreatedAt.Before(s.Since) {
		s.Since = c.CreatedAt
	}
}
