package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/access"
	"github.com/sluice-queue/sluice/internal/wire"
	"github.com/sluice-queue/sluice/operation"
	"github.com/sluice-queue/sluice/schedule"
)

// schedules adds the routes of schedules. A bounded caller knows those that make jobs within its bounds.
func (a *API) schedules() {
	route := func(r Route) Route { r.Group, r.noun, r.scope = "schedules", "schedule", ofJobs; return r }
	add(a, route(Route{
		Method: "GET", Path: "/schedules", Name: "list-schedules", Summary: "list schedules", Text: "A page may have fewer than the limit.",
		Needs: access.Look, Commands: []string{"schedules ls"},
	}), func(ctx context.Context, c *call, in *schedulesInput) (wire.ScheduleList, error) {
		found, err := schedule.List(ctx, c.api.store, schedule.Filter{Queue: in.Queue, After: in.After, Limit: in.Limit})
		out := wire.ScheduleList{Schedules: []schedule.Schedule{}}
		for _, s := range found {
			if out.Next, out.Now = "", s.Now; len(found) == in.Limit {
				out.Next = s.Name
			}
			if c.caller.Job(s.Queue, s.Tenant) {
				out.Schedules = append(out.Schedules, c.shown(s))
			}
		}
		return out, err
	})
	add(a, route(Route{
		Method: "GET", Path: "/schedules/{schedule}", Name: "get-schedule", Summary: "read a schedule with its next and last fires",
		Needs: access.Look, Commands: []string{"schedules show"},
	}), getSchedule)
	add(a, route(Route{
		Method: "PATCH", Path: "/schedules/{schedule}", Name: "set-schedule", Summary: "make or change a schedule",
		Text:  "Fields that are missing stay as they are; a null resets one. One of cron, every and at says when it fires.",
		Needs: access.Operate, Commands: []string{"schedules set"},
	}), setSchedule)
	add(a, route(Route{
		Method: "PUT", Path: "/schedules/{schedule}", Name: "save-schedule", Summary: "store a schedule",
		Text: "Stores the schedule if its version is still that of the body; 0 makes the schedule.", Needs: access.Operate, Commands: []string{"schedules set"},
	}), saveSchedule)
	a.scheduleActs(route)
}

// scheduleActs adds the routes of acts on schedules.
func (a *API) scheduleActs(route func(Route) Route) {
	for _, s := range []struct {
		verb, summary string
		do            func(context.Context, sluice.Store, string, sluice.Act) (schedule.Schedule, error)
	}{
		{"pause", "pause a schedule", func(ctx context.Context, store sluice.Store, name string, act sluice.Act) (schedule.Schedule, error) {
			return schedule.Pause(ctx, store, name, act.Reason, act)
		}},
		{"resume", "resume a schedule", schedule.Resume},
		{"lift", "give a schedule the definition that a program declares", schedule.Lift},
		{"undo", "undo the last change of a schedule", schedule.Undo},
	} {
		add(a, route(Route{
			Method: "POST", Path: "/schedules/{schedule}/" + s.verb, Name: s.verb + "-schedule", Summary: s.summary,
			Needs: access.Operate, Commands: []string{"schedules " + s.verb},
		}), func(ctx context.Context, c *call, in *scheduleActInput) (schedule.Schedule, error) {
			if _, err := c.schedule(ctx, in.Schedule); err != nil {
				return schedule.Schedule{}, err
			}
			changed, err := s.do(ctx, c.ownSchedules(), in.Schedule, c.act(in.Body.Reason))
			return c.shown(changed), err
		})
	}
	add(a, route(Route{
		Method: "POST", Path: "/schedules/{schedule}/trigger", Name: "trigger-schedule", Summary: "fire a schedule now",
		Text: "Also if it is paused. Its next fire stays.", Needs: access.Operate, Commands: []string{"schedules trigger"},
	}), func(ctx context.Context, c *call, in *scheduleActInput) (schedule.Fire, error) {
		if _, err := c.schedule(ctx, in.Schedule); err != nil {
			return schedule.Fire{}, err
		}
		fire, err := schedule.Trigger(ctx, c.api.store, in.Schedule, c.act(in.Body.Reason), c.api.checker)
		fires := []schedule.Fire{fire}
		if err == nil {
			err = c.knownFires(ctx, fires)
		}
		return fires[0], err
	})
	add(a, route(Route{
		Method: "POST", Path: "/schedules/{schedule}/fire", Name: "fire-schedule", Summary: "make the jobs of a schedule for some instants at once",
		Text: "All in one transaction. Without instants as trigger.", Needs: access.Operate, Commands: []string{"schedules trigger"},
	}), fireSchedule)
	add(a, route(Route{
		Method: "POST", Path: "/schedules/{schedule}/backfill", Name: "backfill-schedule", Summary: "make the jobs of a schedule's fires in a range of time",
		Text: "As an operation. With dry_run it only lists the fires.", Needs: access.Operate, Commands: []string{"schedules backfill"},
	}), backfillSchedule)
	add(a, route(Route{
		Method: "DELETE", Path: "/schedules/{schedule}", Name: "delete-schedule", Summary: "delete a schedule",
		Text: "Its jobs stay. A program that declares it makes it again at its next start.", Needs: access.Operate, Commands: []string{"schedules delete"},
	}), func(ctx context.Context, c *call, in *scheduleReasonInput) (done, error) {
		_, err := c.schedule(ctx, in.Schedule)
		if err != nil && (!errors.Is(err, sluice.ErrNotFound) || !c.caller.None()) { // the store knows whether the same act has deleted it
			return done{}, err
		}
		return done{true}, schedule.Delete(ctx, c.api.store, in.Schedule, c.act(in.Reason))
	})
}

// schedulesInput chooses schedules.
type schedulesInput struct {
	PageInput
	Queue string `query:"queue" doc:"only schedules of this queue" maxLength:"64"`
}

// scheduleInput names a schedule.
type scheduleInput struct {
	Schedule string `path:"schedule" doc:"the schedule" maxLength:"64"`
	Next     int    `query:"next" doc:"how many of the next fires" minimum:"0" maximum:"1000" default:"5"`
}

// scheduleReasonInput names a schedule, and a reason.
type scheduleReasonInput struct {
	Schedule string `path:"schedule" doc:"the schedule" maxLength:"64"`
	Reason   string `query:"reason" doc:"why, for the audit" maxLength:"1000"`
}

// scheduleActInput acts on a schedule.
type scheduleActInput struct {
	Schedule string `path:"schedule" doc:"the schedule" maxLength:"64"`
	Body     wire.ReasonBody
}

func getSchedule(ctx context.Context, c *call, in *scheduleInput) (wire.ScheduleDetail, error) {
	s, err := c.schedule(ctx, in.Schedule)
	if err != nil {
		return wire.ScheduleDetail{}, err
	}
	next, err := s.Next(s.Now, in.Next)
	if err != nil {
		return wire.ScheduleDetail{}, err
	}
	results, err := schedule.Results(ctx, c.api.store, s)
	if err == nil {
		err = c.knownFires(ctx, results)
	}
	for i := range results {
		if !c.caller.None() && results[i].Job.IsZero() && !results[i].At.After(s.ChangedAt) {
			results[i].Reason = "" // it may be about a queue outside of the bounds
		}
	}
	return wire.ScheduleDetail{Schedule: c.shown(s), Next: orEmpty(next), Results: orEmpty(results), Now: s.Now}, err
}

// DefinitionBody is a definition of a schedule, in which durations are texts.
type DefinitionBody struct {
	// Queue is the queue of the jobs. A new schedule needs one.
	Queue string `json:"queue,omitempty"`
	// Cron is a cron expression of 5 fields, of 6 with the second first, or a shorthand such as @daily.
	Cron string `json:"cron,omitempty"`
	// Every is the interval between fires, such as 10m.
	Every string `json:"every,omitempty"`
	// At lists the instants.
	At []time.Time `json:"at,omitempty"`
	// Zone is the time zone of cron, such as Europe/Berlin. Default: UTC.
	Zone string `json:"zone,omitempty"`
	// Start and End bound the fires.
	Start time.Time `json:"start,omitzero"`
	End   time.Time `json:"end,omitzero"`
	// MaxFires ends the schedule after this many jobs. 0: no end.
	MaxFires int `json:"max_fires,omitempty"`
	// Payload is the payload of the jobs. In it, {{fire}} becomes the instant, and {{date}} the date.
	Payload json.RawMessage `json:"payload,omitempty"`
	// Key, Tenant, Priority and Labels are those of the jobs.
	Key      string            `json:"key,omitempty"`
	Tenant   string            `json:"tenant,omitempty"`
	Priority int               `json:"priority,omitempty"`
	Labels   map[string]string `json:"labels,omitempty"`
	// Overlap says how it fires while an earlier job is unfinished: skip, queue one, queue all or cancel other.
	Overlap schedule.Overlap `json:"overlap,omitempty"`
	// CatchUp says which missed fires it makes up for, of the last CatchUpWindow: last, all or none.
	CatchUp       schedule.CatchUp `json:"catch_up,omitempty"`
	CatchUpWindow string           `json:"catch_up_window,omitempty"`
	// Jitter delays each job by up to this much.
	Jitter string `json:"jitter,omitempty"`
	// PauseAfter pauses the schedule when this many fires in a row have failed. 0: never.
	PauseAfter int `json:"pause_after,omitempty"`
}

// scheduleBody is a schedule in JSON.
type scheduleBody struct {
	DefinitionBody
	// Name names the schedule.
	Name string `json:"name"`
	// Paused stops the fires, and Note says why.
	Paused bool   `json:"paused,omitempty"`
	Note   string `json:"note,omitempty"`
	// Declared is the definition that a program declares. Missing: none does.
	Declared *DefinitionBody `json:"declared,omitempty"`
	// Overridden says that the definition is not the declared one.
	Overridden bool `json:"overridden,omitempty"`
	// NextAt is the instant of the next fire. Missing: there is none.
	NextAt time.Time `json:"next_at,omitzero"`
	// Progress counts the fires.
	Progress schedule.Progress `json:"progress"`
	// Version counts the changes. ChangedAt, ChangedBy and Reason describe the last one.
	Version   int64     `json:"version"`
	ChangedAt time.Time `json:"changed_at,omitzero"`
	ChangedBy string    `json:"changed_by,omitempty"`
	Reason    string    `json:"reason,omitempty"`
}

// definitionChange is the text of a definition's fields to change.
type definitionChange map[string]json.RawMessage

// Schema describes the fields.
func (definitionChange) Schema(r huma.Registry) *huma.Schema {
	return r.Schema(reflect.TypeFor[DefinitionBody](), true, "")
}

// isNull reports whether a field is reset.
func isNull(value json.RawMessage) bool { return bytes.Equal(value, []byte("null")) }

// apply changes a definition. A new rule for the instants replaces the present one.
func (d definitionChange) apply(old schedule.Definition) (out schedule.Definition, err error) {
	text, err := json.Marshal(old)
	fields := make(map[string]json.RawMessage)
	if err == nil {
		err = json.Unmarshal(text, &fields)
	}
	if err != nil {
		return out, err
	}
	when := []string{"cron", "every", "at"}
	for _, name := range when {
		if d[name] != nil && !isNull(d[name]) {
			for _, other := range when {
				delete(fields, other)
			}
		}
	}
	for name, value := range d {
		if fields[name] = value; isNull(value) {
			delete(fields, name)
		}
	}
	if text, err = json.Marshal(fields); err != nil {
		return out, err
	}
	if err = json.Unmarshal(text, &out); err != nil && !errors.Is(err, sluice.ErrInvalid) {
		err = &sluice.InvalidError{Field: "definition", Rule: err.Error()}
	}
	return out, err
}

// setScheduleInput changes a schedule.
type setScheduleInput struct {
	Schedule string `path:"schedule" doc:"the schedule" maxLength:"64"`
	Body     setScheduleBody
}

// setScheduleBody changes a schedule.
type setScheduleBody struct {
	wire.ReasonBody
	// Definition has the fields to change.
	Definition definitionChange `json:"definition"`
}

func setSchedule(ctx context.Context, c *call, in *setScheduleInput) (schedule.Schedule, error) {
	changed, err := schedule.Change(ctx, c.ownSchedules(), in.Schedule, c.act(in.Body.Reason), func(d *schedule.Definition) (err error) {
		*d, err = in.Body.Definition.apply(*d)
		return err
	})
	return c.shown(changed), err
}

// saveScheduleInput stores a schedule.
type saveScheduleInput struct {
	Schedule string `path:"schedule" doc:"the schedule" maxLength:"64"`
	Body     wire.SaveScheduleBody
}

func saveSchedule(ctx context.Context, c *call, in *saveScheduleInput) (wire.ScheduleDetail, error) {
	s := in.Body.Schedule
	s.Name = in.Schedule
	stored, err := schedule.Read(ctx, c.api.store, s.Name)
	if err != nil && !errors.Is(err, sluice.ErrNotFound) {
		return wire.ScheduleDetail{}, err
	}
	if err == nil && !c.caller.Job(stored.Queue, stored.Tenant) || !c.mayDefine(s.Definition) || s.Declared != nil && !c.mayDefine(*s.Declared) {
		return wire.ScheduleDetail{}, foreignSchedule()
	}
	if !c.caller.None() && s.Version > stored.Version { // of a version that was not looked at
		return wire.ScheduleDetail{}, sluice.ErrConflict
	}
	if s.Declared == nil && stored.Declared != nil && !c.mayDefine(*stored.Declared) {
		s.Declared = stored.Declared // the caller was not shown it
	}
	saved, err := schedule.Save(ctx, c.ownSchedules(), s, c.act(in.Body.Reason))
	saved = c.shown(saved)
	return wire.ScheduleDetail{Schedule: saved, Next: []time.Time{}, Results: []schedule.Fire{}, Now: saved.Now}, err
}

// fireInput fires a schedule.
type fireInput struct {
	Schedule string `path:"schedule" doc:"the schedule" maxLength:"64"`
	Body     wire.FireBody
}

func fireSchedule(ctx context.Context, c *call, in *fireInput) (wire.FireList, error) {
	s, err := c.schedule(ctx, in.Schedule)
	if err != nil {
		return wire.FireList{}, err
	}
	fires, err := schedule.FireFor(ctx, c.api.store, in.Schedule, in.Body.At, c.act(in.Body.Reason), c.api.checker)
	if err == nil {
		err = c.knownFires(ctx, fires)
	}
	return wire.FireList{Fires: orEmpty(fires), Now: s.Now}, err
}

// backfillInput makes up for fires.
type backfillInput struct {
	Schedule string `path:"schedule" doc:"the schedule" maxLength:"64"`
	Body     backfillBody
}

// backfillBody says which fires.
type backfillBody struct {
	wire.ReasonBody
	PaceBody
	// From and To bound the instants, both included.
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
	// Limit is the most jobs. 0: all.
	Limit int `json:"limit,omitempty" minimum:"0"`
	// DryRun only lists the fires.
	DryRun bool `json:"dry_run,omitempty"`
}

// backfilled is an operation that began, or the preview of one.
type backfilled struct {
	// Operation is the operation. Missing: of a dry run.
	Operation *operation.Operation `json:"operation,omitempty"`
	// Fires are the instants, of a dry run.
	Fires []time.Time `json:"fires,omitempty"`
}

func backfillSchedule(ctx context.Context, c *call, in *backfillInput) (out backfilled, err error) {
	s, err := c.schedule(ctx, in.Schedule)
	if err != nil {
		return out, err
	}
	b := in.Body
	if b.DryRun {
		out.Fires, err = schedule.Between(s, b.From, b.To, schedule.MaxBackfill)
		if b.Limit > 0 {
			out.Fires = out.Fires[:min(len(out.Fires), b.Limit)]
		}
		return out, err
	}
	op := operation.Operation{Kind: operation.KindBackfill, Backfill: &operation.Backfill{Schedule: in.Schedule, From: b.From, To: b.To}, Limit: b.Limit}
	if op.Rate, err = b.rate(); err != nil {
		return out, err
	}
	if op, err = operation.Start(ctx, c.api.store, op, c.act(b.Reason)); err != nil {
		return out, err
	}
	if op.Backfill == nil || op.Backfill.Schedule != in.Schedule { // the act is another one, and may be that of somebody else
		return out, sluice.ErrConflict
	}
	out.Operation = &op
	return out, nil
}
