package console

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/cmd/httpapi"
	"github.com/sluice-queue/sluice/cmd/internal/draw"
)

// onJobs is an act on the jobs of the values ids.
func onJobs(a act, more func(values url.Values, body map[string]any) error) act {
	a.preview = chosenJobs
	a.body = func(values url.Values) (map[string]any, error) {
		body := map[string]any{"ids": values["ids"]}
		if more == nil {
			return body, nil
		}
		return body, more(values, body)
	}
	return a
}

// jobActs are the acts on chosen jobs, and on the job of a page.
func jobActs() []act {
	put := func(name string, value any) func(url.Values, map[string]any) error {
		return func(_ url.Values, body map[string]any) error { body[name] = value; return nil }
	}
	return []act{
		onJobs(act{
			name: "retry-jobs", label: "Retry", route: "retry-jobs", command: "sluice retry {ids*} --reason={reason}",
			sentence: "Waiting jobs are due now. Dead, cancelled and uncertain jobs begin a new life.",
		}, nil),
		onJobs(act{
			name: "run-now-jobs", label: "Run now", route: "run-now-jobs", command: "sluice run-now {ids*} --reason={reason}", undo: "undo-reschedule-jobs",
			sentence: "The waiting jobs are due now.",
		}, nil),
		onJobs(act{
			name: "reschedule-jobs", label: "Reschedule", route: "reschedule-jobs", undo: "undo-reschedule-jobs",
			command:  "sluice reschedule {ids*} --at={due_at} --delay={delay} --reason={reason}",
			sentence: "The waiting jobs start at another time at the earliest.", fields: whenFields(),
		}, when),
		onJobs(act{
			name: "undo-reschedule-jobs", label: "Undo the reschedule", route: "reschedule-jobs", command: "sluice reschedule {ids*} --undo --reason={reason}",
			sentence: "The jobs get the due time back that they had before.",
		}, put("undo", true)),
		onJobs(act{
			name: "hold-jobs", label: "Hold", route: "hold-jobs", command: "sluice hold {ids*} --reason={reason}", undo: "release-jobs", needsReason: true,
			sentence: "The waiting jobs do not start until somebody releases them.",
		}, nil),
		onJobs(act{
			name: "release-jobs", label: "Release", route: "release-jobs", command: "sluice release {ids*} --reason={reason}", undo: "hold-jobs",
			sentence: "The held jobs wait for their turn as if nobody had held them.",
		}, nil),
		onJobs(act{
			name: "requeue-jobs", label: "Requeue", route: "requeue-jobs", undo: "undo-requeue-jobs", needsReason: true,
			command:  "sluice requeue {ids*} --beside-open-run={beside_open_run} --reason={reason}",
			sentence: "Dead, cancelled and uncertain jobs begin a new life, due now.",
			fields:   []field{{name: "beside_open_run", label: "Do not wait for runs that may still be open", hint: "Two runs of a job may then be open at once.", kind: "check"}},
		}, func(values url.Values, body map[string]any) error {
			if values.Get("beside_open_run") == "true" {
				body["beside_open_run"] = true
			}
			return nil
		}),
		onJobs(act{
			name: "undo-requeue-jobs", label: "Undo the requeue", route: "requeue-jobs", command: "sluice requeue {ids*} --undo --reason={reason}", needsReason: true,
			sentence: "Jobs that still wait, and were not claimed since, are dead or cancelled again.",
		}, put("undo", true)),
		onJobs(act{
			name: "complete-jobs", label: "Resolve: completed", route: "resolve-jobs", command: "sluice resolve {ids*} --completed --reason={reason}", needsReason: true,
			sentence: "Uncertain jobs are completed. First look that their runs did the work.",
		}, put("outcome", "completed")),
		onJobs(act{
			name: "fail-jobs", label: "Resolve: failed", route: "resolve-jobs", command: "sluice resolve {ids*} --failed --reason={reason}", needsReason: true,
			sentence: "Uncertain jobs are dead letters. First look that their runs did not do the work.",
		}, put("outcome", "dead")),
		onJobs(act{
			name: "cancel-jobs", label: "Cancel", route: "cancel-jobs", command: "sluice cancel {ids*} --reason={reason}", danger: true,
			sentence: "Unfinished jobs are cancelled. Running handlers see their context end.",
		}, nil),
		onJobs(act{
			name: "delete-jobs", label: "Delete", route: "delete-jobs", command: "sluice dead delete {ids*} --reason={reason}", danger: true,
			sentence: "Dead and cancelled jobs are deleted for good. The audit keeps who did it, and why.",
		}, nil),
		onJobs(act{
			name: "terminate-jobs", label: "Terminate the run", route: "terminate-jobs", command: "sluice runs terminate {ids*} --reason={reason}", danger: true, needsReason: true,
			sentence: "The runs of cancelled jobs are ended at their engine by force. Work that has begun stays as it is.",
		}, nil),
		changeAct(), editAct(), cloneAct(),
	}
}

// editFields ask for what an operation changes of waiting jobs.
func editFields() []field {
	return []field{
		{name: "priority", label: "Priority", hint: "from 1 (first) to 10 (last); empty: as it is", kind: "number"},
		{name: "tenant", label: "Move to the tenant", hint: "empty: as it is", kind: "text"},
		{name: "postpone", label: "Later by", hint: "such as 10m: from when each job is due, or from now if that is past", kind: "duration"},
		{name: "spread", label: "Spread over", hint: "such as 30m: each job is later by a part of it, by chance", kind: "duration"},
	}
}

// whenFields ask for a due time, and when reads it.
func whenFields() []field {
	return []field{
		{name: "delay", label: "From now", hint: "such as 10m, 2h or 1d; or leave it empty and give an instant", kind: "duration"},
		{name: "due_at", label: "At", hint: "such as 2026-12-01T16:00:00Z", kind: "text"},
	}
}

func when(values url.Values, body map[string]any) error {
	for _, name := range []string{"delay", "due_at"} {
		if text := strings.TrimSpace(values.Get(name)); text != "" {
			body[name] = text
		}
	}
	return nil
}

// chosenJobs counts the jobs of the values ids, and shows some.
func chosenJobs(ctx context.Context, v *visit, values url.Values) (preview, error) {
	out := preview{Count: len(values["ids"])}
	if out.Count == 0 {
		return out, &httpapi.Problem{Status: http.StatusUnprocessableEntity, Title: "Nothing chosen", Why: "no job is chosen", Do: "choose jobs with x or their boxes"}
	}
	for _, id := range values["ids"][:min(out.Count, samplesShown)] {
		var job jobRow
		if err := v.read(ctx, "/jobs/"+url.PathEscape(id), nil, &job); err != nil {
			return out, err
		}
		out.Samples = append(out.Samples, sampleJob(job))
	}
	return out, nil
}

// samplesShown is how many jobs a dialog shows.
const samplesShown = 5

// sampleJob is a job in a dialog.
func sampleJob(job jobRow) string {
	text := job.ID.String() + " of " + job.Queue
	if job.Tenant != "" {
		text += ", tenant " + job.Tenant
	}
	return text + ": " + job.Label
}

// allActs are the acts on all jobs that match the value where. Upkeep does them, as an operation.
func allActs() []act {
	return []act{
		onAll("requeue", act{
			name: "all-requeue", label: "Requeue all", command: "sluice requeue", danger: false, needsReason: true,
			sentence: "Requeue all jobs that match {where}. Each begins a new life.",
			fields: []field{
				{name: "canary", label: "Canary", hint: "how many to requeue first; the others follow if these do not fail again", kind: "number", value: "10"},
				{name: "stop_if_failed", label: "Stop if more fail again (%)", hint: "of the jobs that were requeued", kind: "number", value: "10"},
			},
		}),
		onAll("reschedule", act{name: "all-run-now", label: "Run all now", command: "sluice run-now", sentence: "All waiting jobs that match {where} are due now."}),
		onAll("reschedule", act{
			name: "all-reschedule", label: "Reschedule all", command: "sluice reschedule",
			sentence: "All waiting jobs that match {where} start at another time at the earliest.",
			fields:   []field{{name: "due_at", label: "At", hint: "such as 2026-12-01T16:00:00Z", kind: "text", required: true}},
		}),
		onAll("edit", act{
			name: "all-edit", label: "Edit all", command: "sluice edit",
			sentence: "Change the priority, the tenant or the due time of all waiting jobs that match {where}.", fields: editFields(),
		}),
		onAll("hold", act{name: "all-hold", label: "Hold all", command: "sluice hold", needsReason: true, sentence: "No waiting job that matches {where} starts until somebody releases it."}),
		onAll("release", act{name: "all-release", label: "Release all", command: "sluice release", sentence: "All held jobs that match {where} are released."}),
		onAll("cancel", act{name: "all-cancel", label: "Cancel all", command: "sluice cancel", danger: true, sentence: "Cancel all unfinished jobs that match {where}."}),
		onAll("delete", act{name: "all-delete", label: "Delete all", command: "sluice dead delete", danger: true, needsReason: true, sentence: "Delete all dead and cancelled jobs that match {where}, for good."}),
	}
}

// usualStates are the states on which an operation acts if the filter names none.
var usualStates = map[string]string{"requeue": "dead", "reschedule": "queued", "edit": "queued", "hold": "queued", "release": "queued", "cancel": "queued,claimed,dispatched", "delete": "dead"}

// whereOf is the filter of an operation, with the states on which it acts.
func whereOf(kind string, values url.Values) string {
	where := values.Get("where")
	for _, term := range terms(where) {
		if strings.HasPrefix(term, "state:") {
			return where
		}
	}
	return strings.TrimSpace(where + " state:" + usualStates[kind])
}

// onAll is an act on all that match: an operation of a kind.
func onAll(kind string, a act) act {
	a.route, a.then = "start-operation", "/operations/{operation}"
	a.fields = append(a.fields,
		field{name: "rate", label: "Pace", hint: "such as 20/s; empty: as fast as upkeep can", kind: "text"},
		field{name: "limit", label: "Most jobs", hint: "empty: all", kind: "number"},
	)
	a.command += " --all --where={where} --detach --reason={reason}"
	flags := map[string]string{"due_at": "--at={due_at}", "stop_if_failed": "--stop-if-failed={stop_if_failed}%"}
	for _, f := range a.fields {
		flag := cmp.Or(flags[f.name], "--"+f.name+"={"+f.name+"}")
		a.command += " " + flag
	}
	a.body = func(values url.Values) (map[string]any, error) { return operationBody(kind, values) }
	a.preview = func(ctx context.Context, v *visit, values url.Values) (preview, error) {
		values.Set("where", whereOf(kind, values))
		read, err := v.dryRun(ctx, kind, values.Get("where"))
		out := preview{Count: read.Matched, More: read.More, States: draw.States(read.States)}
		for _, job := range read.Samples {
			out.Samples = append(out.Samples, sampleJob(job))
		}
		if err == nil && out.Count == 0 && !out.More {
			err = &httpapi.Problem{Status: http.StatusUnprocessableEntity, Title: "Nothing to do", Why: "no job matches " + values.Get("where"), Do: "change the filter"}
		}
		return out, err
	}
	return a
}

// dryRun is what an operation would act on.
type dryRun struct {
	Matched int                  `json:"matched"`
	More    bool                 `json:"more"`
	Samples []jobRow             `json:"samples"`
	States  map[sluice.State]int `json:"states"`
}

// dryRun counts the jobs that an operation would act on.
func (v *visit) dryRun(ctx context.Context, kind, where string) (out dryRun, err error) {
	text, err := v.caller.send(ctx, http.MethodPost, "/operations", nil, map[string]any{"kind": kind, "where": where, "dry_run": true})
	if err == nil {
		err = json.Unmarshal(text, &out)
	}
	return out, err
}

// operationBody is the body of a request that starts an operation.
func operationBody(kind string, values url.Values) (map[string]any, error) {
	body := map[string]any{"kind": kind, "where": values.Get("where")}
	for _, name := range []string{"rate", "due_at", "tenant", "postpone", "spread"} {
		if text := strings.TrimSpace(values.Get(name)); text != "" {
			body[name] = text
		}
	}
	for _, name := range []string{"canary", "limit", "stop_if_failed", "priority"} {
		text := strings.TrimSpace(values.Get(name))
		if text == "" {
			continue
		}
		n, err := strconv.ParseFloat(text, 64)
		switch {
		case err != nil || n < 0 || name != "stop_if_failed" && n != float64(int(n)):
			return nil, invalid(name, errors.New("must be a number, 0 or more"))
		case name == "stop_if_failed":
			body[name] = n / 100
		default:
			body[name] = int(n)
		}
	}
	return body, nil
}

// changeAct changes those of the chosen jobs that wait.
func changeAct() act {
	return act{
		name: "edit-jobs", label: "Change", route: "start-operation", then: "/operations/{operation}", preview: chosenJobs, fields: editFields(),
		command:  "sluice edit --all --where={where} --detach --priority={priority} --tenant={tenant} --postpone={postpone} --spread={spread} --reason={reason}",
		sentence: "Change the priority, the tenant or the due time of those of the jobs that wait. Upkeep does it, as an operation.",
		fill: func(_ context.Context, _ *visit, values url.Values) error {
			values.Set("where", whereOf("edit", url.Values{"where": {"id:" + strings.Join(values["ids"], ",")}}))
			return nil
		},
		body: func(values url.Values) (map[string]any, error) { return operationBody("edit", values) },
	}
}

// editAct changes a waiting job.
func editAct() act {
	return act{
		name: "edit-job", label: "Edit", route: "edit-job",
		command:  "sluice edit {id} --priority={priority} --due={due_at} --tenant={tenant} --label={labels+} --expect={version} --reason={reason}",
		sentence: "Change the waiting job {id}. It is refused if the job has changed since you looked.",
		fields: []field{
			{name: "payload", label: "Payload", hint: "JSON; in the CLI --payload-file FILE", kind: "json"},
			{name: "priority", label: "Priority", hint: "from 1 (first) to 10 (last)", kind: "number"},
			{name: "due_at", label: "Due at", hint: "such as 2026-12-01T16:00:00Z", kind: "text"},
			{name: "tenant", label: "Tenant", kind: "text"},
			{name: "labels", label: "Labels", hint: "NAME=VALUE, one a line", kind: "area"},
		},
		fill: func(ctx context.Context, v *visit, values url.Values) error {
			var job jobRow
			var version struct {
				Version string `json:"version"`
			}
			if err := v.freshJob(ctx, values.Get("id"), &job, &version); err != nil {
				return err
			}
			fillJob(values, job)
			values.Set("version", version.Version)
			values.Set("due_at", job.DueAt.UTC().Format(time.RFC3339Nano))
			return nil
		},
		body: func(values url.Values) (map[string]any, error) {
			labels, err := readLabels(values.Get("labels"))
			if err != nil {
				return nil, err
			}
			body := map[string]any{"version": values.Get("version"), "labels": labels, "tenant": strings.TrimSpace(values.Get("tenant"))}
			return body, jobFields(values, body)
		},
	}
}

// cloneAct enqueues a new job with the content of another.
func cloneAct() act {
	return act{
		name: "clone-job", label: "Clone as new", route: "enqueue", noReason: true, then: "/jobs/{id}",
		command:  "sluice enqueue {queue} {payload} --tenant={tenant} --priority={priority} --delay={delay} --key={key} --label={labels+}",
		sentence: "Enqueue a new job like {id}. It has no key unless you give one.",
		fields: []field{
			{name: "queue", label: "Queue", kind: "text", required: true},
			{name: "payload", label: "Payload", hint: "JSON", kind: "json", required: true},
			{name: "tenant", label: "Tenant", kind: "text"},
			{name: "priority", label: "Priority", hint: "from 1 (first) to 10 (last)", kind: "number"},
			{name: "delay", label: "Delay", hint: "such as 10m; empty: due now", kind: "duration"},
			{name: "key", label: "Key", kind: "text"},
			{name: "labels", label: "Labels", hint: "NAME=VALUE, one a line", kind: "area"},
		},
		fill: func(ctx context.Context, v *visit, values url.Values) error {
			var job jobRow
			if err := v.freshJob(ctx, values.Get("id"), &job); err != nil {
				return err
			}
			fillJob(values, job)
			values.Set("queue", job.Queue)
			return nil
		},
		body: func(values url.Values) (map[string]any, error) {
			labels, err := readLabels(values.Get("labels"))
			if err != nil {
				return nil, err
			}
			body := map[string]any{"id": values.Get("act_id"), "labels": labels}
			for _, name := range []string{"queue", "tenant", "delay", "key"} {
				if text := strings.TrimSpace(values.Get(name)); text != "" {
					body[name] = text
				}
			}
			return body, jobFields(values, body)
		},
	}
}

// freshJob reads a job as it is now.
func (v *visit) freshJob(ctx context.Context, id string, into ...any) error {
	text, err := v.caller.send(ctx, http.MethodGet, "/jobs/"+url.PathEscape(id), nil, nil)
	for _, one := range into {
		if err == nil {
			err = json.Unmarshal(text, one)
		}
	}
	return err
}

// fillJob puts the content of a job into a form.
func fillJob(values url.Values, job jobRow) {
	values.Set("payload", indented(job.Payload))
	values.Set("priority", strconv.Itoa(job.Priority))
	values.Set("tenant", job.Tenant)
	var labels []string
	for _, name := range slices.Sorted(maps.Keys(job.Labels)) {
		labels = append(labels, name+"="+job.Labels[name])
	}
	values.Set("labels", strings.Join(labels, "\n"))
}

// jobFields reads payload, priority and due time of a form.
func jobFields(values url.Values, body map[string]any) error {
	for _, f := range []field{{name: "payload", kind: "json"}, {name: "priority", kind: "number"}, {name: "due_at", kind: "text"}} {
		text := strings.TrimSpace(values.Get(f.name))
		if text == "" {
			continue
		}
		value, err := f.read(text)
		if err != nil {
			return invalid(f.name, err)
		}
		body[f.name] = value
	}
	return nil
}

// readLabels reads labels, one a line.
func readLabels(text string) (map[string]string, error) {
	labels := make(map[string]string)
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		name, value, is := strings.Cut(line, "=")
		if !is {
			return nil, invalid("labels", fmt.Errorf("must be NAME=VALUE, not %.40q", line))
		}
		labels[name] = value
	}
	return labels, nil
}
