package enginetest

import (
	"context"
	"time"

	"github.com/sluice-queue/sluice/engine"
)

func faultRules() []Rule {
	return []Rule{
		{"E-60", "An engine that cannot be reached says so in every answer, and never that a run is absent.", "I-18, I-20, A-116, D-21", func(w *world) {
			run, other := w.run(Script{Do: Complete}), w.run(Script{Do: Complete})
			answers := w.Gone.Start(w.ctx, w.Target, []engine.Run{run, other})
			answers = append(answers, w.Gone.Cancel(w.ctx, w.Target, []string{run.Ref, other.Ref}, "the rules say so")...)
			if len(answers) != 4 {
				w.Fatalf("two runs and two refs have %d answers", len(answers))
			}
			_, err := w.Gone.Outcomes(w.ctx, w.Target, []string{run.Ref})
			answers = append(answers, err)
			_, err = w.Gone.Ended(w.ctx, w.Target, time.Now().Add(-time.Hour), nil)
			answers = append(answers, err)
			_, err = w.Gone.Check(w.ctx, w.Target)
			for _, err := range append(answers, err) {
				w.is(err, engine.ErrUnavailable)
				w.unknown(err)
			}
		}},
		{"E-61", "A call under a context that has ended comes back with an error, which does not say that a run is refused or absent.", "I-20", comesBack},
		{"E-62", "A target that the engine lacks is told as that by every start and by Check; none of its runs is called absent.", "A-45, D-67", func(w *world) {
			run, other := w.run(Script{Do: Complete}), w.run(Script{Do: Complete})
			for _, err := range w.Engine.Start(w.ctx, w.Nowhere, []engine.Run{run, other}) {
				w.is(err, engine.ErrTarget)
			}
			_, err := w.Engine.Check(w.ctx, w.Nowhere)
			w.is(err, engine.ErrTarget)
			if _, err := w.Engine.Outcomes(w.ctx, w.Nowhere, []string{run.Ref}); err == nil {
				w.Error("the outcome of a run there is told")
			}
		}},
		{"E-63", "Check tells how long runs that ended are kept, that workers wait for runs of the target, and the engine's version.", "I-16, A-10, A-45", func(w *world) {
			var report engine.Report
			w.until("Check tells of workers", func() bool {
				var err error
				report, err = w.Engine.Check(w.ctx, w.Target)
				w.ok(err)
				return report.Pollers != 0
			})
			if report.Retention != w.Retention || report.Version == "" {
				w.Errorf("the report is %+v, want a retention of %s and a version", report, w.Retention)
			}
		}},
	}
}

func comesBack(w *world) {
	run := w.run(Script{Do: Complete})
	ctx, end := context.WithCancel(w.ctx)
	end()
	back := make(chan []error, 1)
	go func() {
		answers := w.Engine.Start(ctx, w.Target, []engine.Run{run})
		answers = append(answers, w.Engine.Cancel(ctx, w.Target, []string{run.Ref}, "the rules say so")...)
		_, err := w.Engine.Outcomes(ctx, w.Target, []string{run.Ref})
		answers = append(answers, err)
		_, err = w.Engine.Ended(ctx, w.Target, time.Now(), nil)
		answers = append(answers, err)
		_, err = w.Engine.Check(ctx, w.Target)
		back <- append(answers, err)
	}()
	var answers []error
	w.until("the calls come back", func() bool {
		select {
		case answers = <-back:
		default:
		}
		return answers != nil
	})
	for _, err := range answers {
		w.unknown(err)
	}
}
