package upkeep

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/sluice-queue/sluice/engine"
	"github.com/sluice-queue/sluice/internal/event"
	"github.com/sluice-queue/sluice/presence"
)

const (
	// leadIntervals is how many intervals a lead lasts without renewal: one look may be late.
	leadIntervals = 10
	// leastLease is the shortest lease of a lead.
	leastLease = 2 * time.Second
	// unfollowedInterval is how often the leading upkeep checks that some process follows the runs at every
	// engine.
	unfollowedInterval = time.Minute
)

// leads are the tasks that an upkeep leads.
type leads map[string]bool

// elect renews the leads of this upkeep, and takes free ones. An upkeep whose round takes longer than the lease
// loses the lead to another; the overlap of both is harmless.
func (u *Upkeep) elect(ctx context.Context, before leads) leads {
	names, err := presence.Given(u.store).Elect(ctx, u.holder.ID, u.tasks, max(leadIntervals*u.options.Interval, leastLease))
	if err != nil {
		u.failed(ctx, "elect", err)
	}
	now := make(leads, len(names))
	for _, task := range names {
		now[task] = true
	}
	for _, task := range u.tasks {
		switch {
		case now[task] && !before[task]:
			u.log.Emit(event.UpkeepLeads, "", "task", task)
		case before[task] && !now[task] && ctx.Err() == nil:
			u.log.Emit(event.UpkeepLost, "", "task", task)
		}
	}
	if now[presence.TaskUpkeep] && !before[presence.TaskUpkeep] {
		u.unfollowedAt = time.Now().Add(unfollowedInterval) // other processes may have only just begun
	}
	u.standing.lead(names)
	return now
}

// resign gives up all leads at once, so that another upkeep takes them.
func (u *Upkeep) resign(ctx context.Context, before leads) leads {
	u.firing.rest()
	u.advanceBeside(ctx, false)
	if len(before) == 0 {
		return nil
	}
	// A lease that ends at once gives the tasks up, without the history that Deregister would forget.
	if _, err := presence.Given(u.store).Elect(ctx, u.holder.ID, slices.Sorted(maps.Keys(before)), time.Microsecond); err != nil {
		u.failed(ctx, "resign", err)
		return before
	}
	u.runs.calm()
	u.standing.unfollow(nil)
	u.standing.lead(nil)
	return nil
}

// engines returns the engines whose runs this upkeep follows.
func (u *Upkeep) engines(led leads) map[string]engine.Engine {
	all := make(map[string]engine.Engine)
	for name, engine := range u.options.Engines {
		if led[presence.FollowTask(name)] {
			all[name] = engine
		}
	}
	return all
}

// tasksOf lists the tasks that an upkeep with these engines can do.
func tasksOf(engines map[string]engine.Engine) []string {
	tasks := []string{presence.TaskUpkeep}
	for name := range engines {
		tasks = append(tasks, presence.FollowTask(name))
	}
	slices.Sort(tasks)
	return tasks
}

// lookUnfollowed looks for engines with runs that no process follows: their jobs would stay dispatched.
func (u *Upkeep) lookUnfollowed(ctx context.Context, led leads) {
	if !led[presence.TaskUpkeep] {
		u.standing.unfollow(nil)
		return
	}
	if time.Now().Before(u.unfollowedAt) {
		return
	}
	u.unfollowedAt = time.Now().Add(unfollowedInterval)
	u.lookProtocols(ctx)
	tasks, err := presence.Tasks(ctx, u.store)
	if err != nil {
		u.failed(ctx, "look who leads", err)
		return
	}
	var all []presence.Condition
	for _, task := range tasks {
		if c, unfollowed := task.Unfollowed(); unfollowed {
			c.Since = time.Now()
			all = append(all, c)
		}
	}
	if u.standing.unfollow(all) && len(all) > 0 {
		u.failed(ctx, "follow runs", errors.New(presence.Summary(all)))
	}
}

// lookProtocols logs the processes whose protocol differs from that of the others, once for each set of them.
func (u *Upkeep) lookProtocols(ctx context.Context) {
	holders, err := presence.Given(u.store).Holders(ctx)
	if err != nil {
		u.failed(ctx, "look at protocols", err)
		return
	}
	now, err := u.store.Now(ctx)
	if err != nil {
		u.failed(ctx, "look at protocols", err)
		return
	}
	differ := presence.Mismatch(holders, now)
	ids := slices.Sorted(maps.Keys(differ))
	all := strings.Join(ids, " ")
	if all != "" && all != u.differ {
		u.log.Emit(event.ProtocolsDiffer, "", "reason", fmt.Sprintf("%d processes, such as %s: %s", len(ids), ids[0], differ[ids[0]].Text))
	}
	u.differ = all
}
