package local

import (
	"context"
	"strconv"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/engine"
)

const (
	// auditPage is how many lines of the audit a page of Ended reads.
	auditPage = 1000
	// auditSlack is the largest difference between the audit's order and the order of its instants. Overlapping
	// transactions are written in another order than they began; none lasts longer than 2 s.
	auditSlack = 10 * time.Second
)

// Ended reads the audit back to the instant, 1,000 entries per page, and looks up each ended run. The history
// is of no use here, because it is in the order of arrival. A page costs one bounded read plus one look-up per
// run, however long the history is. Ended also reads past entries of all other queues of the store. Ended
// misses runs that completed while the runs' queue had an audit level below full.
func (e *Engine) Ended(ctx context.Context, target engine.Target, since time.Time, next []byte) (engine.Page, error) {
	ctx, stop := context.WithTimeout(ctx, callTime)
	defer stop()
	queue, err := queueOf(target)
	if err != nil {
		return engine.Page{}, fault("ended", err)
	}
	var before int64
	if next != nil {
		if before, err = strconv.ParseInt(string(next), 10, 64); err != nil || before <= 0 {
			return engine.Page{}, &sluice.InvalidError{Field: "next", Rule: "it is not what the page before gave"}
		}
	}
	entries, err := e.client.Audit(ctx, sluice.AuditFilter{Before: before, Limit: auditPage})
	if err != nil {
		return engine.Page{}, fault("ended", err)
	}
	ids, more := endings(entries, queue, since.Add(-auditSlack))
	jobs, err := e.lookUp(ctx, ids)
	if err != nil {
		return engine.Page{}, fault("ended", err)
	}
	var page engine.Page
	for _, job := range jobs {
		if job == nil || job.FinishedAt.Before(since) {
			continue
		}
		if out := outcomeOf(*job, "", target.Results); out.State.Over() {
			page.Runs = append(page.Runs, out)
		}
	}
	if more {
		page.Next = strconv.AppendInt(nil, entries[len(entries)-1].Seq, 10)
	}
	return page, nil
}

// endings lists the jobs of a queue that ended according to a page of the audit, each once. more is true if the
// next page may contain others.
func endings(entries []sluice.AuditEntry, queue string, since time.Time) (ids []sluice.ID, more bool) {
	seen := make(map[sluice.ID]bool)
	for _, entry := range entries {
		if entry.At.Before(since) {
			return ids, false
		}
		if entry.Object == audit.ObjectJob && entry.Name == queue && entry.To.Finished() && entry.From != entry.To && !seen[entry.JobID] {
			ids, seen[entry.JobID] = append(ids, entry.JobID), true
		}
	}
	return ids, len(entries) == auditPage
}
