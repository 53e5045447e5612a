package storetest

import (
	"context"
	"sync"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/await"
	"github.com/sluice-queue/sluice/progress"
)

func progressRules() []Rule {
	return []Rule{
		{"R-905", "Everybody sees the last report of each running job, and no report of jobs that do not run or have not reported.", "H-15", func(w *world) {
			w.addMany(4)
			claims := w.claim(3)
			first, second, silent := claims[0], claims[1], claims[2]
			w.ok(progress.Given(w.Store).SaveProgress(w.ctx, []progress.Report{progress.New(first.ID, first.Token, 0.1, "page 1"), progress.New(second.ID, second.Token, 0, "")}))
			w.ok(progress.Given(w.Store).SaveProgress(w.ctx, []progress.Report{progress.New(first.ID, first.Token, 0.25, "page 2 \x00of 8")}))
			found, err := progress.Of(w.ctx, w.Other, first.ID, second.ID, silent.ID, sluice.NewID())
			w.ok(err)
			equal(w, "reports", len(found), 2)
			equal(w, "fraction", found[first.ID].Fraction, 0.25)
			equal(w, "message", found[first.ID].Message, "page 2 of 8")
			w.near("at", found[first.ID].At, w.Now())
			equal(w, "report without a message", found[second.ID].String(), "0 %")
			equal(w, "token", found[first.ID].Token, sluice.Token{})
		}},
		{"R-906", "A report whose token does not prove the claim changes nothing; the report goes with its attempt, however that ends, and the next attempt begins without one.", "H-15", func(w *world) {
			for _, event := range []sluice.Event{sluice.EventComplete, sluice.EventRetry, sluice.EventRelease, sluice.EventBury} {
				id := w.add(sluice.EnqueueOptions{})
				c := w.claimOne()
				w.ok(progress.Given(w.Store).SaveProgress(w.ctx, []progress.Report{progress.New(id, c.Token, 0.5, "half")}))
				w.ok(progress.Given(w.Store).SaveProgress(w.ctx, []progress.Report{progress.New(id, sluice.NewToken(), 0.9, "a thief")}))
				equal(w, "report", w.reportOf(id), "50 %, half")
				w.done(by(event, c))
				equal(w, "report after "+string(event), w.reportOf(id), "")
				w.ok(progress.Given(w.Store).SaveProgress(w.ctx, []progress.Report{progress.New(id, c.Token, 0.6, "late")}))
				equal(w, "late report after "+string(event), w.reportOf(id), "")
				if w.job(id).State != sluice.StateQueued {
					continue
				}
				w.Advance(time.Hour)
				c = w.claimOne()
				equal(w, "report of the next attempt", w.reportOf(id), "")
				w.ok(progress.Given(w.Store).SaveProgress(w.ctx, []progress.Report{progress.New(id, c.Token, 0.1, "again")}))
				equal(w, "report of the next attempt", w.reportOf(id), "10 %, again")
				w.done(by(sluice.EventComplete, c))
			}
		}},
		{"R-907", "Prune deletes the reports of attempts that have ended, and no other.", "H-15", func(w *world) {
			w.addMany(30)
			claims := w.claim(30)
			var reports []progress.Report
			for _, c := range claims {
				reports = append(reports, progress.New(c.ID, c.Token, 0.5, "half"))
			}
			w.ok(progress.Given(w.Store).SaveProgress(w.ctx, reports))
			for _, c := range claims[:25] {
				w.done(by(sluice.EventComplete, c))
			}
			_, err := w.Store.Prune(w.ctx, "", 10)
			w.ok(err)
			for _, c := range claims[25:] {
				equal(w, "report", w.reportOf(c.ID), "50 %, half")
			}
		}},
		{"R-908", "Whoever follows a job in another process hears how far it comes, and then its end.", "H-15", func(w *world) {
			id := w.add(sluice.EnqueueOptions{})
			c := w.claimOne()
			waiter, heard := await.New(w.Other), make(chan progress.Report)
			var all sync.WaitGroup
			all.Go(func() {
				ctx, cancel := context.WithTimeout(w.ctx, 10*time.Minute)
				defer cancel()
				end, err := waiter.Follow(ctx, id, func(r progress.Report) { heard <- r })
				if err != nil || end.State != sluice.StateCompleted {
					w.Errorf("followed %s to %+v, %v", id, end, err)
				}
				close(heard)
			})
			for _, fraction := range []float64{0.25, 0.5} {
				w.ok(progress.Given(w.Store).SaveProgress(w.ctx, []progress.Report{progress.New(id, c.Token, fraction, "")}))
				equal(w, "fraction", (<-heard).Fraction, fraction)
			}
			w.done(by(sluice.EventComplete, c))
			all.Wait()
		}},
	}
}

// reportOf returns the report of a job as people see it; empty: there is none.
func (w *world) reportOf(id sluice.ID) string {
	w.Helper()
	found, err := progress.Of(w.ctx, w.Other, id)
	w.ok(err)
	if report, said := found[id]; said {
		return report.String()
	}
	return ""
}
