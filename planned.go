package sluice

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"
)

// maxRevertIn bounds how far ahead a change can be promised to be reverted, and maxPlans how many plans a
// queue may have.
const (
	maxRevertIn = 365 * day
	maxPlans    = 50
)

// ChangeSettingsFor is ChangeSettings for a while, after which upkeep puts back what was changed; the two are
// stored together, and the while is counted by the store's clock. What somebody has changed again by then
// stays; the audit tells so.
func (c *Client) ChangeSettingsFor(ctx context.Context, name string, while time.Duration, act Act, change func(*Settings) error) (Queue, error) {
	if while <= 0 || while > maxRevertIn {
		return Queue{}, invalid("while", fmt.Sprintf("%s is not longer than nothing and at most %s", while, FormatDuration(maxRevertIn)))
	}
	return c.changeQueue(ctx, name, act, func(q *Queue) error {
		before := q.Settings
		if err := q.Settings.Change(change); err != nil || q.Settings == before {
			return err
		}
		plan := Plan{Swaps: map[string]Swap{}, MadeBy: act.By, Reason: act.Reason, revertIn: while}
		for _, d := range allSettings {
			if old, now := d.Format(before), d.Format(q.Settings); old != now {
				plan.Swaps[d.Name] = Swap{old, now}
			}
		}
		return q.addPlan(plan)
	})
}

// ScheduleSettings lets settings, by their names and as people write them, count during a window of each day.
// Upkeep sets them when it opens and puts back what was there before when it closes, each as an audited
// change; it looks once a second. While no upkeep runs, neither happens; once it does, what is right then
// is set at once. What somebody changes while the window is open stays when it closes.
func (c *Client) ScheduleSettings(ctx context.Context, name string, window Window, set map[string]string, act Act) (Queue, error) {
	if err := window.Check(); err != nil {
		return Queue{}, err
	}
	if len(set) == 0 {
		return Queue{}, invalid("set", "no setting is named")
	}
	plan := Plan{Window: &window, Set: set, MadeBy: act.By, Reason: act.Reason}
	return c.changeQueue(ctx, name, act, func(q *Queue) error {
		if settings, err := plan.overlay(q.Settings); err != nil {
			return err
		} else if err := c.checkSettings(settings); err != nil {
			return err
		}
		return q.addPlan(plan)
	})
}

func (q *Queue) addPlan(plan Plan) error {
	if len(q.Plans) >= maxPlans {
		return invalid("plans", fmt.Sprintf("queue %q has %d already; «sluice settings unplan» removes one", q.Name, maxPlans))
	}
	q.Plans = append(clonePlans(q.Plans), plan)
	return nil
}

// Unplan removes a plan. Of a change that was to be reverted, the change stays for good; what a window that
// is open has set is put back. An unknown plan is an ErrNotFound.
func (c *Client) Unplan(ctx context.Context, name string, id int64, act Act) (Queue, error) {
	return c.changeQueue(ctx, name, act, func(q *Queue) error {
		q.Plans = clonePlans(q.Plans)
		at := slices.IndexFunc(q.Plans, func(p Plan) bool { return p.ID == id })
		if at < 0 {
			return fmt.Errorf("plan %d of queue %q: %w; «sluice settings plans %s» lists them", id, name, ErrNotFound, name)
		}
		if q.Plans[at].Window != nil {
			q.putBack(at)
		}
		q.Plans = slices.Delete(q.Plans, at, at+1)
		return nil
	})
}

// changeQueue changes a queue's settings and plans; if somebody else changed them in between, it begins anew.
// A change that changes nothing is not stored.
func (c *Client) changeQueue(ctx context.Context, name string, act Act, change func(*Queue) error) (Queue, error) {
	for {
		stored, err := c.Queue(ctx, name)
		if err != nil {
			return Queue{}, err
		}
		queue := stored
		if !queue.Settings.PausedAt(queue.Now) { // a pause that has ended is none
			queue.Settings.Paused, queue.Settings.PausedUntil = false, time.Time{}
		}
		before := queue.Settings
		if err := change(&queue); err != nil {
			return Queue{}, err
		}
		if queue.Settings == before && queue.Wrong == "" && reflect.DeepEqual(queue.Plans, stored.Plans) {
			return queue, nil
		}
		saved, err := c.saveQueue(ctx, queue, act)
		if !errors.Is(err, ErrConflict) {
			return saved, err
		}
	}
}

// UndoSettings puts a queue's settings back to what they were before their last change, whoever made it: a
// person, upkeep, or somebody by plain SQL. Windows that it added or removed are removed or back; a promise
// to revert goes with its change. The undo is itself a change: it is audited, and undoing it brings the
// settings back.
func (c *Client) UndoSettings(ctx context.Context, name string, act Act) (Queue, error) {
	return c.changeQueue(ctx, name, act, func(q *Queue) error {
		if told, ok := q.Told(); ok && (q.Wrong != "" || told != q.Settings) {
			q.Settings = told // it was changed by plain SQL, and the audit does not know yet
			return nil
		}
		entry, err := c.lastChange(ctx, name)
		if err != nil {
			return err
		}
		before, err := plansOf(entry.Before)
		if err != nil {
			return err
		}
		after, err := plansOf(entry.After)
		if err != nil {
			return err
		}
		q.Plans = undonePlans(q.Plans, before, after)
		return q.Settings.UnmarshalJSON(entry.Before)
	})
}

// undoHistory is how many changes are looked at for one that can be undone.
const undoHistory = 100

// lastChange finds the last change that changed something.
func (c *Client) lastChange(ctx context.Context, name string) (AuditEntry, error) {
	entries, err := c.store.Audit(ctx, AuditFilter{Object: ObjectQueue, Name: name, Limit: undoHistory})
	if err != nil {
		return AuditEntry{}, err
	}
	for _, e := range entries {
		if e.Event == EventChange && len(e.Before) > 0 && string(e.Before) != string(e.After) {
			return e, nil
		}
	}
	return AuditEntry{}, fmt.Errorf("queue %.80q has no change to undo: %w", name, ErrNotFound)
}

// plansOf reads the plans from the audit's text of a queue.
func plansOf(text json.RawMessage) ([]Plan, error) {
	var queue struct {
		Plans []Plan `json:"plans"`
	}
	err := json.Unmarshal(text, &queue)
	return queue.Plans, err
}

// undonePlans gives the plans as they are now without those that a change added and with the windows that it
// removed.
func undonePlans(now, before, after []Plan) []Plan {
	has := func(plans []Plan, id int64) bool {
		return slices.ContainsFunc(plans, func(p Plan) bool { return p.ID == id })
	}
	var out []Plan
	for _, p := range now {
		if has(before, p.ID) || !has(after, p.ID) {
			out = append(out, p)
		}
	}
	for _, p := range before {
		if p.Window != nil && !has(after, p.ID) && !has(now, p.ID) {
			out = append(out, p)
		}
	}
	return out
}

// TendSettings tells the audit of settings that were changed by plain SQL, and carries out the plans that are
// due by the store's clock. It returns the queues as they are then, and how many changes it told of or made. Upkeep
// calls it once a second; two that do it at the same time do no harm. The plans that cannot be carried out here are told
// in the error, each as a PlanError; it joins them with what else has failed.
func (c *Client) TendSettings(ctx context.Context, by string) (queues []Queue, done int, err error) {
	queues, err = c.Queues(ctx, QueueFilter{})
	if err != nil {
		return nil, 0, fmt.Errorf("tend settings: %w", err)
	}
	var failed []error
	for i, q := range queues {
		tended, n, err := c.tendQueue(ctx, q, by)
		done += n
		if err == nil {
			queues[i] = tended
		}
		var plan *PlanError
		switch {
		case err == nil, errors.Is(err, ErrConflict): // somebody else was quicker; the next look sees it
		case errors.As(err, &plan):
			failed = append(failed, err)
		default:
			failed = append(failed, fmt.Errorf("tend settings of queue %q: %w", q.Name, err))
		}
	}
	return queues, done, errors.Join(failed...)
}

func (c *Client) tendQueue(ctx context.Context, q Queue, by string) (tended Queue, done int, err error) {
	if q.Untold() {
		told, err := c.store.TellQueue(ctx, q, SQLAct())
		if err != nil {
			return q, 0, err
		}
		told.Wrong = q.Wrong
		q, done = told, 1
	}
	for range 2 * maxPlans { // each is carried out at most once; another bound would let a mistake go on for ever
		next, why, err := q.carryOut()
		if why == "" {
			return q, done, err
		}
		if q, err = c.store.SaveQueue(ctx, next, Act{By: by, Reason: why, ID: NewID()}); err != nil {
			return q, done, err
		}
		c.settings.Forget()
		done++
	}
	return q, done, nil
}
