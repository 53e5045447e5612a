package httpapi

import (
	"context"
	"errors"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/access"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/changes"
	"github.com/sluice-queue/sluice/cmd/internal/acting"
	"github.com/sluice-queue/sluice/internal/wire"
)

// queues adds the routes of queues and their settings.
func (a *API) queues() {
	add(a, Route{
		Method: "GET", Path: "/queues", Name: "list-queues", Group: "queues", Summary: "list queues",
		Text:  "Queues come by name, with the counts of their jobs. Producers and workers get settings without counts. A token for tenants gets settings alone, without who changed them and why.",
		Needs: access.Look | access.Enqueue | access.Work, Commands: []string{"queues", "settings groups"}, scope: ofJobs, noun: "queue",
	}, listQueues)
	queue := func(r Route) Route { r.Group, r.scope, r.noun = "queues", ofQueue, "queue"; return r }
	add(a, queue(Route{
		Method: "GET", Path: "/queues/{queue}", Name: "get-queue", Summary: "read a queue",
		Text:  "Shows settings, scheduled changes and counts. A group, such as mail.*, has settings alone.",
		Needs: access.Look, Commands: []string{"settings get", "settings scheduled"},
	}), func(ctx context.Context, c *call, in *queueInput) (queueView, error) { return c.queue(ctx, in.Queue) })
	a.queueWriting(queue)
	add(a, queue(Route{
		Method: "DELETE", Path: "/queues/{queue}", Name: "delete-queue", Summary: "delete an empty queue",
		Needs: access.Operate, Commands: []string{"queues rm"},
	}), func(ctx context.Context, c *call, in *queueReasonInput) (done, error) {
		return done{true}, c.api.client().DeleteQueue(ctx, in.Queue, c.act(in.Reason))
	})
	add(a, queue(Route{
		Method: "PATCH", Path: "/queues/{queue}/settings", Name: "change-settings", Summary: "change settings of a queue",
		Text:  "Changes settings for good, for a while, or in a window of each day. It makes the queue if there is none.",
		Needs: access.Operate, Commands: []string{"settings set", "settings schedule"},
	}), changeSettings)
	add(a, queue(Route{
		Method: "GET", Path: "/queues/{queue}/settings/history", Name: "list-settings-changes", Summary: "list the changes of a queue's settings",
		Needs: access.Look, Commands: []string{"settings history"},
	}), func(ctx context.Context, c *call, in *queueInput) (auditList, error) {
		found, err := c.api.client().Audit(ctx, sluice.AuditFilter{Object: audit.ObjectQueue, Name: in.Queue, Event: audit.EventChange, Limit: shownChanges})
		return auditList{Entries: orEmpty(found)}, err
	})
	add(a, queue(Route{
		Method: "POST", Path: "/queues/{queue}/settings/undo", Name: "undo-settings", Summary: "undo the last change of a queue's settings, or all changes after one",
		Needs: access.Operate, Commands: []string{"settings undo"},
	}), undoSettings)
	add(a, queue(Route{
		Method: "DELETE", Path: "/queues/{queue}/scheduled/{change}", Name: "cancel-scheduled-change", Summary: "cancel a scheduled change",
		Needs: access.Operate, Commands: []string{"settings unschedule"},
	}), func(ctx context.Context, c *call, in *scheduledInput) (queueView, error) {
		act := c.act(in.Reason)
		_, err := changes.Cancel(ctx, c.api.client(), in.Queue, in.Change, act)
		return c.queueAfter(ctx, in.Queue, act, err)
	})
	add(a, queue(Route{
		Method: "POST", Path: "/queues/{queue}/pause", Name: "pause-queue", Summary: "pause a queue",
		Needs: access.Operate, Commands: []string{"pause"},
	}), func(ctx context.Context, c *call, in *pauseInput) (queueView, error) {
		if err := c.pause(ctx, in.Queue, in.Body); err != nil {
			return queueView{}, err
		}
		return c.queue(ctx, in.Queue)
	})
	add(a, queue(Route{
		Method: "POST", Path: "/queues/{queue}/resume", Name: "resume-queue", Summary: "resume a queue",
		Needs: access.Operate, Commands: []string{"resume"},
	}), func(ctx context.Context, c *call, in *queueActInput) (queueView, error) {
		if err := c.api.client().Resume(ctx, in.Queue, c.act(in.Body.Reason)); err != nil {
			return queueView{}, err
		}
		return c.queue(ctx, in.Queue)
	})
}

// undoInput undoes changes of a queue's settings.
type undoInput struct {
	Queue string `path:"queue" doc:"the queue" maxLength:"64"`
	Body  undoBody
}

// undoBody says how far back to go.
type undoBody struct {
	wire.ReasonBody
	// To is the `seq` of a change in the history: the settings become as that change left them. Missing: as they were before the last.
	To int64 `json:"to,omitempty" minimum:"1"`
}

func undoSettings(ctx context.Context, c *call, in *undoInput) (queueView, error) {
	act := c.act(in.Body.Reason)
	var err error
	if in.Body.To > 0 {
		_, err = changes.UndoTo(ctx, c.api.client(), in.Queue, in.Body.To, act)
	} else {
		_, err = changes.Undo(ctx, c.api.client(), in.Queue, act)
	}
	return c.queueAfter(ctx, in.Queue, act, err)
}

// shownChanges is the most changes of settings in an answer.
const shownChanges = 100

// pause pauses a queue, for a while or until somebody resumes it.
func (c *call) pause(ctx context.Context, queue string, b PauseBody) error {
	if b.For == "" {
		return c.api.client().Pause(ctx, queue, c.act(b.Reason))
	}
	while, err := positive("for", b.For)
	if err == nil {
		_, err = c.api.client().PauseFor(ctx, queue, while, c.act(b.Reason))
	}
	return err
}

// positive reads a duration above 0.
func positive(field, text string) (time.Duration, error) {
	d, err := sluice.ParseDuration(text)
	if err != nil || d <= 0 {
		return 0, &sluice.InvalidError{Field: field, Rule: "must be a duration such as 30m"}
	}
	return d, nil
}

// queueInput names a queue.
type queueInput struct {
	Queue string `path:"queue" doc:"the queue, or a group such as mail.*" maxLength:"64"`
}

// queueReasonInput names a queue, and a reason.
type queueReasonInput struct {
	Queue  string `path:"queue" doc:"the queue" maxLength:"64"`
	Reason string `query:"reason" doc:"why, for the audit" maxLength:"1000"`
}

// queueActInput acts on a queue.
type queueActInput struct {
	Queue string `path:"queue" doc:"the queue" maxLength:"64"`
	Body  wire.ReasonBody
}

// scheduledInput names a scheduled change.
type scheduledInput struct {
	Queue  string `path:"queue" doc:"the queue" maxLength:"64"`
	Change int64  `path:"change" doc:"the id of the scheduled change"`
	Reason string `query:"reason" doc:"why, for the audit" maxLength:"1000"`
}

// pauseInput pauses a queue.
type pauseInput struct {
	Queue string `path:"queue" doc:"the queue" maxLength:"64"`
	Body  PauseBody
}

// PauseBody says for how long.
type PauseBody struct {
	// For is how long, such as 30m. Missing: until somebody resumes the queue.
	For string `json:"for,omitempty" maxLength:"20"`
	wire.ReasonBody
}

// queueView is a queue.
type queueView struct {
	// Name is the name of the queue, and Version counts the changes of its settings.
	Name    string `json:"name"`
	Version int64  `json:"version"`
	// Settings are all settings by name, with values as people write them.
	Settings map[string]string `json:"settings"`
	// Scheduled are the scheduled changes.
	Scheduled []changes.Change `json:"scheduled"`
	// ChangedAt, ChangedBy and Reason describe the last change.
	ChangedAt time.Time `json:"changed_at,omitzero"`
	ChangedBy string    `json:"changed_by,omitempty"`
	Reason    string    `json:"reason,omitempty"`
	// ByTenant says that tenants take turns, because of the settings or of limits for tenants.
	ByTenant bool `json:"by_tenant,omitempty"`
	// Wrong says which rule a value breaks that somebody stored by plain SQL. Settings then has the last good value.
	Wrong string `json:"wrong,omitempty"`
	// Now is the store's clock.
	Now time.Time `json:"now,omitzero"`
	// Depth counts the jobs, each count up to 10,000. Missing: of a group, and without counts.
	Depth *sluice.Depth `json:"depth,omitempty"`
}

// depthLimit bounds the cost of counting.
const depthLimit = 10_000

// queue reads a queue.
func (c *call) queue(ctx context.Context, name string) (queueView, error) {
	q, err := c.api.client().Queue(ctx, name)
	if err != nil {
		return queueView{}, err
	}
	return c.viewOf(ctx, q, true)
}

// queueAfter reads a queue after an act. If the act failed, it may have been done before, when its answer was lost: the store knows its
// acts, and writes nothing over a version that no queue has.
func (c *call) queueAfter(ctx context.Context, name string, act sluice.Act, failure error) (queueView, error) {
	if failure != nil && !c.actID.IsZero() {
		if _, err := c.api.store.SaveQueue(ctx, sluice.Queue{Name: name, Version: math.MaxInt64}, act); err == nil {
			failure = nil
		}
	}
	if failure != nil {
		return queueView{}, failure
	}
	return c.queue(ctx, name)
}

func (c *call) viewOf(ctx context.Context, q sluice.Queue, counts bool) (queueView, error) {
	out := queueView{
		Name: q.Name, Version: q.Version, Settings: make(map[string]string), ChangedAt: q.ChangedAt, ChangedBy: q.ChangedBy, Reason: q.Reason,
		ByTenant: q.ByTenant, Wrong: q.Wrong, Now: q.Now,
	}
	for _, s := range sluice.AllSettings() {
		out.Settings[s.Name] = s.Format(q.Settings)
	}
	scheduled, err := changes.List(q)
	if err != nil {
		return out, err
	}
	out.Scheduled = orEmpty(scheduled)
	if counts && !sluice.IsGroup(q.Name) {
		depth, err := c.api.store.Depth(ctx, q.Name, depthLimit)
		if err != nil {
			return out, err
		}
		out.Depth = &depth
	}
	return out, nil
}

// queueList lists queues.
type queueList struct {
	// Queues are sorted by name.
	Queues []queueView `json:"queues"`
}

// queuesInput chooses queues.
type queuesInput struct {
	After string `query:"after" doc:"the last name of the page before" maxLength:"200"`
	Limit int    `query:"limit" doc:"the most queues" minimum:"1" maximum:"200" default:"50"`

	Names   []string `query:"name,explode" doc:"only these queues, or groups such as mail.*" maxItems:"200"`
	Engines []string `query:"engine,explode" doc:"only queues with these engines" maxItems:"50"`
	Engined bool     `query:"engined" doc:"only queues that have an engine, or jobs at one"`
	Groups  bool     `query:"groups" doc:"groups too"`
	Counts  bool     `query:"counts" doc:"with the counts of jobs" default:"true"`
}

func listQueues(ctx context.Context, c *call, in *queuesInput) (queueList, error) {
	out := queueList{Queues: []queueView{}}
	counts := in.Counts && c.caller.May(access.Look)
	ofTenants := len(c.caller.Tenants) > 0
	if counts && ofTenants {
		return out, outOfBounds("the token is bounded to some tenants; read settings alone with counts=false")
	}
	for after := in.After; len(out.Queues) < in.Limit; {
		page, err := c.api.client().Queues(ctx, sluice.QueueFilter{
			Names: in.Names, Engines: in.Engines, Engined: in.Engined, Groups: in.Groups, After: after, Limit: in.Limit,
		})
		if err != nil {
			return out, err
		}
		for _, q := range page {
			if after = q.Name; !c.caller.Queue(q.Name) || len(out.Queues) == in.Limit {
				continue
			}
			view, err := c.viewOf(ctx, q, counts)
			if err != nil {
				return out, err
			}
			if ofTenants { // the queue is of all tenants, and so is what people said of it
				view.Scheduled, view.ChangedBy, view.Reason, view.Wrong = []changes.Change{}, "", "", ""
			}
			out.Queues = append(out.Queues, view)
		}
		if len(page) < in.Limit {
			break
		}
	}
	return out, nil
}

// settingsInput changes settings.
type settingsInput struct {
	Queue string `path:"queue" doc:"the queue, or a group such as mail.*" maxLength:"64"`
	Body  settingsBody
}

// settingsBody is a change of settings.
type settingsBody struct {
	// Set has new values by the names of settings, as people write them, such as rate: 100/s. A null resets the setting.
	Set map[string]*string `json:"set" minProperties:"1" maxProperties:"100"`
	// For reverts the change after a while, such as 30m. Missing: the change stays.
	For string `json:"for,omitempty" maxLength:"20"`
	// Window applies the settings only in a window of each day.
	Window *changes.Window `json:"window,omitempty"`
	// Version is that of the queue as the caller read it. Missing: whatever it is now.
	Version int64 `json:"version,omitempty"`
	wire.ReasonBody
}

// apply changes settings.
func (b settingsBody) apply(s *sluice.Settings) error {
	defaults := sluice.DefaultSettings()
	for _, name := range slices.Sorted(maps.Keys(b.Set)) {
		setting, err := sluice.SettingNamed(name)
		if err != nil {
			return err
		}
		text := setting.Format(defaults)
		if value := b.Set[name]; value != nil {
			text = *value
		}
		if err := setting.Parse(s, text); err != nil {
			return err
		}
	}
	return nil
}

func changeSettings(ctx context.Context, c *call, in *settingsInput) (queueView, error) {
	b, act := in.Body, c.act(in.Body.Reason)
	var err error
	switch {
	case b.For != "" && b.Window != nil:
		err = &sluice.InvalidError{Field: "for", Rule: "must be missing with a window"}
	case b.Window != nil:
		set := make(map[string]string)
		for name, value := range b.Set {
			if value == nil {
				return queueView{}, &sluice.InvalidError{Field: "set", Rule: "must have a value for each setting of a window"}
			}
			set[name] = *value
		}
		_, err = changes.Schedule(ctx, c.api.client(), in.Queue, *b.Window, set, act)
	case b.For != "":
		var while time.Duration
		if while, err = positive("for", b.For); err == nil {
			_, err = changes.For(ctx, c.api.client(), in.Queue, while, act, b.apply)
		}
	default:
		err = c.changeForGood(ctx, in.Queue, b, act)
	}
	return c.queueAfter(ctx, in.Queue, act, err)
}

// changeForGood changes settings, or makes the queue with them.
func (c *call) changeForGood(ctx context.Context, queue string, b settingsBody, act sluice.Act) error {
	_, err := c.api.client().ChangeQueue(ctx, queue, act, func(q *sluice.Queue) error {
		if b.Version != 0 && b.Version != q.Version {
			return sluice.ErrConflict
		}
		return q.Settings.Change(b.apply)
	})
	if !errors.Is(err, sluice.ErrNotFound) || b.Version != 0 {
		return err
	}
	above, err := acting.GroupOf(ctx, c.api.client(), queue)
	if err != nil {
		return err
	}
	settings := above.Settings
	if err := settings.Change(b.apply); err != nil {
		return err
	}
	_, err = c.api.client().EnsureQueue(ctx, queue, settings, act)
	return err
}
