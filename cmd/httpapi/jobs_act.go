package httpapi

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/access"
	"github.com/sluice-queue/sluice/cmd/internal/acting"
	"github.com/sluice-queue/sluice/hold"
)

// ActBody names the jobs of an act.
type ActBody struct {
	// IDs are the jobs.
	IDs []sluice.ID `json:"ids" minItems:"1" maxItems:"10000"`
	// Reason says why, for the audit. Some acts need one.
	Reason string `json:"reason,omitempty" maxLength:"1000"`
}

// actInput is an act on jobs.
type actInput struct{ Body ActBody }

// acted says what became of the jobs of an act.
type acted struct {
	// Done counts the jobs on which the act succeeded.
	Done int `json:"done"`
	// Failed lists the others.
	Failed []failedJob `json:"failed"`
}

// failedJob is a job that an act left as it was.
type failedJob struct {
	// ID is the job, and Error says why.
	ID    sluice.ID `json:"id"`
	Error *Problem  `json:"error"`
}

// known tells the jobs that the caller knows from the others, which for him are not there.
func (c *call) known(ctx context.Context, ids []sluice.ID) (known, unknown []sluice.ID, err error) {
	if c.caller.None() {
		return ids, nil, nil
	}
	for _, id := range ids {
		switch _, err := c.job(ctx, id); {
		case errors.Is(err, sluice.ErrNotFound):
			unknown = append(unknown, id)
		case err != nil:
			return nil, nil, err
		default:
			known = append(known, id)
		}
	}
	return known, unknown, nil
}

// eachOnce returns ids without repetitions.
func eachOnce(ids []sluice.ID) []sluice.ID {
	seen := make(map[sluice.ID]bool, len(ids))
	return slices.DeleteFunc(slices.Clone(ids), func(id sluice.ID) bool {
		again := seen[id]
		seen[id] = true
		return again
	})
}

// doOn acts on jobs that the caller knows, on each once.
func (c *call) doOn(ctx context.Context, ids []sluice.ID, do func(ids []sluice.ID) error) (acted, error) {
	out := acted{Failed: []failedJob{}}
	known, unknown, err := c.known(ctx, eachOnce(ids))
	if err != nil {
		return out, err
	}
	for _, id := range unknown {
		out.Failed = append(out.Failed, failedJob{id, c.problem(sluice.ErrNotFound)})
	}
	if len(known) == 0 {
		return out, nil
	}
	err = do(known)
	var batch *sluice.BatchError
	if err != nil && !errors.As(err, &batch) {
		return out, err
	}
	out.Done = len(known)
	for i, id := range known {
		if batch != nil && batch.Failed[i] != nil {
			out.Done--
			out.Failed = append(out.Failed, failedJob{id, c.problem(batch.Failed[i])})
		}
	}
	return out, nil
}

// simpleAct is an act that takes only jobs and a reason.
type simpleAct struct {
	verb, summary, text, command string
	do                           func(ctx context.Context, c *call, ids []sluice.ID, act sluice.Act) error
}

func simpleActs() []simpleAct {
	return []simpleAct{
		{"cancel", "cancel jobs", "Cancels unfinished jobs; running handlers are told.", "cancel", func(ctx context.Context, c *call, ids []sluice.ID, act sluice.Act) error {
			return c.api.client().Cancel(ctx, ids, act)
		}},
		{"retry", "retry jobs", "Makes waiting jobs due now, and requeues dead, cancelled and uncertain ones.", "retry", func(ctx context.Context, c *call, ids []sluice.ID, act sluice.Act) error {
			return acting.Retry(ctx, c.api.client(), ids, act)
		}},
		{"run-now", "make jobs due now", "Makes waiting jobs due now.", "run-now", func(ctx context.Context, c *call, ids []sluice.ID, act sluice.Act) error {
			return c.api.client().RunNow(ctx, ids, act)
		}},
		{"hold", "hold jobs", "Holds waiting jobs until their release. Needs a reason.", "hold", func(ctx context.Context, c *call, ids []sluice.ID, act sluice.Act) error {
			return hold.Hold(ctx, c.api.store, ids, act)
		}},
		{"release", "release jobs", "Releases held jobs.", "release", func(ctx context.Context, c *call, ids []sluice.ID, act sluice.Act) error {
			return hold.Release(ctx, c.api.store, ids, act)
		}},
		{"delete", "delete jobs", "Deletes dead and cancelled jobs.", "dead delete", func(ctx context.Context, c *call, ids []sluice.ID, act sluice.Act) error {
			return c.api.client().Delete(ctx, ids, act)
		}},
		{"terminate", "terminate runs of jobs", "Ends the runs of cancelled jobs at their engine by force. Needs a reason.", "runs terminate", func(ctx context.Context, c *call, ids []sluice.ID, act sluice.Act) error {
			return c.api.client().Terminate(ctx, ids, act)
		}},
	}
}

func (a *API) actRoutes() {
	for _, s := range simpleActs() {
		add(a, Route{
			Method: "POST", Path: "/jobs/" + s.verb, Name: s.verb + "-jobs", Group: "acts", Summary: s.summary, Text: s.text,
			Needs: access.Operate, Commands: []string{s.command}, scope: ofJobs,
		}, func(ctx context.Context, c *call, in *actInput) (acted, error) {
			act := c.act(in.Body.Reason)
			return c.doOn(ctx, in.Body.IDs, func(ids []sluice.ID) error { return s.do(ctx, c, ids, act) })
		})
	}
	add(a, Route{
		Method: "POST", Path: "/jobs/requeue", Name: "requeue-jobs", Group: "acts", Summary: "requeue jobs",
		Text:  "Begins a new life of dead, cancelled and uncertain jobs, or takes that back. Needs a reason.",
		Needs: access.Operate, Commands: []string{"requeue", "dead requeue"}, scope: ofJobs,
	}, requeueJobs)
	add(a, Route{
		Method: "POST", Path: "/jobs/resolve", Name: "resolve-jobs", Group: "acts", Summary: "resolve uncertain jobs",
		Text:  "Records the outcome of uncertain jobs. Needs a reason.",
		Needs: access.Operate, Commands: []string{"resolve"}, scope: ofJobs,
	}, func(ctx context.Context, c *call, in *resolveInput) (acted, error) {
		act := c.act(in.Body.Reason)
		return c.doOn(ctx, in.Body.IDs, func(ids []sluice.ID) error { return c.api.client().Resolve(ctx, ids, in.Body.Outcome, act) })
	})
	add(a, Route{
		Method: "POST", Path: "/jobs/reschedule", Name: "reschedule-jobs", Group: "acts", Summary: "reschedule jobs",
		Text:  "Changes when waiting jobs are due, or takes that back.",
		Needs: access.Operate, Commands: []string{"reschedule"}, scope: ofJobs,
	}, rescheduleJobs)
}

// requeueInput requeues jobs.
type requeueInput struct{ Body requeueBody }

// requeueBody requeues jobs.
type requeueBody struct {
	ActBody
	// Undo takes a requeue back, of jobs that still wait and were not claimed since.
	Undo bool `json:"undo,omitempty"`
	// BesideOpenRun does not wait for runs that may still be open: two may then be.
	BesideOpenRun bool `json:"beside_open_run,omitempty"`
}

func requeueJobs(ctx context.Context, c *call, in *requeueInput) (acted, error) {
	act := c.act(in.Body.Reason)
	if in.Body.Undo && in.Body.BesideOpenRun {
		return acted{}, &sluice.InvalidError{Field: "undo", Rule: "starts nothing, so beside_open_run must be false"}
	}
	return c.doOn(ctx, in.Body.IDs, func(ids []sluice.ID) error {
		if in.Body.Undo {
			return c.api.client().UndoRequeue(ctx, ids, act)
		}
		act.BesideOpenRun = in.Body.BesideOpenRun
		return c.api.client().Requeue(ctx, ids, act)
	})
}

// resolveInput resolves jobs.
type resolveInput struct{ Body resolveBody }

// resolveBody resolves jobs.
type resolveBody struct {
	ActBody
	// Outcome is completed if the work was done, else dead.
	Outcome sluice.State `json:"outcome" enum:"completed,dead"`
}

// rescheduleInput reschedules jobs.
type rescheduleInput struct{ Body rescheduleBody }

// rescheduleBody reschedules jobs.
type rescheduleBody struct {
	ActBody
	// DueAt is the new earliest start. Missing: Delay says it.
	DueAt time.Time `json:"due_at,omitzero"`
	// Delay is the time from now to the earliest start, such as 10m.
	Delay string `json:"delay,omitempty" maxLength:"20"`
	// Undo restores the due time before the last reschedule.
	Undo bool `json:"undo,omitempty"`
}

func rescheduleJobs(ctx context.Context, c *call, in *rescheduleInput) (acted, error) {
	b, act := in.Body, c.act(in.Body.Reason)
	given := 0
	for _, is := range []bool{!b.DueAt.IsZero(), b.Delay != "", b.Undo} {
		if is {
			given++
		}
	}
	if given != 1 {
		return acted{}, &sluice.InvalidError{Field: "due_at", Rule: "exactly one of due_at, delay and undo must be given"}
	}
	due := b.DueAt
	if b.Delay != "" {
		wait, err := sluice.ParseDuration(b.Delay)
		if err != nil {
			return acted{}, &sluice.InvalidError{Field: "delay", Rule: "must be a duration such as 10m"}
		}
		now, err := c.api.store.Now(ctx) // the server's clock may be another
		if err != nil {
			return acted{}, err
		}
		due = now.Add(wait)
	}
	return c.doOn(ctx, b.IDs, func(ids []sluice.ID) error {
		if b.Undo {
			return c.api.client().UndoReschedule(ctx, ids, act)
		}
		return c.api.client().Reschedule(ctx, ids, due, act)
	})
}
