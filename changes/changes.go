// Package changes changes the settings of a queue for a while, in windows of each day, and back.
//
// Begin with [For], which changes settings and reverts them later, and [Schedule], which applies settings during a
// window of each day. [Cancel] removes such a plan, [Plans] lists the plans of a queue, and [Undo] undoes the last
// change. Upkeep applies the plans with [Apply].
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

// maxRevertIn is the longest time until a revert, and maxPlans the most plans of a queue.
const (
	maxRevertIn = 365 * 24 * time.Hour
	maxPlans    = 50
)

// For changes settings like ChangeSettings of [sluice.Client], and makes upkeep revert the change after a while, by
// the store's clock. One transaction stores both. The while is at most 365 days.
//
// If somebody changes such a setting again before the revert, the setting stays, and the audit says so.
func For(ctx context.Context, client *sluice.Client, queue string, while time.Duration, act sluice.Act, change func(*sluice.Settings) error) (sluice.Queue, error) {
	if while <= 0 || while > maxRevertIn {
		return sluice.Queue{}, feature.Invalid("while", fmt.Sprintf("%s must be more than 0s and at most %s", while, sluice.FormatDuration(maxRevertIn)))
	}
	return edit(ctx, client, queue, act, func(q *sluice.Queue) error {
		before := q.Settings
		if err := q.Settings.Change(change); err != nil || q.Settings == before {
			return err
		}
		return addPlan(q, act, Plan{Swaps: swapsBetween(before, q.Settings), RevertAt: feature.Instant(q.Now.Add(while))})
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
	plan := Plan{Window: &window, Set: set}
	return edit(ctx, client, queue, act, func(q *sluice.Queue) error {
		settings, err := plan.overlay(q.Settings)
		if err != nil {
			return err
		}
		if err := client.CheckSettings(settings); err != nil {
			return err
		}
		return addPlan(q, act, plan)
	})
}

// Cancel removes a plan by its ID. If the plan is a pending revert, the change stays. If the plan is an open
// window, Cancel restores the settings. An unknown plan is a [sluice.ErrNotFound].
func Cancel(ctx context.Context, client *sluice.Client, queue string, plan int64, act sluice.Act) (sluice.Queue, error) {
	return edit(ctx, client, queue, act, func(q *sluice.Queue) error {
		next, err := planned(*q)
		if err != nil {
			return err
		}
		at := slices.IndexFunc(next.plans, func(p Plan) bool { return p.ID == plan })
		if at < 0 {
			return fmt.Errorf("plan %d of queue %q: %w; `sluice settings plans %s` lists them", plan, queue, sluice.ErrNotFound, queue)
		}
		if next.plans[at].Window != nil {
			next.putBack(at)
		}
		q.Settings = next.Settings
		return setPlans(q, slices.Delete(next.plans, at, at+1))
	})
}

// Plans returns the plans of a queue, in the order in which they were made or opened. If plain SQL stored another
// text in their place, the error is an [Error].
func Plans(queue sluice.Queue) ([]Plan, error) {
	if len(queue.Plans) == 0 {
		return nil, nil
	}
	var plans []Plan
	if err := json.Unmarshal(queue.Plans, &plans); err != nil {
		return nil, &Error{Queue: queue.Name, Err: feature.Invalid("plans", "they are not what `sluice settings schedule` stores: "+err.Error())}
	}
	return plans, nil
}

// edit changes a queue's settings and plans.
func edit(ctx context.Context, client *sluice.Client, queue string, act sluice.Act, change func(*sluice.Queue) error) (sluice.Queue, error) {
	if err := sluice.CheckGiven("client", client); err != nil {
		return sluice.Queue{}, err
	}
	return client.ChangeQueue(ctx, queue, act, change)
}

// addPlan adds a plan to a queue. The plan's ID is the version of the queue that stores it.
func addPlan(q *sluice.Queue, act sluice.Act, plan Plan) error {
	plans, err := Plans(*q)
	if err != nil {
		return err
	}
	if len(plans) >= maxPlans {
		return feature.Invalid("plans", fmt.Sprintf("queue %q has %d already; `sluice settings unplan` removes one", q.Name, maxPlans))
	}
	plan.ID, plan.MadeAt, plan.MadeBy, plan.Reason = q.Version+1, q.Now, act.By, act.Reason
	return setPlans(q, append(plans, plan))
}

// setPlans puts plans into a queue. The text stays if the plans are equal.
func setPlans(q *sluice.Queue, plans []Plan) error {
	if stored, err := Plans(*q); err == nil && reflect.DeepEqual(stored, plans) {
		return nil
	}
	if len(plans) == 0 {
		q.Plans = nil
		return nil
	}
	text, err := json.Marshal(plans)
	if err != nil {
		return fmt.Errorf("plans of queue %q: %w", q.Name, err)
	}
	q.Plans = text
	return nil
}
