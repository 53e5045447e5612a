package upkeep

import (
	"context"
	"errors"
	"fmt"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/engine"
)

// Reconciliation selects the jobs of [Upkeep.Reconcile].
type Reconciliation struct {
	// Queue is the queue whose jobs are checked.
	Queue string
	// Jobs limits the check to these jobs. At most [engine.DispatchLimit]. Default: all jobs.
	Jobs []sluice.ID
	// DryRun changes nothing.
	DryRun bool
}

// Reconcile asks the engines about the runs of a queue's jobs: all jobs that are claimed for an engine or
// dispatched. For each job, Reconcile calls tell with the event that follows, then applies the event, except in
// a dry run. Reconcile skips claims whose lease has not run out, because their dispatcher is about to settle
// them. Jobs without an answer of their engine are reported in the error.
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
	answered, stopped := 0, error(nil)
	take := func(judged []Judged, _ int) error {
		answered += len(judged)
		for _, j := range judged {
			if stopped == nil {
				stopped = f.reconcile(ctx, q, j, what.DryRun, tell, &done)
			}
		}
		return stopped
	}
	filter := engine.DispatchFilter{Queue: q.Name, IDs: what.Jobs, Limit: followSlice}
	var failed []error
	for {
		claims, err := engine.Given(u.store).Dispatches(ctx, filter)
		if err != nil {
			return errors.Join(append(failed, fmt.Errorf("list runs under way: %w", err))...)
		}
		if len(claims) == 0 {
			return errors.Join(failed...)
		}
		filter.After, answered = claims[len(claims)-1].ID, 0
		err = f.judge(ctx, q, settled(claims, q), take)
		failed = append(failed, err)
		// A run that the engine cannot read holds up no other. An engine that answers nothing ends it.
		if len(claims) < followSlice || stopped != nil || err != nil && answered == 0 {
			return errors.Join(failed...)
		}
	}
}

// reconcile tells what becomes of a job, and does it.
func (f *follower) reconcile(ctx context.Context, q sluice.Queue, j Judged, dryRun bool, tell func(Judged) error, done *Followed) error {
	if err := tell(j); err != nil || dryRun {
		return err
	}
	return f.settle(ctx, q, []decision{j.decided}, done)
}

// settled leaves out claims that a dispatcher still holds.
func settled(claims []*sluice.Claim, q sluice.Queue) []*sluice.Claim {
	var out []*sluice.Claim
	for _, c := range claims {
		if c.State == sluice.StateDispatched || c.LeaseUntil.Before(q.Now) {
			out = append(out, c)
		}
	}
	return out
}

// Ask asks a job's engine about its run. The error is a [sluice.ErrNotFound] if the job never had a run. The
// error is a [engine.UnknownError] if this upkeep was not given the job's engine.
func (u *Upkeep) Ask(ctx context.Context, job sluice.Job) (engine.Outcome, error) {
	q, err := u.client.Queue(ctx, job.Queue)
	if err != nil && !errors.Is(err, sluice.ErrNotFound) {
		return engine.Outcome{}, err
	}
	if job.Ref == "" {
		return engine.Outcome{}, fmt.Errorf("job %s: %w: no engine was asked for a run of it in this life", job.ID, sluice.ErrNotFound)
	}
	where := job.Engine
	if where == "" {
		where = engine.Location(q.Settings) // the job is finished: history keeps the ref alone
	}
	name, target := engine.TargetAt(job.Queue, q.Settings, where)
	remote := u.options.Engines[name]
	if remote == nil {
		return engine.Outcome{}, &engine.UnknownError{Queue: job.Queue, Engine: name}
	}
	target.Results = true
	outcomes, err := remote.Outcomes(ctx, target, []string{job.Ref})
	if err != nil {
		return engine.Outcome{}, fmt.Errorf("ask %s for run %s: %w", where, job.Ref, err)
	}
	return outcomes[0], nil
}
