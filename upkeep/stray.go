package upkeep

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/engine"
)

const (
	// strayStart is how long after the end of a job its recorded run may still be started. The dispatcher may
	// not know of the end yet, or may have given up waiting for an engine which took the start all the same.
	strayStart = 10 * time.Minute
	// strayReason is the reason given to the engine.
	strayReason = "its job was cancelled"
	// strayForced is the reason given to the engine for a run that a person ends by force. The audit names the person.
	strayForced = "its job was cancelled, and it did not heed that"
)

// endStray has the runs of cancelled jobs ended, one slice per call, round and round. Runs that do not react
// then hold up no others. The first call goes through all of them, like askStray.
func (f *follower) endStray(ctx context.Context, q sluice.Queue, done *Followed) error {
	for {
		runs, err := engine.Given(f.store()).OrphanRuns(ctx, q.Name, f.endAfter, followSlice)
		if err != nil {
			return fmt.Errorf("list runs of cancelled jobs: %w", err)
		}
		f.endAfter = engine.OrphanRun{}
		if len(runs) == followSlice {
			f.endAfter = runs[len(runs)-1]
		}
		f.endedAll = f.endedAll || f.endAfter.JobID.IsZero()
		if err := f.endSlice(ctx, q, runs, done); err != nil || f.endedAll {
			return err
		}
	}
}

func (f *follower) endSlice(ctx context.Context, q sluice.Queue, runs []engine.OrphanRun, done *Followed) error {
	byEngine := make(map[string][]engine.OrphanRun)
	for _, run := range runs {
		byEngine[run.Engine] = append(byEngine[run.Engine], run)
	}
	var failed []error
	for where, ofEngine := range byEngine {
		if !f.follows(q, where, len(ofEngine)) {
			continue
		}
		failed = append(failed, f.endAt(ctx, q, where, ofEngine, done))
	}
	return errors.Join(failed...)
}

// endAt checks the runs before it asks any of them to end. If the queue's refs are made of keys, a ref may by
// now belong to another job's run, which must go on. A run that the engine cannot read now holds up no other.
func (f *follower) endAt(ctx context.Context, q sluice.Queue, where string, runs []engine.OrphanRun, done *Followed) error {
	remote, target, err := f.engineAt(q, where, len(runs))
	if err != nil {
		return err
	}
	target.Results = false
	refs := make([]string, len(runs))
	for i, run := range runs {
		refs[i] = run.Ref
	}
	outcomes, unknown := remote.Outcomes(ctx, target, refs)
	if unknown != nil {
		unknown = fmt.Errorf("ask %s for %d runs of cancelled jobs: %w", where, len(refs), unknown)
	}
	var going, forced []string
	var over []engine.OrphanRun
	for i, run := range outcomes {
		if run.State == "" { // no answer
			continue
		}
		own, err := f.owns(ctx, q, runs[i].JobID, run)
		if err != nil {
			return errors.Join(unknown, err)
		}
		switch {
		case own && run.State == engine.Running && runs[i].Terminate:
			forced = append(forced, runs[i].Ref)
		case own && run.State == engine.Running:
			going = append(going, runs[i].Ref)
		case hasEnded(runs[i], run, own), q.Now.Sub(runs[i].CancelledAt) > strayStart:
			over = append(over, runs[i])
		}
	}
	done.Ending += len(going) + len(forced)
	return errors.Join(unknown, cancelRuns(ctx, remote, target, where, going), terminateRuns(ctx, remote, target, where, forced), f.forget(ctx, over, done))
}

// hasEnded reports whether an engine's answer means that a run has ended. A started run has ended if the engine
// no longer has it, or if its ref belongs to another run. A run that was only recorded may still be on its way.
func hasEnded(stray engine.OrphanRun, run engine.Outcome, own bool) bool {
	gone := run.State == engine.Absent || run.State == engine.Foreign || !own && run.Work == ""
	return own && run.State.Over() || stray.Started && gone
}

// terminateRuns ends runs by force. If the engine cannot, it is asked to cancel them.
func terminateRuns(ctx context.Context, remote engine.Engine, target engine.Target, where string, refs []string) error {
	byForce, can := remote.(engine.Terminator)
	if !can || len(refs) == 0 {
		return cancelRuns(ctx, remote, target, where, refs)
	}
	for i, err := range byForce.Terminate(ctx, target, refs, strayForced) {
		if err != nil {
			return fmt.Errorf("have %s terminate %d runs of ended jobs, such as %s: %w", where, len(refs), refs[i], err)
		}
	}
	return nil
}

// cancelRuns asks runs to end. The next look shows whether they did.
func cancelRuns(ctx context.Context, remote engine.Engine, target engine.Target, where string, refs []string) error {
	if len(refs) == 0 {
		return nil
	}
	for i, err := range remote.Cancel(ctx, target, refs, strayReason) {
		if err != nil { // one error is enough: the others are probably alike
			return fmt.Errorf("ask %s to end %d runs of cancelled jobs, such as %s: %w", where, len(refs), refs[i], err)
		}
	}
	return nil
}

func (f *follower) forget(ctx context.Context, over []engine.OrphanRun, done *Followed) error {
	if len(over) == 0 {
		return nil
	}
	if err := engine.Given(f.store()).ForgetOrphanRuns(ctx, over); err != nil {
		return fmt.Errorf("forget %d runs of cancelled jobs: %w", len(over), err)
	}
	done.Ended += len(over)
	return nil
}
