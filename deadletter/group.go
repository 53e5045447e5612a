// Package deadletter groups dead letters by cause. [Fingerprint] gives dead letters of one cause the same eight digits, and
// [Read] lists the groups of a store, the largest first.
package deadletter

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/sluice-queue/sluice"
)

// DefaultLimit is how many dead letters Read looks at, at the most, if the caller sets no limit.
const DefaultLimit = 100_000

// Group holds the dead letters of one queue whose errors are alike.
type Group struct {
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
	Sample      sluice.ID `json:"sample"`
	SampleError string    `json:"sample_error"`

	tenants map[string]bool
}

// Groups are the groups of the dead letters that Read looked at.
type Groups struct {
	// Groups has the largest first.
	Groups []Group `json:"groups"`
	// Looked counts the dead letters that were looked at. More says that there are others, older ones.
	Looked int  `json:"looked"`
	More   bool `json:"more"`
}

// pageSize is how many dead letters are read at once.
const pageSize = 1000

// Read groups the newest dead letters of queues by their fingerprints, at most limit of them in all, taken in turns
// from the queues. No queues: all. Limit 0: DefaultLimit.
func Read(ctx context.Context, store sluice.Store, queues []string, limit int) (Groups, error) {
	var out Groups
	if err := sluice.CheckGiven("store", store); err != nil {
		return out, err
	}
	limit = cmp.Or(max(limit, 0), DefaultLimit)
	left, err := firstPages(ctx, store, queues)
	groups := make(map[string]*Group)
	for err == nil && len(left) > 0 && out.Looked < limit {
		var rest []sluice.JobFilter
		for i, from := range left {
			if out.Looked >= limit {
				rest = append(rest, left[i:]...)
				break
			}
			from.Limit = min(pageSize, limit-out.Looked)
			var page sluice.Page
			if page, err = store.Jobs(ctx, from); err != nil {
				break
			}
			out.Looked += len(page.Jobs)
			addToGroups(groups, page.Jobs)
			if from.Mark = page.Mark; from.Mark != "" {
				rest = append(rest, from)
			}
		}
		left = rest
	}
	if err != nil {
		return out, fmt.Errorf("group dead letters: %w", err)
	}
	out.More = len(left) > 0
	out.Groups = sortedGroups(groups)
	return out, nil
}

// firstPages gives the first page of each queue.
func firstPages(ctx context.Context, store sluice.Store, names []string) (first []sluice.JobFilter, err error) {
	if len(names) == 0 {
		queues, err := store.Queues(ctx, sluice.QueueFilter{})
		if err != nil {
			return nil, err
		}
		for _, q := range queues {
			names = append(names, q.Name)
		}
	}
	for _, name := range names {
		first = append(first, sluice.JobFilter{Queue: name, States: []sluice.State{sluice.StateDead}})
	}
	return first, nil
}

func addToGroups(groups map[string]*Group, jobs []sluice.Job) {
	for _, job := range jobs {
		fingerprint := Fingerprint(job.Queue, job.Error)
		g := groups[fingerprint]
		if g == nil {
			g = &Group{Fingerprint: fingerprint, Queue: job.Queue, First: job.FinishedAt, tenants: make(map[string]bool)}
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

func sortedGroups(groups map[string]*Group) []Group {
	out := make([]Group, 0, len(groups))
	for _, g := range groups {
		out = append(out, *g)
	}
	slices.SortFunc(out, func(a, b Group) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), b.Last.Compare(a.Last), cmp.Compare(a.Fingerprint, b.Fingerprint))
	})
	return out
}
