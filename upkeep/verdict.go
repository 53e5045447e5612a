package upkeep

import (
	"fmt"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/engine"
	"github.com/sluice-queue/sluice/internal/storing"
)

// verdict returns the settlement of a job by its engine's answer about the run; the zero Settlement: none.
//
// If an engine lacks a run, and the request for it is too recent for the engine to have forgotten it, the run
// never existed. The job may then go again: its next run has the same ref, so a start that is still on its way
// finds it. If an engine had a run and no longer has it, the job becomes uncertain; it never runs twice.
func verdict(c *sluice.Claim, run engine.Outcome, s sluice.Settings, retention time.Duration, now time.Time) sluice.Settlement {
	out := sluice.Settlement{ID: c.ID, Token: c.Token, Claim: c}
	switch run.State {
	case engine.Running:
		if c.State != sluice.StateClaimed {
			return sluice.Settlement{}
		}
		out.Event, out.Reason = sluice.EventDispatch, "the engine has the run"
	case engine.Completed:
		out.Event, out.Result = sluice.EventComplete, run.Result
		if err := sluice.CheckResult("result", run.Result); err != nil { // the run happened: the job completes without its result
			out.Result, out.Reason = nil, err.Error()
		}
	case engine.Failed, engine.TimedOut:
		return failed(c, run, s)
	case engine.Cancelled, engine.Terminated:
		out.Event, out.Error, out.Reason = sluice.EventBury, endOf(run), sluice.Brief(endOf(run))
	case engine.Foreign:
		out.Event, out.Error, out.Reason = sluice.EventBury, engine.ErrRefTaken.Error()+": "+c.Ref, "another run has its ref"
		if c.State == sluice.StateDispatched {
			out.Event, out.Reason = sluice.EventDoubt, "another run has its ref now"
		}
	case engine.Absent:
		return absent(c, s, retention, now)
	default:
		return sluice.Settlement{}
	}
	return out
}

// failed returns the settlement of a failed run: a failed attempt of the job, its last one unless runs are
// retried.
func failed(c *sluice.Claim, run engine.Outcome, s sluice.Settings) sluice.Settlement {
	if !s.RetryRuns {
		s.MaxAttempts, c.MaxAttempts = 1, 0
	}
	out := sluice.FailureOf(c, s, endOf(run))
	out.Holder = ""
	if out.Event == sluice.EventBury && !s.RetryRuns {
		out.Reason = sluice.Brief(endOf(run))
	}
	return out
}

// endOf returns the error of a run that did not complete.
func endOf(run engine.Outcome) string {
	if run.Error == "" {
		return "the run " + string(run.State)
	}
	return "the run " + string(run.State) + ": " + run.Error
}

// absent returns the settlement of a job whose run the engine does not have.
func absent(c *sluice.Claim, s sluice.Settings, retention time.Duration, now time.Time) sluice.Settlement {
	out := sluice.Settlement{ID: c.ID, Token: c.Token, Claim: c}
	if c.State == sluice.StateDispatched {
		out.Event, out.Error = sluice.EventDoubt, "the engine had the run "+c.Ref+", and has it no more"
		out.Reason = "unknown outcome: the run was deleted, or ended so long ago that the engine has forgotten it"
		return out
	}
	if asked := now.Sub(c.ClaimedAt); (engine.Report{Retention: retention}).Forgets(asked) {
		out.Event, out.Error = sluice.EventDoubt, fmt.Sprintf("whether the run %s was started %s ago cannot be known any more", c.Ref, asked.Round(time.Second))
		out.Reason = fmt.Sprintf("unknown outcome: the engine keeps runs that ended for %s only", retention)
		return out
	}
	if c.Recoveries+1 >= s.MaxRecoveries {
		out.Event, out.Error, out.Poison, out.Reason = sluice.EventBury, storing.PoisonError(c.Recoveries+1), true, "recoveries spent"
		return out
	}
	out.Event, out.Reason = sluice.EventRecover, "the lease of "+c.Holder+" ran out, and the engine never had the run"
	return out
}
