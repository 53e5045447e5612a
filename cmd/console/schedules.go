package console

import (
	"context"
	"encoding/json"
	"html/template"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/cmd/internal/draw"
	"github.com/sluice-queue/sluice/schedule"
)

func schedulePages() []page {
	return []page{
		{name: "schedules", path: "/schedules", title: "Schedules", letter: "s", load: loadSchedules},
		{name: "schedule", path: "/schedules/{schedule}", title: "Schedule", load: loadSchedule},
	}
}

// scheduleRow is a schedule in a table.
type scheduleRow struct {
	schedule.Schedule
	Fires []schedule.Fire
}

// When says when a schedule fires.
func (r scheduleRow) When() string {
	switch {
	case r.Cron != "":
		return cronWords(r.Cron) + or(" "+r.Zone, "")
	case r.Every > 0:
		return "every " + sluice.FormatDuration(r.Every)
	}
	return draw.Plural(len(r.At), "instant")
}

// Text has the fields of a definition as people write them.
func (r scheduleRow) text() map[string]string {
	out := map[string]string{
		"queue": r.Queue, "cron": r.Cron, "zone": r.Zone, "tenant": r.Tenant, "key": r.Key, "overlap": string(r.Overlap), "catch_up": string(r.CatchUp),
		"payload": string(r.Payload),
	}
	if r.Every > 0 {
		out["every"] = sluice.FormatDuration(r.Every)
	}
	if r.Jitter > 0 {
		out["jitter"] = sluice.FormatDuration(r.Jitter)
	}
	if r.PauseAfter > 0 {
		out["pause_after"] = strconv.Itoa(r.PauseAfter)
	}
	return out
}

// Filled are the values that the dialog of a change begins with.
func (r scheduleRow) Filled() []any {
	pairs := []any{"schedule", r.Name, "edit", "true"}
	text := r.text()
	for _, f := range scheduleFields {
		pairs = append(pairs, f.name, text[f.name])
	}
	return pairs
}

// OverlapWords says what happens while an earlier job is unfinished.
func (r scheduleRow) OverlapWords() string { return or(string(r.Overlap), string(schedule.Skip)) }

// CatchUpWords says which missed fires it makes up for.
func (r scheduleRow) CatchUpWords() string {
	window := r.CatchUpWindow
	if window == 0 {
		window = schedule.DefaultWindow
	}
	if r.CatchUp == schedule.None {
		return "none"
	}
	return or(string(r.CatchUp), string(schedule.Last)) + " of the last " + sluice.FormatDuration(window)
}

// JitterWords is by how much jobs are spread. Empty: not at all.
func (r scheduleRow) JitterWords() string {
	if r.Jitter == 0 {
		return ""
	}
	return sluice.FormatDuration(r.Jitter)
}

// Class is the look of a fire's result.
func (r scheduleRow) Class(f schedule.Fire) string {
	if f.State != "" {
		return string(f.State)
	}
	return strings.ReplaceAll(string(f.Result), " ", "-")
}

// scheduleList is the view of /schedules.
type scheduleList struct {
	Rows []scheduleRow
	Next string
}

// shownFires is how many of the last fires a table shows.
const shownFires = 10

func loadSchedules(ctx context.Context, v *visit) (any, error) {
	v.cli("sluice schedules ls")
	query := url.Values{"limit": {"100"}}
	for _, name := range []string{"after", "queue"} {
		if text := v.query.Get(name); text != "" {
			query.Set(name, text)
		}
	}
	var read struct {
		Schedules []schedule.Schedule `json:"schedules"`
		Next      string              `json:"next"`
	}
	if err := v.get(ctx, "/schedules", query, &read); err != nil {
		return nil, err
	}
	var view scheduleList
	for _, s := range read.Schedules {
		recent := s.Progress.Recent
		view.Rows = append(view.Rows, scheduleRow{s, recent[max(0, len(recent)-shownFires):]})
	}
	if read.Next != "" {
		view.Next = v.console.url("/schedules", "after", read.Next, "queue", v.query.Get("queue"))
	}
	return view, nil
}

// schedulePage is the view of a schedule.
type schedulePage struct {
	scheduleRow
	Newest   []schedule.Fire
	Next     []time.Time
	Payload  string
	Declared []difference
	Entries  []auditEntry
}

func loadSchedule(ctx context.Context, v *visit) (any, error) {
	name := v.pathOf("schedule")
	v.page.title = name
	v.cli("sluice schedules show " + quoted(name))
	var read struct {
		Schedule schedule.Schedule `json:"schedule"`
		Next     []time.Time       `json:"next"`
		Results  []schedule.Fire   `json:"results"`
	}
	if err := v.get(ctx, "/schedules/"+url.PathEscape(name), url.Values{"next": {"5"}}, &read); err != nil {
		return nil, err
	}
	view := schedulePage{scheduleRow: scheduleRow{read.Schedule, oldestFirst(read.Results)}, Newest: read.Results, Next: read.Next, Payload: string(read.Schedule.Payload)}
	if declared := read.Schedule.Declared; declared != nil {
		was, err := json.Marshal(declared)
		if err != nil {
			return nil, err
		}
		is, err := json.Marshal(read.Schedule.Definition)
		if err != nil {
			return nil, err
		}
		view.Declared = differences(was, is)
	}
	if v.viewer.bounded() {
		return view, nil
	}
	var err error
	view.Entries, err = v.entries(ctx, cacheFor, "/audit", url.Values{"object": {"schedule"}, "name": {name}, "limit": {"20"}})
	return view, err
}

// oldestFirst turns a list around.
func oldestFirst(fires []schedule.Fire) []schedule.Fire {
	out := slices.Clone(fires)
	slices.Reverse(out)
	return out
}

// scheduleFields are what people say of a schedule.
var scheduleFields = []field{
	{name: "queue", label: "Queue", hint: "of the jobs"},
	{name: "cron", label: "Cron", hint: "such as 30 2 * * *, or @daily; or give an interval"},
	{name: "every", label: "Interval", hint: "such as 10m", kind: "duration"},
	{name: "zone", label: "Time zone", hint: "of cron, such as Europe/Berlin; empty: UTC"},
	{name: "payload", label: "Payload", hint: "JSON; {{fire}} becomes the instant, and {{date}} the date", kind: "json"},
	{name: "overlap", label: "While an earlier job is unfinished", kind: "select", options: []string{"skip", "queue one", "queue all", "cancel other"}, value: "skip"},
	{name: "catch_up", label: "Missed fires to make up for", kind: "select", options: []string{"last", "all", "none"}, value: "last"},
	{name: "jitter", label: "Spread", hint: "delays each job by up to this, such as 2m", kind: "duration"},
	{name: "tenant", label: "Tenant", hint: "of the jobs"},
	{name: "key", label: "Key", hint: "of the jobs"},
	{name: "pause_after", label: "Pause after failures", hint: "how many in a row; empty: never", kind: "number"},
}

// definitionBody is a change of a schedule. In an edit, an empty field is taken away.
func definitionBody(values url.Values) (map[string]any, error) {
	definition := map[string]any{}
	for _, f := range scheduleFields {
		text := strings.TrimSpace(values.Get(f.name))
		switch {
		case text == "" && values.Get("edit") == "true" && f.name != "queue":
			definition[f.name] = nil
		case text != "":
			value, err := f.read(text)
			if err != nil {
				return nil, invalid(f.name, err)
			}
			definition[f.name] = value
		}
	}
	for one, other := range map[string]string{"cron": "every", "every": "cron"} {
		if definition[one] != nil && definition[other] == nil {
			delete(definition, other) // the one that is given replaces it
		}
	}
	return map[string]any{"definition": definition}, nil
}

func scheduleActs() []act {
	const set = "sluice schedules set {schedule} --queue={queue} --cron={cron} --every={every} --zone={zone} --payload={payload} --overlap={overlap} --catch-up={catch_up} --jitter={jitter} --tenant={tenant} --key={key} --pause-after={pause_after} --reason={reason}"
	backfill := []field{
		{name: "from", label: "From", hint: "the first instant, such as 2026-11-01T00:00:00Z", required: true},
		{name: "to", label: "To", hint: "the last instant", required: true},
	}
	simple := func(verb, label, sentence, undo string) act {
		return act{name: verb + "-schedule", label: label, route: verb + "-schedule", undo: undo, command: "sluice schedules " + verb + " {schedule} --reason={reason}", sentence: sentence}
	}
	pause := simple("pause", "Pause", "Pause {schedule}: it does not fire until somebody resumes it. The reason is its note.", "resume-schedule")
	remove := simple("delete", "Delete", "Delete {schedule}. Its jobs stay. A program that declares it makes it again when it starts.", "")
	remove.danger, remove.then = true, "/schedules"
	return []act{
		{
			name: "new-schedule", label: "New schedule", route: "set-schedule", command: set, sentence: "Make jobs again and again.", then: "/schedules/{name}", body: definitionBody,
			fields: append([]field{{name: "schedule", label: "Name", required: true}}, scheduleFields...),
		},
		{name: "set-schedule", label: "Change", route: "set-schedule", undo: "undo-schedule", command: set, sentence: "Change {schedule}. An empty field is taken away.", fields: scheduleFields, body: definitionBody},
		pause,
		simple("resume", "Resume", "Resume {schedule}: it goes on with its next fire.", "pause-schedule"),
		simple("trigger", "Fire now", "Fire {schedule} now, also if it is paused. Its next fire stays.", ""),
		simple("undo", "Undo the last change", "Give {schedule} the definition it had before the last change.", ""),
		simple("lift", "Lift the override", "Give {schedule} the definition that its program declares.", "undo-schedule"),
		{
			name: "list-missed", label: "List fires of a time", route: "backfill-schedule", noReason: true, command: "sluice schedules backfill {schedule} --from={from} --to={to} --dry-run", fields: backfill,
			sentence: "List the fires of {schedule} in a range of time, and change nothing.", body: func(values url.Values) (map[string]any, error) {
				return map[string]any{"from": values.Get("from"), "to": values.Get("to"), "dry_run": true}, nil
			}, done: firesFound,
		},
		{
			name: "backfill-schedule", label: "Backfill", route: "backfill-schedule", command: "sluice schedules backfill {schedule} --from={from} --to={to} --rate={rate} --limit={limit} --detach --reason={reason}", then: "/operations/{operation}",
			sentence: "Make the jobs of the fires of {schedule} in a range of time. A fire that has its job makes no other.",
			fields:   append(backfill, field{name: "rate", label: "Rate", hint: "such as 10/m; empty: as fast as upkeep can"}, field{name: "limit", label: "At most", kind: "number", hint: "jobs; empty: all"}),
		},
		remove,
	}
}

// firesFound says what a dry run found.
func firesFound(a answered) string {
	fires, _ := a["fires"].([]any)
	if len(fires) == 0 {
		return "There is no fire in that time."
	}
	first, _ := fires[0].(string)
	last, _ := fires[len(fires)-1].(string)
	return draw.Plural(len(fires), "fire") + ", from " + first + " to " + last
}

// Filled is the button of an act whose dialog begins with many values.
func (s *screen) Filled(name string, pairs []any) (template.HTML, error) {
	return s.Act(name, pairs...)
}
