package console

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/audit"
)

// step is a part of a job's life: work, or a wait with its cause.
type step struct {
	// Kind is wait, work, bad, good or next.
	Kind string
	Text string
	// Detail says more, such as the error of an attempt.
	Detail   string
	From, To time.Time
	// Branch says that the step is a try beside the main line.
	Branch bool
	// Unnamed says that nobody noted the cause of the wait, which was no moment.
	Unnamed bool
	// X and Width place the bar, in percent of the whole time.
	X, Width float64
}

// Took is how long the step took.
func (s step) Took() string { return spanText(s.To.Sub(s.From)) }

// spanText is a duration for people, such as 3 min 12 s.
func spanText(d time.Duration) string {
	if d < time.Second {
		return fmt.Sprintf("%d ms", d.Milliseconds())
	}
	units := []struct {
		size time.Duration
		name string
	}{{24 * time.Hour, "d"}, {time.Hour, "h"}, {time.Minute, "min"}, {time.Second, "s"}}
	for i, u := range units {
		if d < u.size {
			continue
		}
		text := fmt.Sprintf("%d %s", d/u.size, u.name)
		if rest := d % u.size; i+1 < len(units) && rest >= units[i+1].size {
			text += fmt.Sprintf(" %d %s", rest/units[i+1].size, units[i+1].name)
		}
		return text
	}
	return ""
}

// waits names what a job waits for, by the reason that explains it.
var waits = map[string]string{
	"held": "a release: it is held", "open_run": "its former run to end", "blocked": "the job that holds its key", "order_key": "earlier jobs of its order key",
	"after": "the jobs that it runs after", "expiry": "upkeep, which cancels it", "due": "its due time", "paused": "its queue, which is paused",
	"rate": "the rate of the queue", "in_flight": "the concurrency of the queue", "limit": "a shared limit", "tenant": "its tenant, which is paused",
	"concurrency": "tenant concurrency", "tenant_rate": "the rate of its tenant", "order": "its turn", "workers": "a worker", "dispatchers": "a dispatcher",
}

// shortest is the shortest wait that is worth a line.
const shortest = 20 * time.Millisecond

// timelineOf tells the life of a job: its waits with their causes, as far as somebody noted them, and its tries. Likely are causes
// that nobody noted, by their beginning.
func timelineOf(j jobView, causes []step, likely ...step) []step {
	t := teller{job: j.Job, causes: append(holdsOf(j.Audit), causes...), likely: likely, requeues: requeuesOf(j.Audit)}
	slices.SortFunc(t.causes, func(a, b step) int { return a.From.Compare(b.From) })
	at := j.Job.CreatedAt
	for _, one := range t.tries(j.Attempts, j.Audit) {
		t.wait(at, one.From)
		t.steps = append(t.steps, one)
		at = one.To
	}
	switch state := j.Job.State; {
	case state == sluice.StateQueued:
		t.now(at, j)
	case state.Finished() && j.Job.FinishedAt.Sub(at) > shortest:
		t.wait(at, j.Job.FinishedAt)
	}
	return placed(t.steps)
}

// teller tells the life of a job.
type teller struct {
	job      jobRow
	causes   []step // of waits, by their beginning
	likely   []step // causes that nobody noted
	requeues []sluice.AuditEntry
	steps    []step
}

// tries are the attempts and the last claim, by their beginning.
func (t *teller) tries(attempts []sluice.Attempt, entries []sluice.AuditEntry) []step {
	var all []step
	known := map[int64]bool{}
	for _, a := range attempts {
		known[a.ClaimedAt.UnixMilli()] = true
		all = append(all, step{Kind: "bad", Branch: true, From: a.ClaimedAt, To: a.FailedAt, Text: fmt.Sprintf("attempt %d failed", a.Attempt), Detail: sluice.Brief(a.Error)})
	}
	all = append(all, claimsOf(entries, known)...)
	if j := t.job; !j.ClaimedAt.IsZero() && !known[j.ClaimedAt.UnixMilli()] && j.State != sluice.StateQueued {
		all = append(all, lastClaim(j)...)
	}
	slices.SortFunc(all, func(a, b step) int { return cmp.Or(a.From.Compare(b.From), a.To.Compare(b.To)) })
	return all
}

// lastClaim is the present or last claim of a job, with the start of its run.
func lastClaim(j jobRow) (all []step) {
	end := j.FinishedAt
	if end.IsZero() {
		end = time.Now()
	}
	from := j.ClaimedAt
	if !j.DispatchedAt.IsZero() {
		all = append(all, step{Kind: "work", From: from, To: j.DispatchedAt, Text: "started its run", Detail: j.Holder})
		from = j.DispatchedAt
	}
	one := step{Kind: "work", From: from, To: end, Text: fmt.Sprintf("attempt %d runs", j.Attempts+1), Detail: j.Holder}
	switch {
	case !j.DispatchedAt.IsZero() && j.State == sluice.StateDispatched:
		one.Text, one.Detail = "runs at "+j.Engine, j.Ref
	case j.State == sluice.StateCompleted:
		one.Kind, one.Text = "good", fmt.Sprintf("attempt %d completed", j.Attempts+1)
	case j.State == sluice.StateUncertain:
		one.Kind, one.Text = "bad", "its outcome is not known"
	case j.State == sluice.StateCancelled:
		one.Kind, one.Text = "bad", "was cancelled while it ran"
	case j.State == sluice.StateDead:
		one.Kind, one.Text, one.Detail = "bad", "failed", sluice.Brief(j.Error)
	}
	return append(all, one)
}

// claimsOf are the claims that were handed back or lost, of a full audit. Known are those that are told already.
func claimsOf(entries []sluice.AuditEntry, known map[int64]bool) (all []step) {
	var claimed time.Time
	for _, e := range slices.Backward(entries) {
		switch e.Event {
		case sluice.EventClaim:
			claimed = e.At
		case sluice.EventRelease, sluice.EventRecover:
			if claimed.IsZero() || known[claimed.UnixMilli()] {
				continue
			}
			text := "was handed back"
			if e.Event == sluice.EventRecover {
				text = "lost its holder"
			}
			known[claimed.UnixMilli()] = true
			all = append(all, step{Kind: "bad", Branch: true, From: claimed, To: e.At, Text: text, Detail: e.Reason})
			claimed = time.Time{}
		}
	}
	return all
}

// wait tells a wait that is over, part by part.
func (t *teller) wait(from, to time.Time) {
	for _, e := range t.requeues { // the life before has ended
		if e.At.After(from) && !e.At.After(to) {
			t.add(step{Kind: "next", From: from, To: e.At, Text: "had ended, until " + e.Actor + " requeued it", Detail: e.Reason})
			from = e.At
		}
	}
	if due := t.job.DueAt; due.After(from) && !due.After(to) {
		text := "waited for its due time"
		if t.afterFailure() {
			text = "waited for the backoff"
		}
		t.add(step{Kind: "wait", From: from, To: due, Text: text})
		from = due
	}
	t.parts(from, to, t.causes, t.unnamed)
}

// parts tells a wait by its causes. Rest tells what is between them.
func (t *teller) parts(from, to time.Time, causes []step, rest func(from, to time.Time)) {
	for _, c := range causes {
		begin, end := latest(c.From, from), c.To
		if end.IsZero() || end.After(to) {
			end = to
		}
		if end.Sub(begin) <= shortest {
			continue
		}
		rest(from, begin)
		t.add(step{Kind: "wait", From: begin, To: end, Text: c.Text, Detail: c.Detail})
		from = end
	}
	rest(from, to)
}

// unnamed tells a wait of which nobody noted the cause. The due times of former tries are forgotten: a wait for one is not named
// by what is likely.
func (t *teller) unnamed(from, to time.Time) {
	known := !t.afterFailure() && !t.job.DueAt.After(from)
	turn := func(from, to time.Time) {
		took := to.Sub(from)
		t.add(step{Kind: "wait", From: from, To: to, Text: t.turn(took), Unnamed: known && took >= unnoted})
	}
	if !known {
		turn(from, to)
		return
	}
	t.parts(from, to, t.likely, turn)
}

// unnamedIn is the part of a timeline that has the waits of which nobody noted the cause, if there are any.
func unnamedIn(steps []step) (all span, are bool) {
	for _, s := range steps {
		if !s.Unnamed {
			continue
		}
		if !are {
			all.from = s.From
		}
		all.to, are = s.To, true
	}
	return all, are
}

// unnoted is from when a wait without a noted cause is said to be so: each job waits a moment for its claim.
const unnoted = time.Second

// turn names a wait of which nobody noted the cause.
func (t *teller) turn(took time.Duration) string {
	text := "waited for its turn"
	switch {
	case t.afterFailure():
		text = "waited for the backoff and its turn"
	case t.job.OrderKey != "":
		text = "waited for its turn, or for earlier jobs of its order key"
	}
	if took < unnoted {
		return text
	}
	return text + "; which limit held it is not known"
}

// afterFailure reports whether the last step was an attempt that failed.
func (t *teller) afterFailure() bool {
	last := len(t.steps) - 1
	return last >= 0 && strings.HasPrefix(t.steps[last].Text, "attempt")
}

// add adds a step that is long enough.
func (t *teller) add(s step) {
	if s.To.Sub(s.From) > shortest {
		t.steps = append(t.steps, s)
	}
}

// now tells the wait that goes on, and when it should end.
func (t *teller) now(from time.Time, j jobView) {
	now := time.Now()
	for _, e := range t.requeues {
		if e.At.After(from) {
			t.add(step{Kind: "next", From: from, To: e.At, Text: "had ended, until " + e.Actor + " requeued it", Detail: e.Reason})
			from = e.At
		}
	}
	one := step{Kind: "wait", From: from, To: latest(now, from), Text: "waits for its turn"}
	if j.Closed() {
		reason := j.Why.Closed()[0]
		one.Text, one.Detail = "waits for "+cmp.Or(waits[reason.Name], strings.ReplaceAll(reason.Name, "_", " ")), reason.Summary
	}
	t.steps = append(t.steps, one)
	if j.Why != nil && j.Why.Start.After(now) {
		text := "should start then, if nothing changes"
		if j.Why.Estimate != "" {
			text = "may start at about then, by an estimate"
		}
		t.add(step{Kind: "next", From: now, To: j.Why.Start, Text: text})
	}
}

// latest returns the later instant.
func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// holdsOf are the times in which somebody held the job.
func holdsOf(entries []sluice.AuditEntry) (all []step) {
	for _, e := range slices.Backward(entries) {
		switch e.Event {
		case audit.EventHold:
			all = append(all, step{From: e.At, Text: "was held by " + e.Actor, Detail: e.Reason})
		case audit.EventReleaseHold:
			if last := len(all) - 1; last >= 0 && all[last].To.IsZero() {
				all[last].To = e.At
			}
		}
	}
	return all
}

// pauseNote is what an audit entry says about a pause. A nil field: the entry is about something else.
type pauseNote struct {
	Paused *bool   `json:"paused"`
	Until  string  `json:"paused_until"`
	Tenant *string `json:"tenant"`
	Queue  string  `json:"queue"`
}

// pausesOf are the times in which the queue was paused.
func pausesOf(changes []sluice.AuditEntry) (all []step) {
	for _, e := range slices.Backward(changes) {
		var after pauseNote
		if _ = json.Unmarshal(e.After, &after); after.Paused != nil { // a breaker and a batch say nothing of it
			all = paused(all, e, *after.Paused, after.Until, "its queue")
		}
	}
	return all
}

// tenantPausesOf are the times in which the tenant was paused, in every queue or in the job's.
func tenantPausesOf(changes []sluice.AuditEntry, queue string) []step {
	by := make(map[string][]step)
	for _, e := range slices.Backward(changes) {
		var after pauseNote
		if _ = json.Unmarshal(e.After, &after); after.Tenant != nil && (after.Queue == "" || after.Queue == queue) { // else of its tier
			by[after.Queue] = paused(by[after.Queue], e, after.Paused != nil && *after.Paused, after.Until, "its tenant")
		}
	}
	return append(by[""], by[queue]...)
}

// paused adds the begin or the end of a pause.
func paused(all []step, e sluice.AuditEntry, begins bool, untilText, what string) []step {
	until, _ := time.Parse(time.RFC3339, untilText) // an empty end is none
	last := len(all) - 1
	switch open := last >= 0 && (all[last].To.IsZero() || all[last].To.After(e.At)); {
	case begins && !open:
		all = append(all, step{From: e.At, To: until, Text: "waited for " + what + ", which " + e.Actor + " had paused", Detail: e.Reason})
	case !begins && open:
		all[last].To = e.At
	}
	return all
}

// breakersOf are the times in which a dispatcher could not use the engine of the queue.
func breakersOf(changes []sluice.AuditEntry) (all []step) {
	for _, e := range slices.Backward(changes) {
		if e.Event != audit.EventBreaker {
			continue
		}
		last := len(all) - 1
		why, opened := strings.CutPrefix(e.Reason, "opened: ")
		switch open := last >= 0 && all[last].To.IsZero(); {
		case opened && !open:
			all = append(all, step{From: e.At, Text: "waited for the engine, which a dispatcher could not use", Detail: why})
		case !opened && open:
			all[last].To = e.At
		}
	}
	return all
}

// predecessorsOf are the waits for the jobs that the job runs after, until the last of them ended.
func predecessorsOf(job jobRow, before []jobRow) []step {
	last := jobRow{}
	for _, b := range before {
		if b.FinishedAt.After(last.FinishedAt) {
			last = b
		}
	}
	if last.FinishedAt.IsZero() {
		return nil
	}
	return []step{{From: job.CreatedAt, To: last.FinishedAt, Text: "waited for the jobs that it runs after", Detail: "the last was " + last.ID.String()}}
}

// requeuesOf are the begins of new lives, the first one first.
func requeuesOf(entries []sluice.AuditEntry) (all []sluice.AuditEntry) {
	for _, e := range slices.Backward(entries) {
		if e.Event == sluice.EventRequeue {
			all = append(all, e)
		}
	}
	return all
}

// placed sets the bars of steps.
func placed(steps []step) []step {
	if len(steps) == 0 {
		return nil
	}
	begin, end := steps[0].From, steps[0].To
	for _, s := range steps {
		end = latest(end, s.To)
	}
	whole := end.Sub(begin).Seconds()
	for i := range steps {
		s := &steps[i]
		if whole > 0 {
			s.X, s.Width = 100*s.From.Sub(begin).Seconds()/whole, 100*s.To.Sub(s.From).Seconds()/whole
		}
		s.Width = max(s.Width, 0.5)
		s.X = min(s.X, 100-s.Width)
	}
	return steps
}
