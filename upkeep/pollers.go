package upkeep

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/sluice-queue/sluice"
)

// pollersInterval is how often an engine is asked whether workers wait for the runs of a queue, while some are under way.
const pollersInterval = 30 * time.Second

// lookForPollers notes whether runs of a queue go nowhere, because no worker waits for them. An engine that does not say
// changes nothing.
func (f *follower) lookForPollers(ctx context.Context, q sluice.Queue) {
	if time.Since(f.polledAt) < pollersInterval {
		return
	}
	f.polledAt = time.Now()
	engine, target, err := f.engineAt(q, sluice.EngineOf(q.Settings), 0)
	if err != nil {
		f.poll("")
		return
	}
	report, err := engine.Check(ctx, target)
	switch {
	case err != nil:
	case report.Pollers == 0:
		f.poll(fmt.Sprintf("%s %q%s: runs that were started go nowhere", sluice.NobodyPolls, cmp.Or(target.TaskQueue, q.Name), within(target.Namespace)))
	default:
		f.poll("")
	}
}

func within(namespace string) string {
	if namespace == "" {
		return ""
	}
	return fmt.Sprintf(" in namespace %q", namespace)
}

// poll notes why runs go nowhere; empty: they do not.
func (f *follower) poll(unpolled string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.unpolled = unpolled
}

// troubles is what holders are told of: what keeps upkeep from its work, and where runs go nowhere.
func (u *Upkeep) troubles() string {
	var all []string
	u.runs.mu.Lock()
	for queue, f := range u.runs.queues {
		f.mu.Lock()
		if f.unpolled != "" {
			all = append(all, sluice.TroubleOf(queue, f.unpolled))
		}
		f.mu.Unlock()
	}
	u.runs.mu.Unlock()
	slices.Sort(all)
	if own := u.trouble(); own != "" {
		all = append(all, own)
	}
	return sluice.JoinTroubles(all)
}
