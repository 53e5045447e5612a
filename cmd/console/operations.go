package console

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/sluice-queue/sluice/cmd/internal/draw"
	"github.com/sluice-queue/sluice/operation"
	"github.com/sluice-queue/sluice/search"
)

func operationPages() []page {
	return []page{
		{name: "operations", path: "/operations", title: "Operations", letter: "p", load: loadOperations},
		{name: "operation", path: "/operations/{id}", title: "Operation", load: loadOperation},
	}
}

// operationRow is an operation on a page.
type operationRow struct{ operation.Operation }

// Where is the filter of its jobs, as people write it.
func (o operationRow) Where() string {
	if o.Backfill != nil {
		return "fires of " + o.Backfill.Schedule
	}
	return whereText(o.Query)
}

// Ended counts the jobs that it has dealt with.
func (o operationRow) Ended() int { return o.Done + o.Skipped + o.Failed }

// Known reports whether it is known how many jobs there are to deal with.
func (o operationRow) Known() bool {
	_, known := o.Total()
	return known
}

// Share is how much is done, 0 to 1. 0 also if the whole is not known.
func (o operationRow) Share() float64 {
	total, known := o.Total()
	switch {
	case o.State == operation.StateDone:
		return 1
	case !known:
		return 0
	}
	return float64(o.Ended()) / float64(max(total, 1))
}

// Expect says how many jobs there are to deal with.
func (o operationRow) Expect() string {
	total, known := o.Total()
	return draw.Total(total, known, o.ExpectedMore)
}

// Trying reports whether it waits for its canary.
func (o operationRow) Trying() bool {
	return o.Canary > 0 && o.Done <= o.Canary && !o.State.Ended()
}

// Until is when it will probably have ended. Zero: that is not known.
func (o operationRow) Until() time.Time {
	pace := o.Rate.PerSecond()
	if passed := o.UpdatedAt.Sub(o.CreatedAt).Seconds(); pace == 0 && passed > 0 {
		pace = float64(o.Ended()) / passed
	}
	if _, known := o.Total(); !known || o.State != operation.StateRunning || o.Trying() || pace <= 0 || o.Left() == 0 {
		return time.Time{}
	}
	return o.UpdatedAt.Add(time.Duration(float64(o.Left()) / pace * float64(time.Second)))
}

// Pace is its rate for people.
func (o operationRow) Pace() string {
	if o.Rate.IsZero() {
		return "as fast as upkeep can"
	}
	return o.Rate.String()
}

// Acts are the names of the acts that the state allows.
func (o operationRow) Acts() []string {
	switch o.State {
	case operation.StateRunning:
		return []string{"pause-operation", "pace-operation", "stop-operation"}
	case operation.StatePaused:
		return []string{"resume-operation", "pace-operation", "stop-operation"}
	}
	return nil
}

// whereText writes a query as a filter.
func whereText(q search.Query) string {
	var words []string
	named := map[string]bool{}
	for _, term := range q.Terms {
		named[term.Field] = true
		word := term.Field + ":"
		if term.Not {
			word = "-" + word
		}
		for i, value := range term.Values {
			if i > 0 {
				word += ","
			}
			word += valueText(term.Field, value)
		}
		words = append(words, word)
	}
	add := func(field, value string) {
		if value != "" && !named[field] {
			words = append(words, field+":"+valueText(field, "="+value))
		}
	}
	add("queue", q.Queue)
	add("tenant", q.Tenant)
	add("key", q.Key)
	add("fp", q.Fingerprint)
	for _, name := range slices.Sorted(maps.Keys(q.Labels)) {
		add("label."+name, q.Labels[name])
	}
	if len(q.States) > 0 && !named["state"] {
		words = append(words, "state:"+strings.Trim(strings.ReplaceAll(fmt.Sprint(q.States), " ", ","), "[]"))
	}
	if q.Error != "" {
		words = append(words, `error:`+valueText("error", "~"+q.Error))
	}
	if !q.Batch.IsZero() {
		add("batch", q.Batch.String())
	}
	return strings.Join(words, " ")
}

// valueText writes a stored value of a term.
func valueText(field, value string) string {
	if field == "state" || value == "" || !strings.ContainsAny(value[:1], "=^~") {
		return value
	}
	kind, text := value[:1], value[1:]
	if text == "" || strings.ContainsAny(text, " \t\n,") {
		text = `"` + text + `"`
	}
	if kind == "~" {
		return "~" + text
	}
	return text
}

// operationList is the view of /operations.
type operationList struct {
	Operations []operationRow `json:"operations"`
	Open       bool
}

func loadOperations(ctx context.Context, v *visit) (any, error) {
	view := operationList{Open: v.query.Get("open") == "true"}
	query := url.Values{"limit": {"100"}}
	command := "sluice operations ls"
	if view.Open {
		query.Set("open", "true")
		command += " --open"
	}
	v.cli(command)
	err := v.get(ctx, "/operations", query, &view)
	return view, err
}

// operationView is the view of /operations/{id}.
type operationView struct {
	Operation operationRow
	// Log has what people and upkeep did to the operation, the first entry first, and Samples some of the jobs on which it acted.
	Log     []auditEntry
	Samples []auditEntry
	// Bounded says that the viewer may not read the audit.
	Bounded bool
}

func loadOperation(ctx context.Context, v *visit) (any, error) {
	var view operationView
	id := v.pathOf("id")
	v.cli("sluice operations get " + quoted(id))
	if err := v.get(ctx, "/operations/"+url.PathEscape(id), nil, &view.Operation); err != nil {
		return nil, err
	}
	if view.Bounded = v.viewer.bounded(); view.Bounded {
		return view, nil
	}
	v.cli("sluice audit --object operation --name " + quoted(id))
	log, err := v.entries(ctx, cacheFor, "/audit", url.Values{"object": {"operation"}, "name": {id}, "limit": {"50"}})
	if err != nil {
		return nil, err
	}
	slices.Reverse(log)
	view.Log, view.Samples = log, v.samplesOf(ctx, view.Operation)
	return view, nil
}

func operationActs() []act {
	on := func(verb, label, undo, sentence string) act {
		return act{
			name: verb + "-operation", label: label, route: verb + "-operation", undo: undo, sentence: sentence,
			command: "sluice operations " + verb + " {id} --reason={reason}",
		}
	}
	pace := on("pace", "Change the pace", "", "The operation goes on at another pace.")
	pace.command = "sluice operations pace {id} {rate} --reason={reason}"
	pace.fields = []field{{name: "rate", label: "Pace", hint: "such as 50/s; 0: as fast as upkeep can", kind: "text", required: true}}
	stop := on("stop", "Stop", "", "The operation ends after its present batch. It cannot go on later; its acts stay done.")
	stop.danger = true
	return append(undoActs(),
		on("pause", "Pause", "resume-operation", "The operation pauses after its present batch."),
		on("resume", "Resume", "pause-operation", "The operation goes on."), pace, stop,
	)
}

// did is the past tense of an operation's kind.
var did = map[operation.Kind]string{
	operation.KindRequeue: "requeued", operation.KindCancel: "cancelled", operation.KindReschedule: "rescheduled", operation.KindDelete: "deleted",
	operation.KindHold: "held", operation.KindRelease: "released", operation.KindBackfill: "made", operation.KindEdit: "edited",
}

// Did says in a word what it does to a job.
func (o operationRow) Did() string { return cmp.Or(did[o.Kind], string(o.Kind)) }
