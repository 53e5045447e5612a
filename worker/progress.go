package worker

import (
	"context"
	"time"

	"github.com/sluice-queue/sluice/internal/event"
	"github.com/sluice-queue/sluice/progress"
)

// reportInterval is the least time between two statements that store reports.
const reportInterval = time.Second

// Progress reports how far the job has come, from 0 to 1, with a message for people of at most
// [progress.MaxMessageBytes]. Everybody sees the report within a second: the worker stores the last report of each of its
// running jobs, in one statement at most a second. Progress returns at once, so a handler may call it as often as it likes.
//
// The report does not outlive the attempt. Use [Job.SaveCheckpoint] for progress that the next attempt needs.
func (j *Job[T]) Progress(fraction float64, message string) {
	if j.run == nil {
		return // the job was made by hand
	}
	report := progress.New(j.run.claim.ID, j.run.claim.Token, fraction, message)
	j.run.report.Store(&report)
	j.run.worker.noteReport()
}

// noteReport makes tellStore store the reports, at most once per reportInterval.
func (w *Worker) noteReport() {
	if w.reports.Swap(true) {
		return
	}
	select {
	case w.reported <- struct{}{}:
	default:
	}
}

// reportsDue returns the time until tellStore may store reports again.
func (w *Worker) reportsDue() time.Duration { return max(0, reportInterval-time.Since(w.reportedAt)) }

// saveReports stores the reports that handlers made since the last call.
func (w *Worker) saveReports(ctx context.Context, runs []*run) {
	w.reports.Store(false)
	var reports []progress.Report
	var of []*run
	for _, r := range runs {
		if report := r.report.Swap(nil); report != nil && !r.settled.Load() {
			reports, of = append(reports, *report), append(of, r)
		}
	}
	if len(reports) == 0 {
		return
	}
	w.reportedAt = time.Now()
	if err := progress.Given(w.store).SaveProgress(ctx, reports); err != nil && ctx.Err() == nil {
		w.log.Emit(event.NotReported, "", "jobs", len(reports), "error", err)
		for i, r := range of { // store the report later, unless the handler has made a newer one
			r.report.CompareAndSwap(nil, &reports[i])
		}
		w.noteReport()
	}
}
