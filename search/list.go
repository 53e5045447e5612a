package search

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/feature"
)

// List is a part of the jobs of a query. It may have fewer jobs than asked for, even none, although another follows.
type List struct {
	// Jobs are the matching jobs, without their payloads: in the order of the list, or queue by queue if the query names
	// queues. Compared counts the compared jobs.
	Jobs     []sluice.Job `json:"jobs"`
	Compared int          `json:"compared"`
	// Next is the cursor of the next part. Empty: no job is left.
	Next string `json:"next,omitempty"`
}

// cursor is the place of a list, as its text keeps it.
type cursor struct {
	Place
	// Whole says that the cursor is of all queues.
	Whole bool `json:"whole,omitempty"`
}

// listPages is the most pages that one list reads, and listCompare the most jobs that it compares. listPart is how many jobs a
// page has at least, once one had jobs that do not match.
const (
	listPages   = 21
	listCompare = 10_000
	listPart    = 500
)

// ReadList reads at most limit jobs from a cursor on: the Next of the list before, that of [Query.From], or empty for the
// newest job. It compares 10,000 jobs at most. Limit is 1 to 10,000; 0 is 100. A cursor that no list returned is a [sluice.ErrInvalid].
func ReadList(ctx context.Context, store sluice.Store, q Query, from string, limit int) (List, error) {
	out := List{Jobs: []sluice.Job{}}
	if err := sluice.CheckGiven("store", store); err != nil {
		return out, err
	}
	limit, err := feature.PageSize(limit)
	if err != nil {
		return out, err
	}
	if err := q.Check(); err != nil {
		return out, err
	}
	at, err := readCursor(from)
	if err != nil {
		return out, err
	}
	switch {
	case from == "" || at.oldest():
		at.Whole = q.acrossQueues()
	case at.Whole && !q.acrossQueues():
		return out, foreignCursor(from)
	}
	least := 0
	for range listPages {
		size := min(max(limit-len(out.Jobs), least), listCompare-out.Compared)
		page, err := readAt(ctx, store, q, at, size)
		if err != nil {
			return out, fmt.Errorf("list jobs: %w", err)
		}
		if len(page.Jobs) < page.Compared {
			least = listPart
		}
		out.Jobs, out.Compared = append(out.Jobs, page.Jobs...), out.Compared+page.Compared
		if at.Place = page.Next; len(out.Jobs) > limit {
			out.Jobs = out.Jobs[:limit]
			at.Place = q.behind(out.Jobs[limit-1], at)
		}
		if at.End {
			return out, nil
		}
		if len(out.Jobs) >= limit-limit/10 || out.Compared >= listCompare {
			break
		}
	}
	out.Next = at.text()
	return out, nil
}

// behind returns the place next to a job of the list of a cursor.
func (q Query) behind(job sluice.Job, at cursor) Place {
	out := Place{Queue: job.Queue, Before: job.ID, OldestFirst: at.OldestFirst}
	switch {
	case at.Whole:
		out.Queue = ""
	case q.together():
		out.Queue = allQueues
	}
	return out
}

// From returns the cursor of a list with the oldest job first, if oldestFirst, that begins next to a job, for [ReadList]. A
// zero id is the beginning. Else a query of several queues that are not all is a [sluice.ErrInvalid]: its jobs come queue by
// queue.
func (q Query) From(id sluice.ID, oldestFirst bool) (string, error) {
	if id.IsZero() && !oldestFirst {
		return "", nil
	}
	at := cursor{Place: Place{Before: id, OldestFirst: oldestFirst}, Whole: q.acrossQueues()}
	switch {
	case at.Whole || id.IsZero():
	case q.together():
		at.Queue = allQueues
	case q.Queue != "" && !sluice.IsGroup(q.Queue):
		at.Queue = q.Queue
	default:
		return "", feature.Invalid("before", "needs one queue, or no term about queues")
	}
	return at.text(), nil
}

// text returns the cursor as [ReadList] reads it.
func (c cursor) text() string {
	text, _ := json.Marshal(c) // its fields can be written
	return base64.RawURLEncoding.EncodeToString(text)
}

// readAt reads one page.
func readAt(ctx context.Context, store sluice.Store, q Query, at cursor, limit int) (Page, error) {
	if !at.Whole {
		return ReadPage(ctx, store, q, at.Place, limit)
	}
	filter := q.filter("")
	filter.Cursor, filter.Before, filter.Limit, filter.OldestFirst = at.Cursor, at.Before, limit, at.OldestFirst
	page, err := q.readFound(ctx, sluice.GivenStore(store), filter)
	out := Page{Compared: len(page.Jobs), Next: Place{Cursor: page.Cursor, End: page.Cursor == "", OldestFirst: at.OldestFirst}}
	for _, job := range page.Jobs {
		if q.Matches(job) {
			out.Jobs = append(out.Jobs, job)
		}
	}
	return out, err
}

// oldest reports whether the cursor is the beginning of a list of several queues with the oldest job first.
func (c cursor) oldest() bool { return c == cursor{Place: Place{OldestFirst: true}} }

// acrossQueues reports whether the jobs of all queues are listed at once.
func (q Query) acrossQueues() bool {
	return q.Queue == "" && !q.Held && !slices.ContainsFunc(q.Terms, func(t Term) bool { return t.Field == "queue" })
}

// readCursor reads the text of a cursor.
func readCursor(text string) (at cursor, err error) {
	if text == "" {
		return at, nil
	}
	decoded, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil {
		err = json.Unmarshal(decoded, &at)
	}
	if err != nil || at.End || at.Whole != (at.Queue == "") && !at.oldest() {
		return at, foreignCursor(text)
	}
	return at, nil
}

// foreignCursor refuses a cursor that no list of the query returned.
func foreignCursor(text string) error {
	return feature.Invalid("cursor", fmt.Sprintf("%.60q must be the next of a list; list from the beginning", text))
}
