// Package search finds jobs by more than a store has indexes for, such as a fingerprint, a text in the error, or a span of
// time. Begin with [Jobs]; [Preview] counts what a [Query] chooses.
package search

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/deadletter"
	"github.com/sluice-queue/sluice/internal/feature"
)

// Query chooses jobs by more than a store has indexes for: what JobFilter has is looked up, the rest is looked at job by
// job. The zero value chooses all; each field that is set narrows it.
type Query struct {
	Queue  string            `json:"queue,omitempty"`
	Tenant string            `json:"tenant,omitempty"`
	Key    string            `json:"key,omitempty"`
	States []sluice.State    `json:"states,omitempty"`
	Labels map[string]string `json:"labels,omitempty"`
	// MinAttempts and MinRecoveries are how many attempts failed, and how many holders were lost, at least.
	MinAttempts   int `json:"min_attempts,omitempty"`
	MinRecoveries int `json:"min_recoveries,omitempty"`
	// Fingerprint is that of the queue and the error of the job, as deadletter.Fingerprint makes it.
	Fingerprint string `json:"fingerprint,omitempty"`
	// Error is in the text of the job's error.
	Error string `json:"error,omitempty"`
	// The job is due, or was created, from the one instant on and before the other.
	DueFrom       time.Time `json:"due_from,omitzero"`
	DueBefore     time.Time `json:"due_before,omitzero"`
	CreatedFrom   time.Time `json:"created_from,omitzero"`
	CreatedBefore time.Time `json:"created_before,omitzero"`
	// ThereAt leaves out jobs that were created, and lives that ended, after the instant.
	ThereAt time.Time `json:"there_at,omitzero"`
}

// Matches reports whether a job is chosen.
func (q Query) Matches(j sluice.Job) bool {
	switch {
	case q.Queue != "" && j.Queue != q.Queue,
		q.Tenant != "" && j.Tenant != q.Tenant,
		q.Key != "" && j.Key != q.Key,
		len(q.States) > 0 && !slices.Contains(q.States, j.State),
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
	return q.Fingerprint == "" || deadletter.Fingerprint(j.Queue, j.Error) == q.Fingerprint
}

func within(at, from, before time.Time) bool {
	return (from.IsZero() || !at.Before(from)) && (before.IsZero() || at.Before(before))
}

// Check says which rule a query breaks.
func (q Query) Check() error {
	for _, state := range q.States {
		if !slices.Contains(sluice.States(), state) {
			return feature.Invalid("states", fmt.Sprintf("%.40q is none of them", state))
		}
	}
	if q.Fingerprint != "" && (len(q.Fingerprint) != 8 || strings.Trim(q.Fingerprint, "0123456789abcdef") != "") {
		return feature.Invalid("fingerprint", fmt.Sprintf("%.40q is not eight hexadecimal digits; `sluice dead groups` lists them", q.Fingerprint))
	}
	return nil
}

// filter is what a store looks up, of one queue.
func (q Query) filter(queue string) sluice.JobFilter {
	return sluice.JobFilter{
		Queue: queue, Tenant: q.Tenant, Key: q.Key, States: q.States, Labels: q.Labels,
		MinAttempts: q.MinAttempts, MinRecoveries: q.MinRecoveries,
	}
}

// Place is how far a walk along the jobs of a query has come. The zero value begins.
type Place struct {
	Queue string `json:"queue,omitempty"`
	Mark  string `json:"mark,omitempty"`
	End   bool   `json:"end,omitempty"`
}

// Page is what a store has at one place of the walk along a query.
type Page struct {
	// Jobs are those that match, without their payloads. Looked counts the jobs that were read.
	Jobs   []sluice.Job
	Looked int
	// Next is where to go on.
	Next Place
}

// ReadPage reads at most limit jobs from a place on. It goes queue by queue in the order of their names, in each from the
// newest job on: for one queue at a time the stores have indexes for the dead letters, whatever the history holds.
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
	filter := q.filter(from.Queue)
	filter.Mark, filter.Limit = from.Mark, limit
	page, err := store.Jobs(ctx, filter)
	if err != nil {
		return Page{}, err
	}
	out := Page{Looked: len(page.Jobs), Next: Place{Queue: from.Queue, Mark: page.Mark}}
	for _, job := range page.Jobs {
		if q.Matches(job) {
			out.Jobs = append(out.Jobs, job)
		}
	}
	if page.Mark == "" {
		out.Next.Queue, err = queueAfter(ctx, store, q, from.Queue)
		out.Next.End = out.Next.Queue == ""
	}
	return out, err
}

// queueAfter gives the queue of a query that follows another by name; empty: none does.
func queueAfter(ctx context.Context, store sluice.Store, q Query, queue string) (string, error) {
	if q.Queue != "" {
		if queue == "" {
			return q.Queue, nil
		}
		return "", nil
	}
	next, err := store.Queues(ctx, sluice.QueueFilter{After: queue, Limit: 1})
	if err != nil || len(next) == 0 {
		return "", err
	}
	return next[0].Name, nil
}

// LookLimit is how many jobs Jobs and Preview look at, at the most, if they are not told otherwise.
const LookLimit = 100_000

// lookPage is how many they read at once.
const lookPage = 1000

// Found is what a query chooses.
type Found struct {
	// Jobs are the first that were found, without their payloads; Matched counts all.
	Jobs    []sluice.Job `json:"jobs"`
	Matched int          `json:"matched"`
	// Looked counts the jobs that were looked at. More says that there are others, at which nobody looked.
	Looked int  `json:"looked"`
	More   bool `json:"more"`
}

// Jobs finds jobs, queue by queue, in each the newest first, until it has limit of them or has looked at LookLimit.
// Limit is 1 to 10,000; 0: 100.
func Jobs(ctx context.Context, store sluice.Store, q Query, limit int) (Found, error) {
	size, err := feature.PageSize(limit)
	if err != nil {
		return Found{}, err
	}
	return search(ctx, store, q, size, true)
}

// Preview counts the jobs that a query chooses, among at most LookLimit that it looks at, and gives some of them as
// samples. It changes nothing.
func Preview(ctx context.Context, store sluice.Store, q Query, samples int) (Found, error) {
	return search(ctx, store, q, samples, false)
}

func search(ctx context.Context, store sluice.Store, q Query, keep int, enough bool) (Found, error) {
	var out Found
	if err := q.Check(); err != nil {
		return out, err
	}
	for at := (Place{}); !at.End; {
		page, err := ReadPage(ctx, store, q, at, lookPage)
		if err != nil {
			return out, fmt.Errorf("search jobs: %w", err)
		}
		jobs := page.Jobs
		at = page.Next
		out.Matched, out.Looked = out.Matched+len(jobs), out.Looked+page.Looked
		out.More = !at.End
		if left := keep - len(out.Jobs); len(jobs) > left {
			out.More, jobs = out.More || enough, jobs[:left]
		}
		out.Jobs = append(out.Jobs, jobs...)
		if enough && len(out.Jobs) == keep || out.Looked >= LookLimit {
			break
		}
	}
	return out, nil
}
