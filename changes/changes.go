// Package changes changes the settings of a queue for a while, in windows of each day, and back.
//
// Begin with [For], which changes settings and reverts them later, and [Schedule], which applies settings during a
// window of each day. [Cancel] removes such a scheduled change, [List] lists the scheduled changes of a queue, and [Undo] undoes the last
// change. Upkeep applies the scheduled changes with [Apply].
//
// A change that stays needs only ChangeSettings of [sluice.Client].
//
// Read next: docs/settings.md.
package changes

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/feature"
)

// maxRevertIn is the longest time until a revert, and maxScheduled the most scheduled changes of a queue.
const (
	maxRevertIn  = 365 * 24 * time.Hour
	maxScheduled = 50
)

// For changes settings like ChangeSettings of [sluice.Client], and makes upkeep revert the change after a while, by
// the store's clock. One transaction stores both. The while is at most 365 days.
//
// If somebody changes such a setting again before the revert, the setting stays, and the audit says so.
func For(ctx context.Context, client *sluice.Client, queue string, while time.Duration, act sluice.Act, change func(*sluice.Settings) error) (sluice.Queue, error) {
	if while <= 0 || while > maxRevertIn {
		return sluice.Queue{}, feature.Invalid("for", fmt.Sprintf("%s must be more than 0s and at most %s", while, sluice.FormatDuration(maxRevertIn)))
	}
	return edit(ctx, client, queue, act, func(q *sluice.Queue) error {
		before := q.Settings
		if err := q.Settings.Change(change); err != nil || q.Settings == before {
			return err
		}
		return addChange(q, act, Change{Swaps: swapsBetween(before, q.Settings), RevertAt: feature.Instant(q.Now.Add(while))})
	})
}

// Schedule applies settings during a window of each day. Set has their names and values, as people write them.
//
// Upkeep sets them when the window opens and restores the former ones when it closes, each as an audited change.
// Upkeep checks every second; if it starts late, it corrects the settings at once. A setting that somebody changes
// while the window is open stays when the window closes.
func Schedule(ctx context.Context, client *sluice.Client, queue string, window Window, set map[string]string, act sluice.Act) (sluice.Queue, error) {
	if err := window.Check(); err != nil {
		return sluice.Queue{}, err
	}
	if len(set) == 0 {
		return sluice.Queue{}, feature.Invalid("set", "name at least one setting")
	}
	change := Change{Window: &window, Set: set}
	return edit(ctx, client, queue, act, func(q *sluice.Queue) error {
		settings, err := change.overlay(q.Settings)
		if err != nil {
			return err
		}
		if err := client.CheckSettings(settings); err != nil {
			return err
		}
		return addChange(q, act, change)
	})
}

// Cancel removes a scheduled change by its ID. If it is a pending revert, the settings stay as they are.
// If it is an open window, Cancel restores the settings. An unknown change is a [sluice.ErrNotFound].
func Cancel(ctx context.Context, client *sluice.Client, queue string, change int64, act sluice.Act) (sluice.Queue, error) {
	return edit(ctx, client, queue, act, func(q *sluice.Queue) error {
		next, err := read(*q)
		if err != nil {
			return err
		}
		at := slices.IndexFunc(next.scheduled, func(p Change) bool { return p.ID == change })
		if at < 0 {
			return fmt.Errorf("scheduled change %d of queue %q: %w; `sluice settings scheduled %s` lists them", change, queue, sluice.ErrNotFound, queue)
		}
		if next.scheduled[at].Window != nil {
			next.putBack(at)
		}
		q.Settings = next.Settings
		return setScheduled(q, slices.Delete(next.scheduled, at, at+1))
	})
}

// List returns the scheduled changes of a queue, in the order in which they were made or opened. If plain SQL stored another
// text in their place, the error is an [Error].
func List(queue sluice.Queue) ([]Change, error) {
	if len(queue.Scheduled) == 0 {
		return nil, nil
	}
	var scheduled []Change
	if err := json.Unmarshal(queue.Scheduled, &scheduled); err != nil {
		return nil, &Error{Queue: queue.Name, Err: feature.Invalid("scheduled", "they are not what `sluice settings schedule` stores: "+err.Error())}
	}
	return scheduled, nil
}

// edit changes a queue's settings and scheduled changes.
func edit(ctx context.Context, client *sluice.Client, queue string, act sluice.Act, change func(*sluice.Queue) error) (sluice.Queue, error) {
	if err := sluice.CheckGiven("client", client); err != nil {
		return sluice.Queue{}, err
	}
	return client.ChangeQueue(ctx, queue, act, change)
}

// addChange adds a scheduled change to a queue. The change's ID is the version of the queue that stores it.
func addChange(q *sluice.Queue, act sluice.Act, change Change) error {
	scheduled, err := List(*q)
	if err != nil {
		return err
	}
	if len(scheduled) >= maxScheduled {
		return feature.Invalid("scheduled", fmt.Sprintf("queue %q has %d already; `sluice settings unschedule` removes one", q.Name, maxScheduled))
	}
	change.ID, change.MadeAt, change.MadeBy, change.Reason = q.Version+1, q.Now, act.By, act.Reason
	return setScheduled(q, append(scheduled, change))
}

// setScheduled puts scheduled changes into a queue. The text stays if the scheduled changes are equal.
func setScheduled(q *sluice.Queue, scheduled []Change) error {
	if stored, err := List(*q); err == nil && reflect.DeepEqual(stored, scheduled) {
		return nil
	}
	if len(scheduled) == 0 {
		q.Scheduled = nil
		return nil
	}
	text, err := json.Marshal(scheduled)
	if err != nil {
		return fmt.Errorf("scheduled changes of queue %q: %w", q.Name, err)
	}
	q.Scheduled = text
	return nil
}
