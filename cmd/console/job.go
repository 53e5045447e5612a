package console

import (
	"cmp"
	"context"
	"encoding/json"
	"html/template"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/cmd/httpapi"
	"github.com/sluice-queue/sluice/cmd/internal/draw"
	"github.com/sluice-queue/sluice/deadletter"
	"github.com/sluice-queue/sluice/explain"
	"github.com/sluice-queue/sluice/hold"
	"github.com/sluice-queue/sluice/internal/wire"
	"github.com/sluice-queue/sluice/progress"
)

// jobView is the view of /jobs/{id}.
type jobView struct {
	Job      jobRow
	Hold     *hold.Held
	Progress *progress.Report
	// Why says what the job waits for. Nil: the viewer's role does not ask, or WhyProblem says why it is not known.
	Why        *explain.Explanation
	WhyProblem *httpapi.Problem
	Attempts   []sluice.Attempt
	Audit      []sluice.AuditEntry
	Timeline   []step
	// Trees are payload, checkpoint and result, as far as the job has them.
	Trees []tree
	// Find is what the viewer looks for in the trees, and Found in how many places it is.
	Find      string
	Found     int
	Relations []relation
	Raw       string
}

// tree is a JSON value of a job, for people.
type tree struct {
	Title string
	Size  int
	Node  node
}

// relation is another thing that a job has to do with.
type relation struct{ Name, Text, URL string }

func loadJob(ctx context.Context, v *visit) (any, error) {
	id := v.pathOf("id")
	at := "/jobs/" + url.PathEscape(id)
	var raw json.RawMessage
	v.cli("sluice job " + quoted(id))
	if err := v.get(ctx, at, nil, &raw); err != nil {
		return nil, v.gone(ctx, id, err)
	}
	var view jobView
	more := struct {
		Hold     **hold.Held
		Progress **progress.Report
	}{&view.Hold, &view.Progress}
	for _, into := range []any{&view.Job, &more} {
		if err := json.Unmarshal(raw, into); err != nil {
			return nil, err
		}
	}
	var attempts struct {
		Attempts []sluice.Attempt `json:"attempts"`
	}
	if err := v.get(ctx, at+"/attempts", nil, &attempts); err != nil {
		return nil, err
	}
	view.Attempts = attempts.Attempts
	if v.may("explain-job") {
		v.cli("sluice why " + quoted(id))
		view.Why = new(explain.Explanation)
		if err := v.get(ctx, at+"/why", nil, view.Why); err != nil {
			view.Why, view.WhyProblem = nil, problemOf(err)
		}
	}
	causes := view.causes(ctx, v)
	view.Timeline = timelineOf(view, causes)
	if wait, are := unnamedIn(view.Timeline); are {
		view.Timeline = timelineOf(view, causes, view.likely(ctx, v, wait)...)
	}
	view.Relations = view.Job.relations(v, view.behind())
	view.Raw, view.Find = indented(raw), v.query.Get("find")
	for _, one := range []struct {
		title string
		text  json.RawMessage
	}{{"Payload", view.Job.Payload}, {"Checkpoint", view.Job.Checkpoint}, {"Result", view.Job.Result}} {
		if len(one.text) > 0 {
			shown, found := findTree(one.text, view.Find)
			view.Trees, view.Found = append(view.Trees, tree{one.title, len(one.text), shown}), view.Found+found
		}
	}
	return view, nil
}

// gone says of a job that is not there what is known all the same: when it was made, and what the audit last tells of it.
func (v *visit) gone(ctx context.Context, id string, err error) error {
	known, bad := sluice.ParseID(id)
	if bad != nil || statusOf(err) != http.StatusNotFound {
		return err
	}
	told := *problemOf(err)
	told.Why = "there is no job " + id
	if known[6]>>4 == 7 { // the ID begins with a time
		told.Why += "; its ID was made at " + known.Time().UTC().Format("2006-01-02 15:04:05") + " UTC"
	}
	told.Do = "compare the ID; if it is right, the job was deleted, or had ended and was pruned: keep_completed, keep_cancelled and keep_dead of its queue say after how long"
	var read struct {
		Entries []sluice.AuditEntry `json:"entries"`
	}
	if v.may("list-audit") && !v.viewer.bounded() {
		_ = v.read(ctx, "/audit", url.Values{"job": {id}, "limit": {"1"}}, &read)
	}
	for _, e := range read.Entries {
		told.Why += "; the audit last tells of it: " + string(e.Event) + " by " + e.Actor + " at " + e.At.UTC().Format("2006-01-02 15:04:05") + " UTC"
	}
	return &told
}

// causes reads who did what with the job, and what is noted that can have held it: pauses of its queue and its tenant, open
// breakers, and the jobs that it runs after. Where a read fails, the rest of the page is known.
func (j *jobView) causes(ctx context.Context, v *visit) (all []step) {
	type entries struct {
		Entries []sluice.AuditEntry `json:"entries"`
	}
	if v.may("list-audit") {
		var ofJob entries
		_ = v.get(ctx, "/audit", url.Values{"job": {j.Job.ID.String()}, "limit": {"200"}}, &ofJob)
		j.Audit = ofJob.Entries
		if !v.viewer.bounded() {
			var settings, ofQueue, ofTenant entries
			_ = v.read(ctx, "/queues/"+url.PathEscape(j.Job.Queue)+"/settings/history", nil, &settings)
			_ = v.read(ctx, "/audit", url.Values{"object": {"queue"}, "name": {j.Job.Queue}, "event": {string(audit.EventBreaker)}, "limit": {"100"}}, &ofQueue)
			all = append(pausesOf(settings.Entries), breakersOf(ofQueue.Entries)...)
			if j.Job.Tenant != "" {
				_ = v.read(ctx, "/audit", url.Values{"object": {"tenant"}, "name": {j.Job.Tenant}, "limit": {"50"}}, &ofTenant)
				all = append(all, tenantPausesOf(ofTenant.Entries, j.Job.Queue)...)
			}
		}
	}
	var before []jobRow
	for _, id := range j.Job.After[:min(len(j.Job.After), mostBefore)] {
		var one jobRow
		if v.read(ctx, "/jobs/"+id.String(), nil, &one) == nil { // it may be pruned
			before = append(before, one)
		}
	}
	return append(all, predecessorsOf(j.Job, before)...)
}

// mostBefore is how many of the jobs that a job runs after its page reads.
const mostBefore = 10

// Acts are the names of the acts that the state allows.
func (j jobView) Acts() []string {
	switch state := j.Job.State; {
	case state == sluice.StateQueued && j.Hold != nil:
		return []string{"release-jobs", "reschedule-jobs", "edit-job", "cancel-jobs"}
	case state == sluice.StateQueued:
		return []string{"run-now-jobs", "reschedule-jobs", "hold-jobs", "edit-job", "cancel-jobs"}
	case state == sluice.StateUncertain:
		return []string{"complete-jobs", "fail-jobs", "requeue-jobs"}
	case state == sluice.StateDead:
		return []string{"retry-jobs", "requeue-jobs", "delete-jobs"}
	case state == sluice.StateCancelled:
		return []string{"retry-jobs", "requeue-jobs", "terminate-jobs", "delete-jobs"}
	case state == sluice.StateCompleted:
		return nil
	}
	return []string{"cancel-jobs"}
}

// Closed reports whether the job waits for something.
func (j jobView) Closed() bool { return j.Why != nil && len(j.Why.Closed()) > 0 }

// Percent is how far the running attempt is.
func (j jobView) Percent() string { return draw.Percent(0, j.Progress.Fraction) }

// relations are the things that a job has to do with.
func (j jobRow) relations(v *visit, behind []sluice.ID) (all []relation) {
	add := func(name, text, at string) {
		if text != "" {
			all = append(all, relation{name, text, at})
		}
	}
	jobs := func(field, value string) string {
		if strings.Contains(value, `"`) {
			return ""
		}
		return v.console.url("/jobs", "q", field+`:"`+value+`"`)
	}
	if !j.BlockedBy.IsZero() && j.BlockedBy != j.ID {
		add("Waits for job", j.BlockedBy.String(), v.console.url("/jobs/"+j.BlockedBy.String()))
	}
	for _, id := range j.After {
		add("Runs after job", id.String(), v.console.url("/jobs/"+id.String()))
	}
	for _, id := range behind {
		add("Runs before job", id.String(), v.console.url("/jobs/"+id.String()))
	}
	if !j.Batch.IsZero() {
		add("Batch", j.Batch.String(), v.console.url("/batches/"+j.Batch.String()))
	}
	if id, err := sluice.ParseID(j.Labels["flow"]); err == nil {
		add("Flow", id.String(), v.console.url("/flows/"+id.String()))
	}
	if trace, span := j.trace(); trace != "" {
		add("Trace", trace, fillIn(v.console.options.TracePage, url.Values{"trace_id": {trace}, "span_id": {span}}, url.PathEscape))
	}
	add("Key", j.Key, jobs("key", j.Key))
	add("Order key", j.OrderKey, jobs("order_key", j.OrderKey))
	add("Limit key", j.LimitKey, jobs("limit_key", j.LimitKey))
	if j.Error != "" && j.State == sluice.StateDead {
		add("Alike failures", deadletter.Fingerprint(j.Queue, j.Error), v.console.url("/dead/"+deadletter.Fingerprint(j.Queue, j.Error)))
	}
	return all
}

// behind are some jobs that run after the job, or wait for it now.
func (j jobView) behind() []sluice.ID {
	if j.Why == nil {
		return nil
	}
	return j.Why.Behind
}

var traceparent = regexp.MustCompile(`^[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}`)

// trace is the trace within which the job was enqueued, by its label of the W3C. Empty: none is known.
func (j jobRow) trace() (trace, span string) {
	if found := traceparent.FindStringSubmatch(j.Labels["traceparent"]); found != nil {
		return found[1], found[2]
	}
	return "", ""
}

var idInText = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)

// Linked shows a text with links to the jobs that it names.
func (s *screen) Linked(text string) template.HTML {
	var out strings.Builder
	from := 0
	for _, at := range idInText.FindAllStringIndex(text, -1) {
		id := text[at[0]:at[1]]
		out.WriteString(template.HTMLEscapeString(text[from:at[0]]))
		out.WriteString(`<a href="` + template.HTMLEscapeString(s.visit.console.url("/jobs/"+id)) + `">` + id + `</a>`)
		from = at[1]
	}
	out.WriteString(template.HTMLEscapeString(text[from:]))
	return template.HTML(out.String()) //nolint:gosec // all but the links is escaped
}

// RunPage is the page of a job's run in the engine's own console. Empty: nobody has said where that is, or the job no longer
// knows its namespace.
func (s *screen) RunPage(j jobRow) string {
	at := s.visit.console.options.RunPage
	engine, namespace, _ := strings.Cut(j.Engine, "/")
	if j.Ref == "" || engine == "" && (strings.Contains(at, "{namespace}") || strings.Contains(at, "{engine}")) {
		return ""
	}
	return fillIn(at, url.Values{"engine": {engine}, "namespace": {cmp.Or(namespace, "default")}, "ref": {j.Ref}}, url.PathEscape)
}

func loadRun(ctx context.Context, v *visit) (any, error) {
	var view wire.RunView
	err := v.get(ctx, "/jobs/"+url.PathEscape(v.pathOf("id"))+"/run", nil, &view)
	return view, err
}
