package upkeep

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/engine"
	"github.com/sluice-queue/sluice/presence"
)

// pollersInterval is how often an engine is asked whether workers poll for the runs of a queue, while runs are
// under way.
const pollersInterval = 30 * time.Second

// lookForPollers notes whether no worker polls for the runs of a queue. An engine that does not report pollers
// changes nothing.
func (f *follower) lookForPollers(ctx context.Context, q sluice.Queue) {
	if time.Since(f.polledAt) < pollersInterval {
		return
	}
	f.polledAt = time.Now()
	engine, target, err := f.engineAt(q, engine.Location(q.Settings), 0)
	if err != nil {
		f.unpolled.clear()
		return
	}
	report, err := engine.Check(ctx, target)
	switch {
	case err != nil:
	case report.Pollers == 0:
		f.unpolled.set(presence.NewCondition(presence.ConditionNoPollers, q.Name, q.Settings.Engine, time.Now(),
			fmt.Sprintf("no worker polls task queue %q%s: runs that were started go nowhere", cmp.Or(target.TaskQueue, q.Name), within(target.Namespace))))
	default:
		f.unpolled.clear()
	}
}

func within(namespace string) string {
	if namespace == "" {
		return ""
	}
	return fmt.Sprintf(" in namespace %q", namespace)
}
