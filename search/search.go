// Package search finds jobs by criteria beyond a store's indexes, such as a fingerprint, a text in the error, or a
// span of time.
//
// Begin with [Jobs], which finds the jobs that a [Query] chooses. [Preview] only counts them.
//
// Read next: package operation acts on all jobs that match a query.
package search

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/deadletter"
	"github.com/sluice-queue/sluice/hold"
	"github.com/sluice-queue/sluice/internal/feature"
)

// Query chooses jobs. The store looks up the fields that [sluice.JobFilter] has; the other fields are compared job
// by job. The zero value chooses all jobs, and each field that is set narrows the choice.
type Query struct {
	// Queue, Tenant, Key, States and Labels choose jobs by those fields. A Queue that is a group, such as mail.*,
	// chooses the jobs of all its queues. Default: any.
	Queue  string            `json:"queue,omitempty"`
	Tenant string            `json:"tenant,omitempty"`
	Key    string            `json:"key,omitempty"`
	States []sluice.State    `json:"states,omitempty"`
	Labels map[string]string `json:"labels,omitempty"`
	// Batch chooses the jobs of a batch and of all batches in it. Default: any.
	Batch sluice.ID `json:"batch,omitzero"`
	// MinAttempts is the least number of failed attempts, and MinRecoveries of lost holders. Default: 0.
	MinAttempts   int `json:"min_attempts,omitempty"`
	MinRecoveries int `json:"min_recoveries,omitempty"`
	// Fingerprint is the fingerprint of the job's queue and error; see deadletter.Fingerprint. Default: any.
	Fingerprint string `json:"fingerprint,omitempty"`
	// Error is a part of the job's error text. Default: any.
	Error string `json:"error,omitempty"`
	// DueFrom and DueBefore are the earliest due time, and the first due time too late. CreatedFrom and
	// CreatedBefore are the same for CreatedAt. Default: no bound.
	DueFrom       time.Time `json:"due_from,omitzero"`
	DueBefore     time.Time `json:"due_before,omitzero"`
	CreatedFrom   time.Time `json:"created_from,omitzero"`
	CreatedBefore time.Time `json:"created_before,omitzero"`
	// Held chooses the jobs that somebody holds; see package hold. Default: any.
	Held bool `json:"held,omitempty"`
	// Terms are further conditions, which [Parse] reads from a filter. Default: none.
	Terms []Term `json:"terms,omitempty"`
	// ThereAt leaves out jobs that were created or finished after the instant. Default: no bound.
	ThereAt time.Time `json:"there_at,omitzero"`
}

// Matches reports whether the query chooses a job. It cannot tell a hold from a wait for an orphan run: with Held, it
// chooses both, and [ReadPage] reads the holds. Nor can it tell which batches are in Batch: the store finds their jobs.
func (q Query) Matches(j sluice.Job) bool {
	switch {
	case !q.holds(j.Queue),
		q.Tenant != "" && j.Tenant != q.Tenant,
		q.Key != "" && j.Key != q.Key,
		len(q.States) > 0 && !slices.Contains(q.States, j.State),
		q.Held && !mayBeHeld(j),
		j.Attempts < q.MinAttempts, j.Recoveries < q.MinRecoveries,
		!within(j.DueAt, q.DueFrom, q.DueBefore),
		!within(j.CreatedAt, q.CreatedFrom, q.CreatedBefore),
		!q.ThereAt.IsZero() && (j.CreatedAt.After(q.ThereAt) || j.FinishedAt.After(q.ThereAt)),
		q.Error != "" && !strings.Contains(j.Error, q.Error):
		return false
	}
	for name, value := range q.Labels {
		if got, has := j.Labels[name]; !has || got != value {
			return false
		}
	}
	for _, term := range q.Terms {
		if !term.matches(j) {
			return false
		}
	}
	return q.Fingerprint == "" || deadletter.Fingerprint(j.Queue, j.Error) == q.Fingerprint
}

// holds reports whether the query chooses jobs of a queue.
func (q Query) holds(queue string) bool {
	if q.Queue != "" && q.Queue != queue && !slices.Contains(sluice.GroupsOf(queue), q.Queue) {
		return false
	}
	for _, term := range q.Terms {
		if term.Field == "queue" && !term.matches(sluice.Job{Queue: queue}) {
			return false
		}
	}
	return true
}

// mayBeHeld reports whether a job waits for its own ID, as held jobs do.
func mayBeHeld(j sluice.Job) bool { return j.State == sluice.StateQueued && j.BlockedBy == j.ID }

// within reports whether an instant is in a span. A zero bound is no bound.
func within(at, from, before time.Time) bool {
	return (from.IsZero() || !at.Before(from)) && (before.IsZero() || at.Before(before))
}

// Check returns the rule that a query breaks, as a [sluice.ErrInvalid].
func (q Query) Check() error {
	for _, state := range q.States {
		if !slices.Contains(sluice.States(), state) {
			return feature.Invalid("states", fmt.Sprintf("%.40q must be a state that matches", state))
		}
	}
	for _, term := range q.Terms {
		if err := term.check(); err != nil {
			return feature.Invalid("terms", err.Error())
		}
	}
	if q.Fingerprint != "" && (len(q.Fingerprint) != 8 || strings.Trim(q.Fingerprint, "0123456789abcdef") != "") {
		return feature.Invalid("fingerprint", fmt.Sprintf("%.40q is not eight hexadecimal digits; `sluice dead groups` lists them", q.Fingerprint))
	}
	return nil
}

// filter returns the part of the query that a store looks up, for one queue.
func (q Query) filter(queue string) sluice.JobFilter {
	return sluice.JobFilter{
		Queue: queue, Tenant: q.Tenant, Key: q.Key, States: q.States, Labels: q.Labels, Batch: q.Batch,
		MinAttempts: q.MinAttempts, MinRecoveries: q.MinRecoveries,
	}
}

// Place is a position in the jobs of a query. The zero value is the beginning.
type Place struct {
	// Queue is the present queue, and Cursor the page in it. End says that no job is left.
	Queue  string `json:"queue,omitempty"`
	Cursor string `json:"cursor,omitempty"`
	End    bool   `json:"end,omitempty"`
	// Before begins the page before a job, instead of at Cursor. Zero: it does not.
	Before sluice.ID `json:"before,omitzero"`
	// OldestFirst goes from the oldest job of each queue; Before is then the job after which the page begins. Held jobs come
	// the newest first only.
	OldestFirst bool `json:"oldest_first,omitempty"`
}

// Page is one page of the jobs of a query.
type Page struct {
	// Jobs are the matching jobs, without their payloads. Compared counts the jobs that the page compared.
	Jobs     []sluice.Job
	Compared int
	// Next is the place of the next page.
	Next Place
}

// ReadPage reads at most limit jobs from a place on. It goes queue by queue, sorted by name, from the newest job of
// each, or from the oldest. It reads one queue at a time because stores have indexes for the dead letters of one queue. The jobs of a batch, and those
// that the query names, it reads all together.
func ReadPage(ctx context.Context, store sluice.Store, q Query, from Place, limit int) (Page, error) {
	if err := sluice.CheckGiven("store", store); err != nil {
		return Page{}, err
	}
	if from.Queue == "" {
		var err error
		if from.Queue, err = queueAfter(ctx, store, q, ""); err != nil || from.Queue == "" {
			return Page{Next: Place{End: true}}, err
		}
	}
	if !q.together() && !q.holds(from.Queue) { // of another query
		return q.skip(ctx, store, from)
	}
	page, err := readJobs(ctx, store, q, from, limit)
	if err != nil {
		return Page{}, err
	}
	out := Page{Compared: len(page.Jobs), Next: Place{Queue: from.Queue, Cursor: page.Cursor, OldestFirst: from.OldestFirst}}
	for _, job := range page.Jobs {
		if q.Matches(job) {
			out.Jobs = append(out.Jobs, job)
		}
	}
	if page.Cursor == "" {
		var last Page
		last, err = q.skip(ctx, store, from)
		out.Next = last.Next
	}
	return out, err
}

// skip returns a page without jobs, whose next place is in the next queue.
func (q Query) skip(ctx context.Context, store sluice.Store, from Place) (Page, error) {
	queue, err := queueAfter(ctx, store, q, from.Queue)
	return Page{Next: Place{Queue: queue, End: queue == "", OldestFirst: from.OldestFirst}}, err
}

// ids returns the jobs that a term names one by one, which are looked up. Nil: none does, or the query looks up a batch or
// held jobs.
func (q Query) ids() (ids []sluice.ID) {
	if q.Held || !q.Batch.IsZero() {
		return nil
	}
	for _, term := range q.Terms {
		if term.Field != "id" || term.Not {
			continue
		}
		ids = []sluice.ID{}
		for _, value := range term.Values {
			text, exact := strings.CutPrefix(value, equalTo)
			if !exact {
				return nil
			}
			if id, err := sluice.ParseID(text); err == nil { // no job has another name
				ids = append(ids, id)
			}
		}
		slices.SortFunc(ids, func(a, b sluice.ID) int { return bytes.Compare(a[:], b[:]) })
		return slices.Compact(ids)
	}
	return nil
}

// together reports whether the jobs of all queues are read at once, since the store looks them up by something else.
func (q Query) together() bool { return !q.Batch.IsZero() || q.ids() != nil }

// readFound reads a page of what the store looks up.
func (q Query) readFound(ctx context.Context, store sluice.Store, filter sluice.JobFilter) (sluice.Page, error) {
	ids := q.ids()
	if ids == nil {
		return store.Jobs(ctx, filter)
	}
	before, err := filter.EndOfPage()
	if err != nil {
		return sluice.Page{}, err
	}
	ids = slices.DeleteFunc(ids, func(id sluice.ID) bool {
		side := bytes.Compare(id[:], before[:])
		return !before.IsZero() && (side == 0 || filter.OldestFirst != (side > 0))
	})
	found, err := readNamed(ctx, store, ids)
	if err != nil {
		return sluice.Page{}, err
	}
	return filter.Page(found, sluice.ID{}), nil
}

// readNamed reads jobs one by one, without their payloads. It leaves out those that are not there any more.
func readNamed(ctx context.Context, store sluice.Store, ids []sluice.ID) (found []sluice.Job, err error) {
	for _, id := range ids {
		job, err := store.Job(ctx, id)
		if errors.Is(err, sluice.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		job.Payload, job.Checkpoint, job.Result = nil, nil, nil
		found = append(found, job)
	}
	return found, nil
}

// readJobs reads the page of one queue that ReadPage compares: of all its jobs, or of its held jobs.
func readJobs(ctx context.Context, store sluice.Store, q Query, from Place, limit int) (sluice.Page, error) {
	filter := q.filter(from.Queue)
	filter.Cursor, filter.Before, filter.Limit, filter.OldestFirst = from.Cursor, from.Before, limit, from.OldestFirst
	if q.together() {
		filter.Queue = ""
		if !sluice.IsGroup(q.Queue) {
			filter.Queue = q.Queue
		}
	}
	if !q.Held || q.together() {
		return q.readFound(ctx, store, filter)
	}
	if from.OldestFirst {
		return sluice.Page{}, feature.Invalid("oldest_first", "does not go with held jobs, which are listed the newest first")
	}
	before, err := filter.EndOfPage()
	if err != nil {
		return sluice.Page{}, err
	}
	limit = min(limit, heldPage)
	filter.Limit = limit
	holds, err := hold.List(ctx, store, hold.Filter{Queue: from.Queue, Before: before, Limit: limit + 1})
	if err != nil {
		return sluice.Page{}, err
	}
	var floor sluice.ID
	if len(holds) > limit {
		holds = holds[:limit]
		floor = holds[limit-1].JobID
	}
	ids := make([]sluice.ID, len(holds))
	for i, held := range holds {
		ids[i] = held.JobID
	}
	found, err := readNamed(ctx, store, ids)
	if err != nil {
		return sluice.Page{}, err
	}
	return filter.Page(found, floor), nil
}

// allQueues is the queue of a place among the jobs of a batch, or among named ones.
const allQueues = "*"

// heldPage is how many held jobs a page reads, one by one.
const heldPage = 1000

// queueAfter returns the next queue of a query after a queue, by name. Empty: none.
func queueAfter(ctx context.Context, store sluice.Store, q Query, queue string) (string, error) {
	isGroup := sluice.IsGroup(q.Queue)
	switch {
	case q.together() && queue == "":
		return allQueues, nil
	case q.together():
		return "", nil
	case q.Queue != "" && !isGroup && queue == "":
		if !q.holds(q.Queue) {
			return "", nil
		}
		return q.Queue, nil
	case q.Queue != "" && !isGroup:
		return "", nil
	}
	filter := sluice.QueueFilter{After: queue, Limit: 1}
	if isGroup || len(q.Terms) > 0 { // others may lie between its queues
		filter.Limit = comparePage
	}
	for {
		page, err := store.Queues(ctx, filter)
		if err != nil {
			return "", err
		}
		for _, next := range page {
			if q.holds(next.Name) {
				return next.Name, nil
			}
		}
		if len(page) < filter.Limit {
			return "", nil
		}
		filter.After = page[len(page)-1].Name
	}
}

// CompareLimit is the most jobs that [Jobs] and [Preview] compare.
const CompareLimit = 100_000

// comparePage is how many jobs they read at once.
const comparePage = 1000

// Found is the result of a search.
type Found struct {
	// Jobs are the first matching jobs, without their payloads. Matched counts all matching jobs that the search
	// compared.
	Jobs    []sluice.Job `json:"jobs"`
	Matched int          `json:"matched"`
	// States counts the matching jobs by state.
	States map[sluice.State]int `json:"states,omitempty"`
	// Compared counts the compared jobs. More says that other jobs are left.
	Compared int  `json:"compared"`
	More     bool `json:"more"`
}

// Jobs finds jobs, queue by queue, the newest first in each. It ends when it has limit jobs or has compared
// [CompareLimit] jobs. Limit is 1 to 10,000; 0 is 100.
func Jobs(ctx context.Context, store sluice.Store, q Query, limit int) (Found, error) {
	size, err := feature.PageSize(limit)
	if err != nil {
		return Found{}, err
	}
	return search(ctx, store, q, size, true)
}

// Preview counts the jobs that a query chooses, among at most [CompareLimit] jobs, and returns some of them as
// samples. It changes nothing.
func Preview(ctx context.Context, store sluice.Store, q Query, samples int) (Found, error) {
	return search(ctx, store, q, samples, false)
}

// search compares jobs, and keeps the first matching ones. With enough, it ends when it has keep jobs.
func search(ctx context.Context, store sluice.Store, q Query, keep int, enough bool) (Found, error) {
	out := Found{States: make(map[sluice.State]int)}
	if err := q.Check(); err != nil {
		return out, err
	}
	for at := (Place{}); !at.End; {
		page, err := ReadPage(ctx, store, q, at, comparePage)
		if err != nil {
			return out, fmt.Errorf("search jobs: %w", err)
		}
		jobs := page.Jobs
		for _, job := range jobs {
			out.States[job.State]++
		}
		at = page.Next
		out.Matched, out.Compared = out.Matched+len(jobs), out.Compared+page.Compared
		out.More = !at.End
		if left := keep - len(out.Jobs); len(jobs) > left {
			out.More, jobs = out.More || enough, jobs[:left]
		}
		out.Jobs = append(out.Jobs, jobs...)
		if enough && len(out.Jobs) == keep || out.Compared >= CompareLimit {
			break
		}
	}
	return out, nil
}
