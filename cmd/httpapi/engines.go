package httpapi

import (
	"context"
	"errors"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/access"
	"github.com/sluice-queue/sluice/cmd/internal/acting"
	"github.com/sluice-queue/sluice/engine"
	"github.com/sluice-queue/sluice/internal/wire"
	"github.com/sluice-queue/sluice/upkeep"
)

// engines adds the routes of engines, and of the runs of jobs.
func (a *API) engineRoutes() {
	add(a, Route{
		Method: "GET", Path: "/jobs/{id}/run", Name: "ask-engine", Group: "engines", Summary: "ask the engine about the run of a job",
		Needs: access.Look, Commands: []string{"ask-engine"}, scope: ofJobs,
	}, askEngine)
	queue := func(r Route) Route { r.Group, r.scope, r.noun = "engines", ofQueue, "queue"; return r }
	add(a, queue(Route{
		Method: "GET", Path: "/queues/{queue}/orphan-runs", Name: "list-orphan-runs", Summary: "list runs that may be open after their jobs ended",
		Needs: access.Look, Commands: []string{"runs"},
	}), func(ctx context.Context, c *call, in *runsInput) (runList, error) {
		if _, err := c.api.client().Queue(ctx, in.Queue); err != nil {
			return runList{}, err
		}
		found, err := engine.Given(c.api.store).OrphanRuns(ctx, in.Queue, engine.OrphanRun{CancelledAt: in.Since, JobID: in.After, Ref: in.Ref}, in.Limit)
		return runList{orEmpty(found)}, err
	})
	add(a, queue(Route{
		Method: "POST", Path: "/queues/{queue}/engine/check", Name: "check-engine", Summary: "check whether the engine can run the jobs of a queue",
		Text: "With start it also starts a run, and ends it.", Needs: access.Operate, Commands: []string{"engine check"},
	}), func(ctx context.Context, c *call, in *checkEngineInput) (wire.EngineCheck, error) {
		q, runner, err := c.engineOf(ctx, in.Queue)
		if err != nil {
			return wire.EngineCheck{}, err
		}
		out := acting.CheckEngine(ctx, runner, q, in.Body.Start)
		for i := range out.Faults {
			out.Faults[i] = c.api.options.Clean(out.Faults[i])
		}
		return out, nil
	})
	add(a, queue(Route{
		Method: "POST", Path: "/queues/{queue}/engine/reconcile", Name: "reconcile-engine", Summary: "ask the engine for the runs of a queue, and settle its jobs",
		Text: "Does what upkeep would do in time. With dry_run it only lists. With jobs it asks for their runs alone: a queue of many is asked for a part at a time.", Needs: access.Operate, Commands: []string{"engine reconcile"},
	}), reconcile)
}

// noEngine is the problem of a queue whose engine the server does not know.
func noEngine() *Problem {
	return problemOf(409, "no_engine", "the server has no engine of that name", "start the server with --temporal or --engine")
}

// engineOf returns a queue and its engine.
func (c *call) engineOf(ctx context.Context, queue string) (sluice.Queue, engine.Engine, error) {
	q, err := c.api.client().Queue(ctx, queue)
	if err != nil {
		return q, nil, err
	}
	runner := c.api.options.Engines[q.Settings.Engine]
	if runner == nil {
		return q, nil, noEngine()
	}
	return q, runner, nil
}

func (c *call) runOf(o engine.Outcome) wire.RunView {
	out := wire.RunView{Ref: o.Ref, Job: o.Job, State: o.State, Result: o.Result, Error: c.api.options.Clean(o.Error), StartedAt: o.StartedAt, EndedAt: o.EndedAt}
	if !c.reads() {
		out.Result = nil
	}
	return out
}

func askEngine(ctx context.Context, c *call, in *JobInput) (wire.RunView, error) {
	job, err := c.job(ctx, in.ID)
	if err != nil {
		return wire.RunView{}, err
	}
	outcome, err := upkeep.New(c.api.store, upkeep.Options{Engines: c.api.options.Engines, Logger: c.api.options.Logger}).Ask(ctx, job)
	var unknown *engine.UnknownError
	if errors.As(err, &unknown) {
		return wire.RunView{}, noEngine()
	}
	return c.runOf(outcome), err
}

// runsInput chooses orphan runs.
type runsInput struct {
	Queue string    `path:"queue" doc:"the queue" maxLength:"64"`
	Since time.Time `query:"since" doc:"cancelled_at of the last run of the page before"`
	After sluice.ID `query:"after" doc:"job_id of the last run of the page before" format:"uuid"`
	Ref   string    `query:"ref" doc:"ref of the last run of the page before" maxLength:"1000"`
	Limit int       `query:"limit" doc:"the most runs" minimum:"1" maximum:"1000" default:"100"`
}

// runList lists orphan runs.
type runList struct {
	// Runs are the runs, those of the jobs that ended first come first.
	Runs []engine.OrphanRun `json:"runs"`
}

// checkEngineInput checks an engine.
type checkEngineInput struct {
	Queue string `path:"queue" doc:"the queue" maxLength:"64"`
	Body  checkEngineBody
}

// checkEngineBody says how.
type checkEngineBody struct {
	// Start starts a run that is due in an hour, and ends it.
	Start bool `json:"start,omitempty"`
}

// reconcileInput settles the jobs of a queue by its engine.
type reconcileInput struct {
	Queue string `path:"queue" doc:"the queue" maxLength:"64"`
	Body  reconcileBody
}

// reconcileBody says how.
type reconcileBody struct {
	// Jobs are the jobs whose runs are asked for. Missing: all of the queue.
	Jobs []sluice.ID `json:"jobs,omitempty" maxItems:"1000"`
	// DryRun changes nothing.
	DryRun bool `json:"dry_run,omitempty"`
}

// reconciled says what follows for the jobs of a queue.
type reconciled struct {
	// Jobs are the first 1,000 jobs about which the engine was asked, and Count counts all of them.
	Jobs  []judged `json:"jobs"`
	Count int      `json:"count"`
}

// judged is a job and its run.
type judged struct {
	// Job is the job, and State its state before.
	Job   sluice.ID    `json:"job"`
	State sluice.State `json:"state"`
	// Run is what the engine knows.
	Run wire.RunView `json:"run"`
	// Event is what follows for the job; missing: nothing. Reason says why.
	Event  sluice.Event `json:"event,omitempty"`
	Reason string       `json:"reason,omitempty"`
}

// maxJudged is the most jobs in an answer.
const maxJudged = 1000

func reconcile(ctx context.Context, c *call, in *reconcileInput) (reconciled, error) {
	out := reconciled{Jobs: []judged{}}
	if _, _, err := c.engineOf(ctx, in.Queue); err != nil {
		return out, err
	}
	u := upkeep.New(c.api.store, upkeep.Options{Engines: c.api.options.Engines, Logger: c.api.options.Logger})
	err := u.Reconcile(ctx, upkeep.Reconciliation{Queue: in.Queue, Jobs: in.Body.Jobs, DryRun: in.Body.DryRun}, func(j upkeep.Judged) error {
		if out.Count++; len(out.Jobs) < maxJudged {
			out.Jobs = append(out.Jobs, judged{j.Job.ID, j.Job.State, c.runOf(j.Run), j.Event, c.api.options.Clean(j.Reason)})
		}
		return nil
	})
	return out, err
}
