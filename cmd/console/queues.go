package console

import (
	"context"
	"errors"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-queue/sluice"
)

func queuePages() []page {
	return []page{
		{name: "queues", path: "/queues", title: "Queues", letter: "k", load: loadQueues},
		{name: "queue", path: "/queues/{queue}", title: "Queue", load: loadQueue},
	}
}

// queueRow is a queue in a table.
type queueRow struct {
	Name     string            `json:"name"`
	Settings map[string]string `json:"settings"`
	Depth    sluice.Depth      `json:"depth"`
	// ChangedAt is when the settings were changed last.
	ChangedAt time.Time `json:"changed_at"`
}

// Paused reports whether nothing is claimed from the queue.
func (q queueRow) Paused() bool { return q.Settings["paused"] == "true" }

// queueList is the view of /queues.
type queueList struct {
	Queues []queueRow `json:"queues"`
	// Next is the address of the next page. Empty: this is the last.
	Next string `json:"-"`
}

// queuesPerPage is how many queues a page lists.
const queuesPerPage = 50

func loadQueues(ctx context.Context, v *visit) (_ any, err error) {
	var view queueList
	v.cli("sluice queues")
	if after := v.query.Get("after"); after == "" {
		view.Queues, err = v.firstQueues(ctx)
	} else {
		err = v.get(ctx, "/queues", url.Values{"after": {after}, "limit": {strconv.Itoa(queuesPerPage + 1)}}, &view)
	}
	if len(view.Queues) > queuesPerPage {
		view.Queues = view.Queues[:queuesPerPage]
		view.Next = v.console.url("/queues", "after", view.Queues[queuesPerPage-1].Name)
	}
	return view, err
}

// mostQueues is how many queues pages about all of them read.
const mostQueues = 200

// firstQueues reads the first queues by name, with their counts. Each page asks alike: the store counts once for all.
func (v *visit) firstQueues(ctx context.Context) ([]queueRow, error) {
	var list queueList
	err := v.get(ctx, "/queues", url.Values{"limit": {strconv.Itoa(mostQueues)}}, &list)
	return list.Queues, err
}

func queueActs() []act {
	return []act{
		{
			name: "pause-queue", label: "Pause", route: "pause-queue", undo: "resume-queue", command: "sluice pause {queue} --for={for} --reason={reason}",
			sentence: "Pause {queue}: nothing more is claimed from it. Jobs that run go on.",
			fields:   []field{{name: "for", label: "For", hint: "such as 30m; empty: until somebody resumes it", kind: "duration"}},
		},
		{
			name: "resume-queue", label: "Resume", route: "resume-queue", undo: "pause-queue", command: "sluice resume {queue} --reason={reason}",
			sentence: "Resume {queue}: its jobs are claimed again.",
		},
		{
			name: "delete-queue", label: "Delete the queue", route: "delete-queue", danger: true, command: "sluice queues rm {queue} --reason={reason}", then: "/queues",
			sentence: "Delete {queue} and its settings. It must have no jobs. The audit stays.",
		},
		{
			name: "set-setting", label: "Change", route: "change-settings", undo: "undo-settings", command: "sluice settings set {queue} {setting}={value} --revert-in={for} --reason={reason}",
			sentence: "Change {setting} of {queue}. Every process follows within a second.", about: aboutSetting,
			fields: []field{
				{name: "value", label: "New value", hint: "empty: the default"},
				{name: "for", label: "Go back after", hint: "such as 30m: the former value returns unless somebody sets it again; empty: it stays", kind: "duration"},
			},
			body: settingBody,
		},
		{
			name: "schedule-setting", label: "Change at hours", route: "change-settings", command: "sluice settings schedule {queue} {setting}={value} --from={from} --to={to} --tz={zone} --days={days} --reason={reason}",
			sentence: "Give {queue} another value in a window of each day. After the window the former value returns.",
			fields: []field{
				{name: "setting", label: "Setting", value: "rate", required: true},
				{name: "value", label: "Value in the window", required: true},
				{name: "from", label: "From", hint: "a time of day, such as 16:00", value: "16:00", required: true},
				{name: "to", label: "To", hint: "such as 18:00; 24:00 is the end of the day", value: "18:00", required: true},
				{name: "zone", label: "Time zone", value: "UTC", required: true},
				{name: "days", label: "Days", hint: "such as mon,tue; empty: every day"},
			},
			body: windowBody,
		},
		{
			name: "unschedule-setting", label: "Cancel", route: "cancel-scheduled-change", command: "sluice settings unschedule {queue} {change} --reason={reason}",
			sentence: "Cancel the scheduled change of {queue}: {text}. A value that it has set stays.",
		},
		{
			name: "undo-settings", label: "Undo the last change", route: "undo-settings", command: "sluice settings undo {queue} --reason={reason}",
			sentence: "Give {queue} the settings it had before the last change.",
		},
		{
			name: "undo-settings-to", label: "Go back to this", route: "undo-settings", command: "sluice settings undo {queue} --to={version} --reason={reason}",
			sentence: "Give {queue} the settings that change {version} left. All later changes are undone.",
			body:     versionBody, undo: "undo-settings",
		},
		{
			name: "check-engine", label: "Check the engine", route: "check-engine", command: "sluice engine check {queue}", noReason: true,
			sentence: "Ask the engine whether it can run the jobs of {queue}: its address, rights, and workers at the task queue.",
			body:     func(url.Values) (map[string]any, error) { return map[string]any{}, nil }, done: engineChecked,
		},
		{
			name: "try-engine", label: "Start a run to try it", route: "check-engine", command: "sluice engine check {queue} --start", noReason: true,
			sentence: "Start a run of the type of {queue}, due in an hour, and end it at once: it shows whether the engine takes runs.",
			body:     func(url.Values) (map[string]any, error) { return map[string]any{"start": true}, nil }, done: engineChecked,
		},
		{
			name: "reconcile-engine", label: "Reconcile with the engine", route: "reconcile-engine", command: "sluice engine reconcile {queue}", noReason: true,
			sentence: "Ask the engine for the runs of {queue}, and settle its jobs by the answers, as upkeep would do in time: after an outage, or an engine that was restored.",
			body:     func(url.Values) (map[string]any, error) { return map[string]any{}, nil },
			done:     func(a answered) string { return "The engine was asked about " + asText(a["count"]) + " jobs." },
		},
	}
}

// engineChecked says what an engine answered.
func engineChecked(a answered) string {
	faults, _ := a["faults"].([]any)
	if len(faults) == 0 {
		return "The engine can run the jobs."
	}
	text := "The engine cannot run the jobs as it is:"
	for _, fault := range faults {
		one, _ := fault.(string)
		text += " " + one
	}
	return text
}

// settingBody changes one setting. An empty value is the default.
func settingBody(values url.Values) (map[string]any, error) {
	var value any
	if text := values.Get("value"); text != "" {
		value = text
	}
	body := map[string]any{"set": map[string]any{values.Get("setting"): value}}
	if while := values.Get("for"); while != "" {
		body["for"] = while
	}
	return body, nil
}

// windowBody changes one setting in a window of each day.
func windowBody(values url.Values) (map[string]any, error) {
	window := map[string]any{"from": values.Get("from"), "to": values.Get("to"), "zone": values.Get("zone")}
	if days := namesIn(values.Get("days")); len(days) > 0 {
		window["days"] = days
	}
	return map[string]any{"set": map[string]any{values.Get("setting"): values.Get("value")}, "window": window}, nil
}

// namesIn are the names between commas.
func namesIn(text string) (names []string) {
	for _, name := range strings.Split(text, ",") {
		if name = strings.TrimSpace(name); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// versionBody names the change to whose settings to go back.
func versionBody(values url.Values) (map[string]any, error) {
	to, err := strconv.ParseInt(values.Get("version"), 10, 64)
	if err != nil {
		return nil, invalid("version", errors.New("must be the number of a change"))
	}
	return map[string]any{"to": to}, nil
}
