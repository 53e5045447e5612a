// Package group works out the settings that queues share with their group, such as `mail.*`, the group of `mail.welcome`.
//
// Begin with [Begin], the settings of a new queue, and [Follow], the queues that a changed group changes.
//
// Read next: SaveQueue of a store.
package group

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/notify"
)

// Prefix returns what the names of a group's queues begin with.
func Prefix(group string) string { return strings.TrimSuffix(group, "*") }

// Begin returns the settings of a new queue or group: those of the nearest stored group, or the defaults. Internal queues
// deliver notifications. The list stored may have other queues, too.
func Begin(name string, stored []sluice.Queue) sluice.Settings {
	if sluice.IsInternalQueue(name) {
		return notify.Settings()
	}
	above, is := Nearest(name, stored)
	if !is {
		return sluice.DefaultSettings()
	}
	above.Settings.Paused, above.Settings.PausedUntil = false, time.Time{}
	return above.Settings
}

// Act returns the act by which the queues of a group follow it.
func Act(group string, act sluice.Act) sluice.Act {
	act.Reason = strings.TrimSuffix("follows "+group+": "+act.Reason, ": ")
	return act
}

// Before returns the settings that a group's queues have from it before it is stored: those of the stored group, or those
// with which they began. The list stored has the group and those above it.
func Before(group string, stored []sluice.Queue) sluice.Settings {
	for _, q := range stored {
		if q.Name == group {
			return q.Settings
		}
	}
	return Begin(group, stored)
}

// GroupsOf returns the names of all groups to which one of the queues may belong.
func GroupsOf(queues ...string) (groups []string) {
	for _, queue := range queues {
		groups = append(groups, sluice.GroupsOf(queue)...)
	}
	slices.Sort(groups)
	return slices.Compact(groups)
}

// Nearest returns the nearest stored group of a queue or group. False: it has none.
func Nearest(name string, stored []sluice.Queue) (sluice.Queue, bool) {
	for _, group := range sluice.GroupsOf(name) {
		for _, q := range stored {
			if q.Name == group {
				return q, true
			}
		}
	}
	return sluice.Queue{}, false
}

// alone are the settings that a queue does not share with its group. A pause has a cause of its own.
var alone = []string{"paused", "paused_until"}

// Follow returns the queues and groups that must be stored when a group changes, with their new settings. The
// list stored has all whose names begin with the group's [Prefix], with their settings before, and may have others.
//
// A queue follows its nearest group in each setting in which the queue had the group's value. If such settings do not
// fit the queue's own, the error is a [sluice.ErrInvalid], which names the queue.
func Follow(group string, before, after sluice.Settings, stored []sluice.Queue) ([]sluice.Queue, error) {
	groups := append(slices.DeleteFunc(slices.Clone(stored), func(q sluice.Queue) bool { return !sluice.IsGroup(q.Name) }), sluice.Queue{Name: group})
	var changed []sluice.Queue
	for _, q := range stored {
		if above, _ := Nearest(q.Name, groups); above.Name != group {
			continue
		}
		next := q
		if !follow(&next.Settings, before, after) {
			continue
		}
		if err := next.Settings.Check(); err != nil {
			return nil, fmt.Errorf("queue %s has settings of its own that do not fit those of %s: %w", q.Name, group, err)
		}
		changed = append(changed, next)
		if !sluice.IsGroup(q.Name) {
			continue
		}
		below, err := Follow(q.Name, q.Settings, next.Settings, stored)
		if err != nil {
			return nil, err
		}
		changed = append(changed, below...)
	}
	slices.SortFunc(changed, func(a, b sluice.Queue) int { return strings.Compare(a.Name, b.Name) })
	return changed, nil
}

// follow changes each setting that has the value from before, and reports whether one has changed.
func follow(settings *sluice.Settings, before, after sluice.Settings) (changed bool) {
	for _, s := range sluice.AllSettings() {
		old, now := s.Format(before), s.Format(after)
		if old == now || s.Format(*settings) != old || slices.Contains(alone, s.Name) {
			continue
		}
		if err := s.Parse(settings, now); err == nil { // the group has this value, so it can be read
			changed = true
		}
	}
	return changed
}

// Exceptions returns the names of the settings in which a queue differs from its group.
func Exceptions(queue, group sluice.Settings) (names []string) {
	for _, s := range sluice.AllSettings() {
		if s.Format(queue) != s.Format(group) && !slices.Contains(alone, s.Name) {
			names = append(names, s.Name)
		}
	}
	return names
}
