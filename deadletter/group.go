// Package deadletter groups dead letters by cause.
//
// Begin with [Read], which lists the groups of a store, the largest first. [Fingerprint] gives dead letters of one
// cause the same eight digits. [Change] keeps a note, an owner and when the cause was resolved.
//
// Read next: docs/guide/dead-letters.md. Package operation requeues all dead letters of a group.
package deadletter

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/sluice-queue/sluice"
)

// DefaultLimit is the most dead letters that [Read] groups if the caller sets no limit.
const DefaultLimit = 100_000

// Group is the dead letters of one queue with similar errors.
type Group struct {
	// Fingerprint names the group; see [Fingerprint].
	Fingerprint string `json:"fingerprint"`
	Queue       string `json:"queue"`
	// Class and Message are the result of [Classify]. Count is the number of dead letters.
	Class   string `json:"class"`
	Message string `json:"message"`
	Count   int    `json:"count"`
	// Tenants counts the tenants of the dead letters. Jobs without a tenant count as one tenant. Attempts counts
	// all failed attempts.
	Tenants  int `json:"tenants"`
	Attempts int `json:"attempts"`
	// First is when the first of them died, and Last when the last died.
	First time.Time `json:"first"`
	Last  time.Time `json:"last"`
	// Hours counts how many of them died in each of the last [Hours] hours, the oldest hour first. Jobs that were requeued or
	// deleted since are not among them.
	Hours []int `json:"hours"`
	// Sample is the job that died last, and SampleError its error.
	Sample      sluice.ID `json:"sample"`
	SampleError string    `json:"sample_error"`
	// Note is what people keep about the group; nil: nothing. CameBack says that a job died after the cause was resolved.
	Note     *Note `json:"note,omitempty"`
	CameBack bool  `json:"came_back,omitempty"`

	tenants map[string]bool
}

// State is `open`, `resolved`, or `came back`: a job died after the cause was resolved.
func (g Group) State() string {
	switch {
	case g.CameBack:
		return "came back"
	case g.Note != nil && !g.Note.ResolvedAt.IsZero():
		return "resolved"
	}
	return "open"
}

// Groups is the result of [Read].
type Groups struct {
	// Groups are the groups, the largest first.
	Groups []Group `json:"groups"`
	// Looked counts the dead letters in the groups. More says that older dead letters are left.
	Compared int  `json:"compared"`
	More     bool `json:"more"`
}

// Hours is how many hours back Read counts deaths by hour.
const Hours = 24

// pageSize is how many dead letters Read reads at once.
const pageSize = 1000

// Read groups the newest dead letters of queues by fingerprint, at most limit in all. It reads a page of each queue
// in turn. No queues: all queues. Limit 0: [DefaultLimit].
func Read(ctx context.Context, store sluice.Store, queues []string, limit int) (Groups, error) {
	var out Groups
	if err := sluice.CheckGiven("store", store); err != nil {
		return out, err
	}
	now, err := store.Now(ctx)
	if err != nil {
		return out, fmt.Errorf("group dead letters: %w", err)
	}
	limit = cmp.Or(max(limit, 0), DefaultLimit)
	left, err := firstPages(ctx, store, queues)
	groups := make(map[string]*Group)
	for err == nil && len(left) > 0 && out.Compared < limit {
		var rest []sluice.JobFilter
		for i, from := range left {
			if out.Compared >= limit {
				rest = append(rest, left[i:]...)
				break
			}
			from.Limit = min(pageSize, limit-out.Compared)
			var page sluice.Page
			if page, err = store.Jobs(ctx, from); err != nil {
				break
			}
			out.Compared += len(page.Jobs)
			addToGroups(groups, page.Jobs, now)
			if from.Cursor = page.Cursor; from.Cursor != "" {
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
	return out, addNotes(ctx, store, out.Groups)
}

// firstPages returns the first page of each queue.
func firstPages(ctx context.Context, store sluice.Store, names []string) (first []sluice.JobFilter, err error) {
	if len(names) == 0 || slices.ContainsFunc(names, sluice.IsGroup) {
		queues, err := store.Queues(ctx, sluice.QueueFilter{})
		if err != nil {
			return nil, err
		}
		names = expanded(names, queues)
	}
	for _, name := range names {
		first = append(first, sluice.JobFilter{Queue: name, States: []sluice.State{sluice.StateDead}})
	}
	return first, nil
}

// expanded returns the names with the queues of groups in place of the groups. No names stand for all queues.
func expanded(names []string, stored []sluice.Queue) (out []string) {
	for _, name := range names {
		if !sluice.IsGroup(name) {
			out = append(out, name)
		}
	}
	for _, q := range stored {
		ofGroup := slices.ContainsFunc(sluice.GroupsOf(q.Name), func(group string) bool { return slices.Contains(names, group) })
		if len(names) == 0 || ofGroup && !slices.Contains(out, q.Name) {
			out = append(out, q.Name)
		}
	}
	return out
}

// addToGroups adds dead letters to their groups.
func addToGroups(groups map[string]*Group, jobs []sluice.Job, now time.Time) {
	for _, job := range jobs {
		fingerprint := Fingerprint(job.Queue, job.Error)
		g := groups[fingerprint]
		if g == nil {
			g = &Group{Fingerprint: fingerprint, Queue: job.Queue, First: job.FinishedAt, Hours: make([]int, Hours), tenants: make(map[string]bool)}
			g.Class, g.Message = Classify(job.Error)
			groups[fingerprint] = g
		}
		g.Count++
		if ago := max(now.Sub(job.FinishedAt), 0) / time.Hour; ago < Hours {
			g.Hours[Hours-1-ago]++
		}
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

// sortedGroups returns the groups, the largest first.
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
