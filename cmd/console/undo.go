package console

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/cmd/httpapi"
	"github.com/sluice-queue/sluice/operation"
)

// undoing says which act takes an operation of a kind back. Without an act, why says what stands against it.
type undoing struct {
	act, why string
	// Events are what the operation does to a job, and what takes it back. The newest of them says whether the job is as the
	// operation left it.
	events []sluice.Event
}

// undoings are the ways back, by the kind of the operation.
var undoings = map[operation.Kind]undoing{
	operation.KindHold:       {act: "undo-hold-operation", events: []sluice.Event{audit.EventHold, audit.EventReleaseHold}},
	operation.KindRelease:    {act: "undo-release-operation", events: []sluice.Event{audit.EventReleaseHold, audit.EventHold}},
	operation.KindReschedule: {act: "undo-reschedule-operation", events: []sluice.Event{sluice.EventReschedule, audit.EventEdit}},
	operation.KindRequeue:    {act: "undo-requeue-operation", events: []sluice.Event{sluice.EventRequeue, sluice.EventUndo}},
	operation.KindCancel:     {why: "a cancelled job has ended, and its handler may have stopped halfway; a requeue begins a new life", events: []sluice.Event{sluice.EventCancel}},
	operation.KindDelete:     {why: "the store has deleted the jobs", events: []sluice.Event{audit.EventDelete}},
	operation.KindEdit:       {why: "each job had a value of its own; the samples and the audit show the values before", events: []sluice.Event{audit.EventEdit}},
	operation.KindBackfill:   {why: "the jobs of the fires are there; cancel those that still wait"},
}

// Undo names the act that takes the operation back. Empty: see NoUndo.
func (o operationRow) Undo() string {
	if !o.State.Ended() || o.Done == 0 {
		return ""
	}
	return undoings[o.Kind].act
}

// NoUndo says why the operation cannot be taken back.
func (o operationRow) NoUndo() string {
	switch {
	case o.Undo() != "":
		return ""
	case undoings[o.Kind].act == "":
		return undoings[o.Kind].why
	case o.Done == 0:
		return "it has changed no job"
	}
	return "it has not ended; stop it first"
}

// made reports whether the operation wrote an entry about a job: each of its acts has its ID behind the reason.
func (o operationRow) made(e sluice.AuditEntry) bool {
	return e.Actor == o.By && strings.HasSuffix(e.Reason, "(operation "+o.ID.String()+")")
}

// samplesOf are some jobs on which an operation acted last, with what it changed. An error leaves them out, as the rest of the
// page is known.
func (v *visit) samplesOf(ctx context.Context, o operationRow) (found []auditEntry) {
	did := undoings[o.Kind].events
	if len(did) == 0 || o.Done == 0 {
		return nil
	}
	entries, err := v.entries(ctx, seriesFor, "/audit", url.Values{
		"object": {"job"}, "event": {string(did[0])}, "actor": {o.By}, "limit": {"100"},
		// People share the answer for a while, so the end is one for all.
		"from": {instant(o.CreatedAt)}, "to": {instant(o.UpdatedAt.Truncate(seriesFor).Add(2 * seriesFor))},
	})
	if err != nil {
		return nil
	}
	for _, e := range entries {
		if o.made(e.AuditEntry) && len(found) < samplesShown {
			found = append(found, e)
		}
	}
	return found
}

// instant writes an instant for the API.
func instant(at time.Time) string { return at.UTC().Format(time.RFC3339Nano) }

// The bounds of one undo.
const (
	undoneAtOnce = 1000 // jobs
	undoReads    = 20   // pages of the audit, of 1,000 entries each
)

// undoable sets the values ids to the jobs that still are as the operation of the value id left them, as far as the audit
// says. What else may stand against an undo, such as a claim, the store knows: it refuses those jobs.
func undoable(ctx context.Context, v *visit, values url.Values) (preview, error) {
	var o operationRow
	if err := v.read(ctx, "/operations/"+url.PathEscape(values.Get("id")), nil, &o); err != nil {
		return preview{}, err
	}
	if why := o.NoUndo(); why != "" {
		return preview{}, notUndone(why, "see the operation")
	}
	newest := make(map[sluice.ID]sluice.AuditEntry)
	reads := undoReads
	for _, event := range undoings[o.Kind].events {
		if err := v.newestOf(ctx, event, o.CreatedAt, &reads, newest); err != nil {
			return preview{}, err
		}
	}
	var left []sluice.AuditEntry
	for _, e := range newest {
		if o.made(e) {
			left = append(left, e)
		}
	}
	if len(left) == 0 {
		return preview{}, notUndone("no job is as the operation left it: others have changed them since", "see the jobs' audit")
	}
	slices.SortFunc(left, func(a, b sluice.AuditEntry) int { return cmp.Compare(b.Seq, a.Seq) })
	more := len(left) > undoneAtOnce
	values.Del("ids")
	for _, e := range left[:min(len(left), undoneAtOnce)] {
		values.Add("ids", e.JobID.String())
	}
	out, err := chosenJobs(ctx, v, values)
	out.More = more
	return out, err
}

// newestOf adds the newest entry of each job since an instant, of an event.
func (v *visit) newestOf(ctx context.Context, event sluice.Event, since time.Time, reads *int, newest map[sluice.ID]sluice.AuditEntry) error {
	query := url.Values{"object": {"job"}, "event": {string(event)}, "from": {instant(since)}, "limit": {"1000"}}
	for ; *reads > 0; *reads-- {
		var read struct {
			Entries []sluice.AuditEntry `json:"entries"`
			Next    int64               `json:"next"`
		}
		if err := v.read(ctx, "/audit", query, &read); err != nil {
			return err
		}
		for _, e := range read.Entries {
			if e.Seq > newest[e.JobID].Seq {
				newest[e.JobID] = e
			}
		}
		if read.Next == 0 {
			return nil
		}
		query.Set("before", strconv.FormatInt(read.Next, 10))
	}
	return notUndone("the audit has too many acts since the operation to find its jobs here", "choose the jobs by a filter, and act on all that match")
}

// notUndone refuses an undo.
func notUndone(why, do string) error {
	return &httpapi.Problem{Status: http.StatusUnprocessableEntity, Title: "Not undone", Why: why, Do: do}
}

// undoActs take operations back, by the acts on jobs.
func undoActs() []act {
	back := func(kind, by, command, sentence string, more map[string]any) act {
		return act{
			name: "undo-" + kind + "-operation", label: "Undo", route: by + "-jobs", needsReason: true, preview: undoable,
			command:  command + " {ids*} --reason={reason}",
			sentence: sentence + " Jobs that began or changed since the operation stay as they are. One undo takes back at most 1,000 jobs, the last ones first.",
			body: func(values url.Values) (map[string]any, error) {
				body := map[string]any{"ids": values["ids"]}
				for name, value := range more {
					body[name] = value
				}
				return body, nil
			},
		}
	}
	undo := map[string]any{"undo": true}
	return []act{
		back("hold", "release", "sluice release", "The jobs that the operation held are released.", nil),
		back("release", "hold", "sluice hold", "The jobs that the operation released, and that still wait, are held again, for the reason that you give.", nil),
		back("reschedule", "reschedule", "sluice reschedule --undo", "The jobs get the due time back that they had before the operation.", undo),
		back("requeue", "requeue", "sluice requeue --undo", "The requeued jobs that still wait, and were not claimed since, are dead or cancelled again.", undo),
	}
}
