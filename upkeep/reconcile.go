package upkeep

import (
	"context"
	"errors"
	"fmt"

	"github.com/sluice-queue/sluice"
)

// Reconciliation chooses what Reconcile looks at.
type Reconciliation struct {
	// Queue is the queue whose jobs are looked at.
	Queue string
	// Jobs, if there are any, are the only ones. At most sluice.DispatchLimit.
	Jobs []sluice.ID
	// DryRun changes nothing.
	DryRun bool
}

// Reconcile asks the engines how the runs of a queue's jobs are, of all that are claimed for an engine or dispatched,
// hands each over with what becomes of the job by that, and does it, unless it is a dry run. It leaves claims alone whose
// lease has not run out: their dispatcher is about to settle them. Of those that an engine gave no answer for it tells by
// the error.
func (u *Upkeep) Reconcile(ctx context.Context, what Reconciliation, tell func(Judged) error) error {
	if err := sluice.CheckGiven("tell", tell); err != nil {
		return err
	}
	q, err := u.client.Queue(ctx, what.Queue)
	if err != nil {
		return err
	}
	defer u.log.Flush()
	f := u.strictFollower(q.Name)
	done := Followed{Settled: make(map[sluice.Event]int)}
	take := func(judged []Judged, _ int) error {
		for _, j := range judged {
			if err := tell(j); err != nil {
				return err
			}
			if what.DryRun {
				continue
			}
			if err := f.settle(ctx, q, []decision{j.decided}, &done); err != nil {
				return err
			}
		}
		return nil
	}
	filter := sluice.DispatchFilter{Queue: q.Name, IDs: what.Jobs, Limit: followSlice}
	for {
		claims, err := u.store.Dispatches(ctx, filter)
		if err != nil {
			return fmt.Errorf("list runs under way: %w", err)
		}
		if len(claims) == 0 {
			return nil
		}
		filter.After = claims[len(claims)-1].ID
		err = f.judge(ctx, q, settled(claims, q), take)
		if err != nil || len(claims) < followSlice {
			return err
		}
	}
}

// settled leaves out claims that a dispatcher holds in this moment.
func settled(claims []*sluice.Claim, q sluice.Queue) []*sluice.Claim {
	var out []*sluice.Claim
	for _, c := range claims {
		if c.State == sluice.StateDispatched || c.LeaseUntil.Before(q.Now) {
			out = append(out, c)
		}
	}
	return out
}

// Ask asks the engine of a job how its run is. A job that never had a run is a sluice.ErrNotFound, one whose engine this
// upkeep was not given an UnknownEngineError.
func (u *Upkeep) Ask(ctx context.Context, job sluice.Job) (sluice.RunOutcome, error) {
	q, err := u.client.Queue(ctx, job.Queue)
	if err != nil && !errors.Is(err, sluice.ErrNotFound) {
		return sluice.RunOutcome{}, err
	}
	if job.Ref == "" {
		return sluice.RunOutcome{}, fmt.Errorf("job %s: %w: no engine was asked for a run of it in this life", job.ID, sluice.ErrNotFound)
	}
	where := job.Engine
	if where == "" {
		where = sluice.EngineOf(q.Settings) // it is finished: history keeps the ref alone
	}
	name, target := sluice.TargetAt(job.Queue, q.Settings, where)
	engine := u.options.Engines[name]
	if engine == nil {
		return sluice.RunOutcome{}, &sluice.UnknownEngineError{Queue: job.Queue, Engine: name}
	}
	target.Results = true
	outcomes, err := engine.Outcomes(ctx, target, []string{job.Ref})
	if err != nil {
		return sluice.RunOutcome{}, fmt.Errorf("ask %s for run %s: %w", where, job.Ref, err)
	}
	return outcomes[0], nil
}
