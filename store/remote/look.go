package remote

import (
	"context"
	"net/url"
	"strconv"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/explain"
	"github.com/sluice-queue/sluice/internal/feature"
)

// maxPage is the most objects of one list.
const maxPage = 1000

// pages reads lists of at most maxPage objects until there are as many as limit, or no more.
func pages[T any](limit int, read func(size int) ([]T, error)) (all []T, err error) {
	for len(all) < limit {
		size := min(limit-len(all), maxPage)
		page, err := read(size)
		if err != nil {
			return nil, err
		}
		if all = append(all, page...); len(page) < size {
			break
		}
	}
	return all, nil
}

// params are parameters of a request. Empty values are left out.
type params url.Values

func (p params) values() url.Values { return url.Values(p) }

func (p params) text(name, value string) {
	if value != "" {
		p[name] = append(p[name], value)
	}
}

func (p params) number(name string, value int) { p.seq(name, int64(value)) }

func (p params) seq(name string, value int64) {
	if value > 0 {
		p.text(name, strconv.FormatInt(value, 10))
	}
}

func (p params) id(name string, value sluice.ID) {
	if !value.IsZero() {
		p.text(name, value.String())
	}
}

// jobPath is the path of a job.
func jobPath(id sluice.ID, rest string) string { return "/jobs/" + id.String() + rest }

// Job returns a job, without its payload if the token may not read it.
func (s *Store) Job(ctx context.Context, id sluice.ID) (sluice.Job, error) {
	var job sluice.Job
	err := s.call(ctx, request{verb: "read a job", path: jobPath(id, ""), out: &job})
	return job, err
}

// Attempts lists the failed attempts of a job.
func (s *Store) Attempts(ctx context.Context, id sluice.ID) ([]sluice.Attempt, error) {
	var answer struct {
		Attempts []sluice.Attempt `json:"attempts"`
	}
	err := s.call(ctx, request{verb: "list attempts", path: jobPath(id, "/attempts"), out: &answer})
	return answer.Attempts, err
}

// Jobs lists jobs.
func (s *Store) Jobs(ctx context.Context, filter sluice.JobFilter) (sluice.Page, error) {
	limit, err := feature.PageSize(filter.Limit)
	if err != nil {
		return sluice.Page{}, err
	}
	q := params{}
	q.text("queue", filter.Queue)
	q.text("tenant", filter.Tenant)
	q.text("key", filter.Key)
	q.id("batch", filter.Batch)
	q.number("min_attempts", filter.MinAttempts)
	q.number("min_recoveries", filter.MinRecoveries)
	for _, state := range filter.States {
		q.text("state", string(state))
	}
	for name, value := range filter.Labels {
		q.text("label", name+"="+value)
	}
	if filter.Cursor == "" {
		q.id("before", filter.Before)
	}
	if filter.OldestFirst {
		q.text("oldest_first", "true")
	}
	page := sluice.Page{Cursor: filter.Cursor}
	for {
		var answer struct {
			Jobs []sluice.Job `json:"jobs"`
			Next string       `json:"next"`
		}
		if page.Cursor != "" {
			delete(q, "before")
			q["cursor"] = []string{page.Cursor}
		}
		q["limit"] = []string{strconv.Itoa(min(limit-len(page.Jobs), maxPage))}
		if err := s.call(ctx, request{verb: "list jobs", path: "/jobs", query: q.values(), out: &answer}); err != nil {
			return sluice.Page{}, err
		}
		page.Jobs, page.Cursor = append(page.Jobs, answer.Jobs...), answer.Next
		if page.Cursor == "" {
			return page, nil
		}
		if len(page.Jobs) == limit {
			page.Next = page.Jobs[limit-1].ID
			return page, nil
		}
	}
}

// Explain says why a job waits; package explain asks for it.
func (s *Store) Explain(ctx context.Context, id sluice.ID) (explain.Explanation, error) {
	var answer explain.Explanation
	err := s.call(ctx, request{verb: "explain a job", path: jobPath(id, "/why"), out: &answer})
	return answer, err
}

// Depth counts the jobs of a queue.
func (s *Store) Depth(ctx context.Context, queue string, limit int) (sluice.Depth, error) {
	if err := sluice.CheckQueueName(queue); err != nil {
		return sluice.Depth{}, err
	}
	q := params{}
	q.number("limit", min(limit, sluice.DepthLimit))
	var answer sluice.Depth
	err := s.call(ctx, request{verb: "count jobs", path: queuePath(queue, "/depth"), query: q.values(), out: &answer})
	return answer, err
}

// Audit lists audit entries, the newest first.
func (s *Store) Audit(ctx context.Context, filter sluice.AuditFilter) (all []sluice.AuditEntry, err error) {
	limit, err := feature.PageSize(filter.Limit)
	if err != nil {
		return nil, err
	}
	for len(all) < limit {
		filter.Limit = limit - len(all)
		page, err := s.SearchAudit(ctx, audit.Filter{AuditFilter: filter})
		if err != nil {
			return nil, err
		}
		all = append(all, page.Entries...)
		if filter.Before = page.Next; page.Next == 0 {
			break
		}
	}
	return all, nil
}

// SearchAudit lists audit entries by all fields of a filter, the newest first. A page has at most 1,000.
func (s *Store) SearchAudit(ctx context.Context, f audit.Filter) (page audit.Page, err error) {
	q := params{}
	q.text("object", string(f.Object))
	q.text("name", f.Name)
	q.id("job", f.JobID)
	q.text("actor", f.Actor)
	q.text("event", string(f.Event))
	q.instant("from", f.From)
	q.instant("to", f.To)
	q.seq("before", f.Before)
	q.seq("after", f.After)
	q.number("limit", min(f.Limit, maxPage))
	err = s.call(ctx, request{verb: "read the audit", path: "/audit", query: q.values(), out: &page})
	return page, err
}

// AppendAudit is an [*UnsupportedError]: the server audits what callers do.
func (s *Store) AppendAudit(context.Context, []sluice.AuditEntry) error {
	return s.theServer("To append to the audit")
}

// Recover is an [*UnsupportedError]: the server does the upkeep.
func (s *Store) Recover(context.Context, string, int, string) (sluice.Recovered, error) {
	return sluice.Recovered{}, s.theServer("To recover jobs")
}

// Expire is an [*UnsupportedError]: the server does the upkeep.
func (s *Store) Expire(context.Context, int, string) (int, error) {
	return 0, s.theServer("To expire jobs")
}

// Repair is an [*UnsupportedError]: the server does the upkeep.
func (s *Store) Repair(context.Context, string) (int, error) { return 0, s.theServer("To repair rows") }

// Prune is an [*UnsupportedError]: the server does the upkeep.
func (s *Store) Prune(context.Context, string, int) (sluice.Pruned, error) {
	return sluice.Pruned{}, s.theServer("To prune jobs")
}
