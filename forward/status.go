package forward

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/engine"
	"github.com/sluice-queue/sluice/presence"
)

// Status counts the jobs of a queue that still have to be forwarded.
type Status struct {
	Queue string `json:"queue"`
	// Waiting jobs were not sent yet. OnTheWay jobs were sent without an answer so far. Each is at most
	// [sluice.DepthLimit].
	Waiting  int `json:"waiting"`
	OnTheWay int `json:"on_the_way"`
	// Since is when the first of them began to wait; zero: none waits, or none is due yet.
	Since time.Time `json:"since,omitzero"`
	// Centres are the centres to which jobs are being sent.
	Centres []string `json:"centres,omitempty"`
	// Dead jobs were refused by the centre. Uncertain jobs may have arrived. Both wait for a person.
	Dead      int `json:"dead"`
	Uncertain int `json:"uncertain"`
	// Forwarders are the ids of processes that forward the queue, by their last heartbeat.
	Forwarders []string `json:"forwarders,omitempty"`
}

// StatusOf counts the jobs to forward in queues of a local store. The centre need not be reachable.
func StatusOf(ctx context.Context, local sluice.Store, queues []string) ([]Status, error) {
	local = sluice.GivenStore(local)
	holders, err := presence.Given(local).Holders(ctx)
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
			if h.Role == presence.RoleForwarder && slices.Contains(h.Queues, queue) {
				one.Forwarders = append(one.Forwarders, h.ID)
			}
		}
		all = append(all, one)
	}
	return all, nil
}

func statusOf(ctx context.Context, local sluice.Store, queue string) (Status, error) {
	depth, err := local.Depth(ctx, queue, sluice.DepthLimit)
	if err != nil {
		return Status{}, err
	}
	out := Status{
		Queue: queue, Waiting: min(depth.Ready+depth.Scheduled+depth.Blocked, sluice.DepthLimit), Since: depth.OldestDue,
		Dead: depth.Dead, Uncertain: depth.Uncertain,
	}
	for after := (sluice.ID{}); ; {
		away, err := engine.Given(local).Dispatches(ctx, engine.DispatchFilter{Queue: queue, After: after})
		if err != nil {
			return Status{}, err
		}
		for _, c := range away {
			out.count(c)
		}
		if len(away) < engine.DispatchLimit || out.OnTheWay >= sluice.DepthLimit {
			return out, nil
		}
		after = away[len(away)-1].ID
	}
}

// count adds a job with a recorded run, if the job is being sent to a centre.
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
