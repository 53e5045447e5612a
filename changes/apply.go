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

// Apply applies the scheduled changes of a queue that are due by its Now, each as one audited change. It returns the changed
// queue, and how many scheduled it applied. Upkeep calls it every second.
//
// If somebody else changed the queue after the caller read it, the error is a [sluice.ErrConflict]. Each change that
// Apply cannot apply is an [Error] within the error; Apply applies the others.
func Apply(ctx context.Context, store sluice.Store, queue sluice.Queue, by string) (applied sluice.Queue, done int, err error) {
	if err := sluice.CheckGiven("store", store); err != nil {
		return queue, 0, err
	}
	for range 2 * maxScheduled { // each change is applied at most once; the bound stops a mistake from going on for ever
		next, err := read(queue)
		if err != nil {
			return queue, done, err
		}
		why, err := next.apply()
		if why == "" {
			return queue, done, err
		}
		if err := setScheduled(&next.Queue, next.scheduled); err != nil {
			return queue, done, err
		}
		if queue, err = store.SaveQueue(ctx, next.Queue, sluice.Act{By: by, Reason: why, ID: sluice.NewID()}); err != nil {
			return queue, done, err
		}
		done++
	}
	return queue, done, nil
}

// scheduledQueue is a queue with its parsed scheduled.
type scheduledQueue struct {
	sluice.Queue
	scheduled []Change
}

// read parses the scheduled changes of a queue.
func read(queue sluice.Queue) (scheduledQueue, error) {
	scheduled, err := List(queue)
	return scheduledQueue{queue, scheduled}, err
}

// apply applies one due change and returns why. An empty why: no change is due. Each change thus has its own audit entry.
// A change that apply cannot apply does not stop the others.
func (q *scheduledQueue) apply() (why string, err error) {
	for i, p := range q.scheduled {
		reason := cmp.Or(p.Reason, "no reason given")
		if p.Window == nil {
			if !p.RevertAt.After(q.Now) {
				why = join("reverted as "+p.MadeBy+" said: "+reason, q.putBack(i))
				q.scheduled = slices.Delete(q.scheduled, i, i+1)
				return why, nil
			}
			continue
		}
		open, _, bad := p.Window.At(q.Now)
		switch {
		case bad != nil:
			err = errors.Join(err, &Error{Queue: q.Name, Change: p.ID, Err: bad})
		case open && !p.Open:
			return join(fmt.Sprintf("it is %s, as %s said: %s", p.Window, p.MadeBy, reason), q.open(i)), nil
		case !open && p.Open:
			why = join(fmt.Sprintf("the time %s is over, for which %s changed settings", p.Window, p.MadeBy), q.putBack(i))
			q.scheduled[i].Open, q.scheduled[i].Swaps = false, nil
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
// The change goes to the end of the list, because the last change is reverted first.
func (q *scheduledQueue) open(i int) (but []string) {
	p := q.scheduled[i]
	p.Open, p.Swaps = true, nil
	settings, err := p.overlay(q.Settings)
	if err != nil {
		but = append(but, "nothing is set: "+err.Error())
	} else {
		p.Swaps = swapsBetween(q.Settings, settings, slices.Collect(maps.Keys(p.Set))...)
		q.Settings = settings
	}
	q.scheduled = append(slices.Delete(q.scheduled, i, i+1), p)
	return but
}

// putBack reverts the changes of a scheduled change, and returns the settings that stay nevertheless. If a later change changed a
// setting further, that change will restore the value from before this change. A setting that somebody else has changed
// since stays.
func (q *scheduledQueue) putBack(i int) (but []string) {
	settings := q.Settings
	for _, name := range slices.Sorted(maps.Keys(q.scheduled[i].Swaps)) {
		swap := q.scheduled[i].Swaps[name]
		if later := q.laterChange(i, name, swap.After); later != nil {
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

// laterChange finds the change that changed a setting further, from the value of change i.
func (q *scheduledQueue) laterChange(i int, name, value string) *Change {
	for k := i + 1; k < len(q.scheduled); k++ {
		if swap, ok := q.scheduled[k].Swaps[name]; ok && swap.Before == value {
			return &q.scheduled[k]
		}
	}
	return nil
}
