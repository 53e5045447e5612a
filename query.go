package sluice

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// JobQuery chooses jobs by more than a store has indexes for: what JobFilter has is looked up, the rest is looked at job by
// job. The zero value chooses all; each field that is set narrows it.
type JobQuery struct {
	Queue  string            `json:"queue,omitempty"`
	Tenant string            `json:"tenant,omitempty"`
	Key    string            `json:"key,omitempty"`
	States []State           `json:"states,omitempty"`
	Labels map[string]string `json:"labels,omitempty"`
	// MinAttempts and MinRecoveries are how many attempts failed, and how many holders were lost, at least.
	MinAttempts   int `json:"min_attempts,omitempty"`
	MinRecoveries int `json:"min_recoveries,omitempty"`
	// Fingerprint is that of the job's queue and error; see Fingerprint.
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
func (q JobQuery) Matches(j Job) bool {
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
	return q.Fingerprint == "" || Fingerprint(j.Queue, j.Error) == q.Fingerprint
}

func within(at, from, before time.Time) bool {
	return (from.IsZero() || !at.Before(from)) && (before.IsZero() || at.Before(before))
}

// Check says which rule a query breaks.
func (q JobQuery) Check() error {
	for _, state := range q.States {
		if !slices.Contains(States(), state) {
			return invalid("states", fmt.Sprintf("%.40q is none of them", state))
		}
	}
	if q.Fingerprint != "" && (len(q.Fingerprint) != 8 || strings.Trim(q.Fingerprint, "0123456789abcdef") != "") {
		return invalid("fingerprint", fmt.Sprintf("%.40q is not eight hexadecimal digits; «sluice dead groups» lists them", q.Fingerprint))
	}
	return nil
}

// filter is what a store looks up, of one queue.
func (q JobQuery) filter(queue string) JobFilter {
	return JobFilter{
		Queue: queue, Tenant: q.Tenant, Key: q.Key, States: q.States, Labels: q.Labels,
		MinAttempts: q.MinAttempts, MinRecoveries: q.MinRecoveries,
	}
}

// place is how far a walk along the jobs of a query has come. The zero value begins.
type place struct {
	Queue string `json:"queue,omitempty"`
	Mark  string `json:"mark,omitempty"`
	End   bool   `json:"end,omitempty"`
}

// look reads the next page of a query, queue by queue in the order of their names, each from the newest job on: by one
// queue at a time the stores have indexes for the dead letters, whatever the history holds. It gives the jobs that match,
// how many were looked at, and where to go on.
func (c *Client) look(ctx context.Context, q JobQuery, from place, limit int) (found []Job, looked int, next place, err error) {
	if from.Queue == "" {
		if from.Queue, err = c.queueAfter(ctx, q, ""); err != nil || from.Queue == "" {
			return nil, 0, place{End: true}, err
		}
	}
	filter := q.filter(from.Queue)
	filter.Mark, filter.Limit = from.Mark, limit
	page, err := c.store.Jobs(ctx, filter)
	if err != nil {
		return nil, 0, from, err
	}
	for _, job := range page.Jobs {
		if q.Matches(job) {
			found = append(found, job)
		}
	}
	next = place{Queue: from.Queue, Mark: page.Mark}
	if page.Mark == "" {
		next.Queue, err = c.queueAfter(ctx, q, from.Queue)
		next.End = next.Queue == ""
	}
	return found, len(page.Jobs), next, err
}

// queueAfter gives the queue of a query that follows another by name; empty: none does.
func (c *Client) queueAfter(ctx context.Context, q JobQuery, queue string) (string, error) {
	if q.Queue != "" {
		if queue == "" {
			return q.Queue, nil
		}
		return "", nil
	}
	next, err := c.store.Queues(ctx, QueueFilter{After: queue, Limit: 1})
	if err != nil || len(next) == 0 {
		return "", err
	}
	return next[0].Name, nil
}

// LookLimit is how many jobs Search, Preview and DeadGroups look at, at the most, if they are not told otherwise.
const LookLimit = 100_000

// lookPage is how many they read at once.
const lookPage = 1000

// Found is what a query chooses.
type Found struct {
	// Jobs are the first that were found, without their payloads; Matched counts all.
	Jobs    []Job `json:"jobs"`
	Matched int   `json:"matched"`
	// Looked counts the jobs that were looked at. More says that there are others, at which nobody looked.
	Looked int  `json:"looked"`
	More   bool `json:"more"`
}

// Search finds jobs, queue by queue, in each the newest first, until it has limit of them or has looked at LookLimit.
func (c *Client) Search(ctx context.Context, q JobQuery, limit int) (Found, error) {
	limit, err := pageLimit(limit)
	if err != nil {
		return Found{}, err
	}
	return c.search(ctx, q, limit, true)
}

// Preview counts the jobs that a query chooses, among at most LookLimit that it looks at, and gives some of them as
// samples. It changes nothing.
func (c *Client) Preview(ctx context.Context, q JobQuery, samples int) (Found, error) {
	return c.search(ctx, q, samples, false)
}

func (c *Client) search(ctx context.Context, q JobQuery, keep int, enough bool) (Found, error) {
	var out Found
	if err := q.Check(); err != nil {
		return out, err
	}
	for at := (place{}); !at.End; {
		jobs, looked, next, err := c.look(ctx, q, at, lookPage)
		if err != nil {
			return out, fmt.Errorf("search jobs: %w", err)
		}
		at = next
		out.Matched, out.Looked = out.Matched+len(jobs), out.Looked+looked
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

// DeadGroup is the dead letters of one queue whose errors are alike.
type DeadGroup struct {
	Fingerprint string `json:"fingerprint"`
	Queue       string `json:"queue"`
	// Class and Message are what Classify says of their errors.
	Class   string `json:"class"`
	Message string `json:"message"`
	Count   int    `json:"count"`
	// Tenants counts those that are hit; jobs without a tenant count as one. Attempts are all that failed.
	Tenants  int `json:"tenants"`
	Attempts int `json:"attempts"`
	// First and Last tell when the first and the last of them died.
	First time.Time `json:"first"`
	Last  time.Time `json:"last"`
	// Sample is the one that died last, and SampleError its error.
	Sample      ID     `json:"sample"`
	SampleError string `json:"sample_error"`

	tenants map[string]bool
}

// DeadGroups is what DeadGroups of a Client found.
type DeadGroups struct {
	// Groups has the largest first.
	Groups []DeadGroup `json:"groups"`
	// Looked counts the dead letters that were looked at. More says that there are others, older ones.
	Looked int  `json:"looked"`
	More   bool `json:"more"`
}

// DeadGroups groups the newest dead letters of queues by their fingerprints, at most limit of them in all, taken in turns
// from the queues. No queues: all. Limit 0: LookLimit.
func (c *Client) DeadGroups(ctx context.Context, queues []string, limit int) (DeadGroups, error) {
	var out DeadGroups
	limit = cmp.Or(max(limit, 0), LookLimit)
	at, err := c.deadPlaces(ctx, queues)
	groups := make(map[string]*DeadGroup)
	for err == nil && len(at) > 0 && out.Looked < limit {
		var rest []place
		for i, from := range at {
			if out.Looked >= limit {
				rest = append(rest, at[i:]...)
				break
			}
			var jobs []Job
			var next place
			query := JobQuery{Queue: from.Queue, States: []State{StateDead}}
			jobs, _, next, err = c.look(ctx, query, from, min(lookPage, limit-out.Looked))
			if err != nil {
				break
			}
			out.Looked += len(jobs)
			addToGroups(groups, jobs)
			if !next.End {
				rest = append(rest, next)
			}
		}
		at = rest
	}
	if err != nil {
		return out, fmt.Errorf("group dead letters: %w", err)
	}
	out.More = len(at) > 0
	out.Groups = sortedGroups(groups)
	return out, nil
}

// deadPlaces gives where to begin in each queue.
func (c *Client) deadPlaces(ctx context.Context, names []string) (at []place, err error) {
	if len(names) == 0 {
		queues, err := c.store.Queues(ctx, QueueFilter{})
		if err != nil {
			return nil, err
		}
		for _, q := range queues {
			names = append(names, q.Name)
		}
	}
	for _, name := range names {
		at = append(at, place{Queue: name})
	}
	return at, nil
}

func addToGroups(groups map[string]*DeadGroup, jobs []Job) {
	for _, job := range jobs {
		fingerprint := Fingerprint(job.Queue, job.Error)
		g := groups[fingerprint]
		if g == nil {
			g = &DeadGroup{Fingerprint: fingerprint, Queue: job.Queue, First: job.FinishedAt, tenants: make(map[string]bool)}
			g.Class, g.Message = Classify(job.Error)
			groups[fingerprint] = g
		}
		g.Count++
		g.Attempts += job.Attempts
		g.tenants[job.Tenant] = true
		g.Tenants = len(g.tenants)
		if job.FinishedAt.Before(g.First) {
			g.First = job.FinishedAt
		}
		if job.FinishedAt.After(g.Last) {
			g.Last, g.Sample, g.SampleError = job.FinishedAt, job.ID, job.Error
		}
	}
}

func sortedGroups(groups map[string]*DeadGroup) []DeadGroup {
	out := make([]DeadGroup, 0, len(groups))
	for _, g := range groups {
		out = append(out, *g)
	}
	slices.SortFunc(out, func(a, b DeadGroup) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), b.Last.Compare(a.Last), cmp.Compare(a.Fingerprint, b.Fingerprint))
	})
	return out
}
