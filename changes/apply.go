package changes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/sluice-queue/sluice"
)

// Apply applies the plans of a queue that are due by its Now, each as one audited change. It returns the changed
// queue, and how many plans it applied. Upkeep calls it every second.
//
// If somebody else changed the queue after the caller read it, the error is a [sluice.ErrConflict]. Each plan that
// Apply cannot apply is an [Error] within the error; Apply applies the others.
func Apply(ctx context.Context, store sluice.Store, queue sluice.Queue, by string) (applied sluice.Queue, done int, err error) {
	if err := sluice.CheckGiven("store", store); err != nil {
		return queue, 0, err
	}
	for range 2 * maxPlans { // each plan is applied at most once; the bound stops a mistake from going on for ever
		next, err := planned(queue)
		if err != nil {
			return queue, done, err
		}
		why, err := next.apply()
		if why == "" {
			return queue, done, err
		}
		if err := setPlans(&next.Queue, next.plans); err != nil {
			return queue, done, err
		}
		if queue, err = store.SaveQueue(ctx, next.Queue, sluice.Act{By: by, Reason: why, ID: sluice.NewID()}); err != nil {
			return queue, done, err
		}
		done++
	}
	return queue, done, nil
}

// plannedQueue is a queue with its parsed plans.
type plannedQueue struct {
	sluice.Queue
	plans []Plan
}

// planned parses the plans of a queue.
func planned(queue sluice.Queue) (plannedQueue, error) {
	plans, err := Plans(queue)
	return plannedQueue{queue, plans}, err
}

// apply applies one due plan and returns why. An empty why: no plan is due. Each plan thus has its own audit entry.
// A plan that apply cannot apply does not stop the others.
func (q *plannedQueue) apply() (why string, err error) {
	for i, p := range q.plans {
		reason := cmp.Or(p.Reason, "no reason given")
		if p.Window == nil {
			if !p.RevertAt.After(q.Now) {
				why = join("reverted as "+p.MadeBy+" said: "+reason, q.putBack(i))
				q.plans = slices.Delete(q.plans, i, i+1)
				return why, nil
			}
			continue
		}
		open, _, bad := p.Window.At(q.Now)
		switch {
		case bad != nil:
			err = errors.Join(err, &Error{Queue: q.Name, Plan: p.ID, Err: bad})
		case open && !p.Open:
			return join(fmt.Sprintf("it is %s, as %s said: %s", p.Window, p.MadeBy, reason), q.open(i)), nil
		case !open && p.Open:
			why = join(fmt.Sprintf("the time %s is over, for which %s changed settings", p.Window, p.MadeBy), q.putBack(i))
			q.plans[i].Open, q.plans[i].Swaps = false, nil
			return why, nil
		}
	}
	return "", err
}

// join adds exceptions to a reason.
func join(why string, but []string) string {
	return strings.Join(append([]string{why}, but...), "; but ")
}

// open applies the settings of a window. If they would break a rule, it applies none until the window opens again.
// The plan goes to the end of the list, because the last change is reverted first.
func (q *plannedQueue) open(i int) (but []string) {
	p := q.plans[i]
	p.Open, p.Swaps = true, nil
	settings, err := p.overlay(q.Settings)
	if err != nil {
		but = append(but, "nothing is set: "+err.Error())
	} else {
		p.Swaps = swapsBetween(q.Settings, settings, slices.Collect(maps.Keys(p.Set))...)
		q.Settings = settings
	}
	q.plans = append(slices.Delete(q.plans, i, i+1), p)
	return but
}

// putBack reverts the changes of a plan, and returns the settings that stay nevertheless. If a later plan changed a
// setting further, that plan will restore the value from before this plan. A setting that somebody else has changed
// since stays.
func (q *plannedQueue) putBack(i int) (but []string) {
	settings := q.Settings
	for _, name := range slices.Sorted(maps.Keys(q.plans[i].Swaps)) {
		swap := q.plans[i].Swaps[name]
		if later := q.laterPlan(i, name, swap.After); later != nil {
			later.Swaps[name] = Swap{swap.Before, later.Swaps[name].After}
			continue
		}
		setting, err := sluice.SettingNamed(name)
		if err != nil || setting.Format(q.Settings) != swap.After {
			but = append(but, name+" was changed since, and stays")
			continue
		}
		if err := setting.Parse(&settings, swap.Before); err != nil {
			but = append(but, name+" stays: "+err.Error())
		}
	}
	if err := settings.Check(); err != nil {
		return append(but, "nothing is put back: "+err.Error())
	}
	q.Settings = settings
	return but
}

// laterPlan finds the plan that changed a setting further, from the value of plan i.
func (q *plannedQueue) laterPlan(i int, name, value string) *Plan {
	for k := i + 1; k < len(q.plans); k++ {
		if swap, ok := q.plans[k].Swaps[name]; ok && swap.Before == value {
			return &q.plans[k]
		}
	}
	return nil
}
