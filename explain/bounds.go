package explain

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/access"
	"github.com/sluice-queue/sluice/presence"
)

// outside stands for a job that the reader of an explanation must not know.
const outside = "a job outside of your bounds"

// sight is what the reader of an explanation may know. The zero bounds are everything.
type sight struct {
	store  sluice.Store
	bounds access.Bounds
}

// ofAll reports whether the reader knows every job.
func (s sight) ofAll() bool { return s.bounds.None() }

// ofQueue reports whether the reader knows every job of the explained job's queue.
func (s sight) ofQueue() bool { return len(s.bounds.Tenants) == 0 }

// of reports whether the reader knows a job.
func (s sight) of(j sluice.Job) bool { return s.bounds.Job(j.Queue, j.Tenant) }

// known keeps the jobs that the reader knows. It reads them only for a reader with bounds.
func (s sight) known(ctx context.Context, ids []sluice.ID) ([]sluice.ID, error) {
	if s.ofAll() {
		return ids, nil
	}
	var kept []sluice.ID
	for _, id := range ids {
		job, err := s.store.Job(ctx, id)
		switch {
		case err == nil && s.of(job):
			kept = append(kept, id)
		case err != nil && !errors.Is(err, sluice.ErrNotFound):
			return nil, err
		}
	}
	return kept, nil
}

// ownQueues leaves out of processes the queues that the reader must not know.
func (s sight) ownQueues(holders []presence.Holder) []presence.Holder {
	if len(s.bounds.Queues) == 0 {
		return holders
	}
	out := slices.Clone(holders)
	for i := range out {
		out[i].Queues = slices.DeleteFunc(slices.Clone(out[i].Queues), func(queue string) bool { return !s.bounds.Queue(queue) })
	}
	return out
}

// withhold removes from an explanation what the reader must not know, and is about other jobs: ids, figures of a whole queue, and
// what people said of a queue or a limit.
func (s sight) withhold(e Explanation, o Position) Explanation {
	for i := range e.Reasons {
		g := &e.Reasons[i]
		switch says := coarseOf(*g); {
		case s.ofAll():
		case g.Name == "limit" || says != "" && !s.ofQueue() && (g.Name != "order" || !o.ByTenant):
			g.Summary, g.Repair = says, ""
			if g.Name == "paused" && !g.Until.IsZero() {
				g.Summary += " until " + moment(g.Until)
			}
		case g.Name == "rate" && !s.ofQueue():
			g.Repair = "" // it depends on how many jobs are ahead
		}
	}
	if !s.ofQueue() && !o.ByTenant && o.Ahead > 0 { // the jobs ahead are of all tenants
		e.Start, e.Estimate = time.Time{}, ""
	}
	return e
}

// coarseOf says a reason about a whole queue, or a limit, without figures. Empty: the reason is about the job or its tenant alone.
func coarseOf(g Reason) string {
	says := map[string][2]string{
		"in_flight":   {"as many jobs of the queue are in flight as are allowed; one has to end first", "the queue lets another job be in flight"},
		"order":       {"due jobs come before it", "no due job comes before it"},
		"paused":      {"the queue is paused", "the queue is not paused"},
		"limit":       {"a limit that the queue shares lets no job start now", "the limit lets a job start"},
		"workers":     {"no worker takes jobs of the queue now", "workers serve the queue"},
		"slots":       {"the workers of the queue are busy; one has to become free", "workers serve the queue"},
		"dispatchers": {"no dispatcher takes jobs of the queue now", "dispatchers serve the queue"},
	}[g.Name]
	if g.Open {
		return says[1]
	}
	return says[0]
}
