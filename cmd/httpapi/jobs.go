package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/access"
	"github.com/sluice-queue/sluice/edit"
	"github.com/sluice-queue/sluice/explain"
	"github.com/sluice-queue/sluice/hold"
	"github.com/sluice-queue/sluice/internal/wire"
	"github.com/sluice-queue/sluice/progress"
	"github.com/sluice-queue/sluice/schema"
	"github.com/sluice-queue/sluice/search"
)

// jobs adds the routes of jobs.
func (a *API) jobs() {
	a.enqueueRoutes()
	add(a, Route{
		Method: "GET", Path: "/jobs", Name: "list-jobs", Group: "jobs", Summary: "list jobs",
		Text:  "The newest jobs come first, or the oldest; if the filter names queues, queue by queue. Jobs come without payloads.",
		Needs: access.Look, Commands: []string{"jobs", "dead", "dead ls"}, scope: ofJobs,
	}, listJobs)
	add(a, Route{
		Method: "GET", Path: "/jobs/{id}", Name: "get-job", Group: "jobs", Summary: "read a job",
		Needs: access.Look | access.Follow, Commands: []string{"job"}, scope: ofJobs,
	}, getJob)
	add(a, Route{
		Method: "PATCH", Path: "/jobs/{id}", Name: "edit-job", Group: "jobs", Summary: "edit a waiting job",
		Needs: access.Operate, Commands: []string{"edit"}, scope: ofJobs,
	}, editJob)
	add(a, Route{
		Method: "GET", Path: "/jobs/{id}/attempts", Name: "list-attempts", Group: "jobs", Summary: "list the failed attempts of a job",
		Needs: access.Look | access.Follow, Commands: []string{"job"}, scope: ofJobs,
	}, listAttempts)
	add(a, Route{
		Method: "GET", Path: "/jobs/{id}/why", Name: "explain-job", Group: "jobs", Summary: "explain why a job waits",
		Needs: access.Look, Commands: []string{"why"}, scope: ofJobs,
	}, explainJob)
	add(a, Route{
		Method: "GET", Path: "/jobs/{id}/end", Name: "await-job", Group: "jobs", Summary: "wait for the end of a job",
		Text:  "Answers when the job has ended, or after the wait with its state then. Waiting costs the store nothing per caller.",
		Needs: access.Follow, Commands: []string{"wait"}, scope: ofJobs, timeout: maxWait + 10*time.Second, waits: true,
	}, awaitJob)
	add(a, Route{
		Method: "POST", Path: "/jobs/ends", Name: "read-ends", Group: "jobs", Summary: "read which jobs have ended",
		Text:  "For programs that wait for many jobs: with signal, the stream's topic signals tells of each end within the next minute.",
		Needs: access.Follow, Commands: []string{"wait"}, scope: ofJobs,
	}, readEnds)
	a.actRoutes()
}

// listInput chooses jobs.
type listInput struct {
	Where  string `query:"where" doc:"the filter, such as state:dead queue:mail.* error:~timeout; see docs/guide/find.md" maxLength:"8192"`
	Limit  int    `query:"limit" doc:"the most jobs" minimum:"1" maximum:"1000" default:"100"`
	Cursor string `query:"cursor" doc:"the next of the list before" maxLength:"1024"`

	Queue         string    `query:"queue" doc:"only this queue, or the queues of a group" maxLength:"64"`
	Tenant        string    `query:"tenant" doc:"only this tenant" maxLength:"128"`
	Key           string    `query:"key" doc:"only this key" maxLength:"255"`
	States        []string  `query:"state,explode" doc:"only these states" maxItems:"7"`
	Labels        []string  `query:"label,explode" doc:"only with these labels, each as name=value" maxItems:"16"`
	Batch         sluice.ID `query:"batch" doc:"only the jobs of a batch, and of those in it" format:"uuid"`
	MinAttempts   int       `query:"min_attempts" doc:"at least so many failed attempts" minimum:"0"`
	MinRecoveries int       `query:"min_recoveries" doc:"at least so many lost holders" minimum:"0"`
	Before        sluice.ID `query:"before" doc:"only jobs before this one, instead of a cursor" format:"uuid"`
	OldestFirst   bool      `query:"oldest_first" doc:"the oldest job first; before is then the job after which the list begins. With a cursor: as in the list before"`
}

// query reads what a list chooses.
func (in *listInput) query(now time.Time) (search.Query, error) {
	q := search.Query{
		Queue: in.Queue, Tenant: in.Tenant, Key: in.Key, Batch: in.Batch, MinAttempts: in.MinAttempts, MinRecoveries: in.MinRecoveries,
	}
	for _, state := range in.States {
		q.States = append(q.States, sluice.State(state))
	}
	for _, label := range in.Labels {
		name, value, is := strings.Cut(label, "=")
		if !is || name == "" {
			return q, &sluice.InvalidError{Field: "label", Rule: fmt.Sprintf("%.60q must be name=value", label)}
		}
		if q.Labels == nil {
			q.Labels = make(map[string]string)
		}
		q.Labels[name] = value
	}
	return q.And(in.Where, now)
}

// jobList is a part of a list of jobs.
type jobList struct {
	// Jobs are the jobs, without payloads.
	Jobs []ShownJob `json:"jobs"`
	// Compared counts the jobs that were compared with the filter. Missing: the token is bounded, and others' jobs would count.
	Compared *int `json:"compared,omitempty"`
	// Next is the cursor of the next part. Missing: no job is left. A part may have fewer jobs than asked for, even
	// none, although another follows.
	Next string `json:"next,omitempty"`
}

// ShownJob is a job as people see it.
type ShownJob struct {
	sluice.Job
	// Label is the state that people see: a state, or ready, scheduled, retrying or blocked.
	Label string `json:"label"`
}

func listJobs(ctx context.Context, c *call, in *listInput) (jobList, error) {
	out := jobList{Jobs: []ShownJob{}}
	now := time.Now()
	q, err := in.query(now)
	if err != nil {
		return out, err
	}
	q = c.within(q)
	switch {
	case in.Cursor != "" && !in.Before.IsZero():
		return out, &sluice.InvalidError{Field: "before", Rule: "must be missing with a cursor"}
	case in.Cursor == "":
		if in.Cursor, err = q.From(in.Before, in.OldestFirst); err != nil {
			return out, err
		}
	}
	found, err := search.ReadList(ctx, c.api.store, q, in.Cursor, in.Limit)
	for _, job := range found.Jobs {
		out.Jobs = append(out.Jobs, ShownJob{c.withhold(job), job.Label(now)})
	}
	c.hideBlockers(out.Jobs)
	if out.Next = found.Next; c.caller.None() {
		out.Compared = &found.Compared
	}
	return out, err
}

// JobInput names a job.
type JobInput struct {
	ID sluice.ID `path:"id" doc:"the job" format:"uuid"`
}

// jobDetail is everything about a job.
type jobDetail struct {
	ShownJob
	// Version is the content of a waiting job, for an edit. Missing: the job does not wait, or its payload is withheld.
	Version string `json:"version,omitempty"`
	// Hold says who holds the job. Missing: nobody does.
	Hold *hold.Held `json:"hold,omitempty"`
	// Progress is the last report of the running attempt. Missing: there is none.
	Progress *progress.Report `json:"progress,omitempty"`
}

func getJob(ctx context.Context, c *call, in *JobInput) (jobDetail, error) {
	job, err := c.job(ctx, in.ID)
	if err != nil {
		return jobDetail{}, err
	}
	out := jobDetail{ShownJob: ShownJob{c.withhold(job), job.Label(time.Now())}}
	if out.BlockedBy, err = c.blocker(ctx, job); err != nil {
		return jobDetail{}, err
	}
	if job.State == sluice.StateQueued && !out.Withheld {
		out.Version = edit.VersionOf(job)
	}
	held, is, err := hold.Of(ctx, c.api.store, job)
	if is {
		out.Hold = &held
	}
	if err != nil || job.State != sluice.StateClaimed {
		return out, err
	}
	reports, err := progress.Of(ctx, c.api.store, job.ID)
	if errors.Is(err, sluice.ErrNotFound) { // a store without progress
		return out, nil
	}
	if report, is := reports[job.ID]; is {
		out.Progress = &report
	}
	return out, err
}

// attemptList lists attempts.
type attemptList struct {
	// Attempts are the failed attempts, the oldest first.
	Attempts []sluice.Attempt `json:"attempts"`
}

func listAttempts(ctx context.Context, c *call, in *JobInput) (attemptList, error) {
	if _, err := c.job(ctx, in.ID); err != nil {
		return attemptList{}, err
	}
	found, err := c.api.client().Attempts(ctx, in.ID)
	return attemptList{orEmpty(found)}, err
}

func explainJob(ctx context.Context, c *call, in *JobInput) (out explain.Explanation, err error) {
	if c.caller.None() {
		out, err = explain.Job(ctx, c.api.store, in.ID)
	} else {
		out, err = explain.Within(ctx, c.api.store, in.ID, c.caller.Bounds)
	}
	out.Job, out.Reasons = c.withhold(out.Job), orEmpty(out.Reasons)
	return out, err
}

// maxWait is the longest wait of a request.
const maxWait = 60 * time.Second

// awaitInput names a job and the longest wait.
type awaitInput struct {
	JobInput
	Wait string `query:"wait" doc:"how long to wait, such as 30s; at most 60s" default:"0s" maxLength:"20"`
}

// jobEnd is how a job ended.
type jobEnd struct {
	// ID is the job, and State its state.
	ID    sluice.ID    `json:"id"`
	State sluice.State `json:"state"`
	// Ended says that the job has ended. False: ask again.
	Ended bool `json:"ended"`
	// Result is the result of a completed job.
	Result json.RawMessage `json:"result,omitempty"`
	// Error is the last failure.
	Error string `json:"error,omitempty"`
}

// waitOf reads how long a request waits.
func waitOf(text string) (time.Duration, error) {
	wait, err := sluice.ParseDuration(text)
	if err != nil || wait < 0 || wait > maxWait {
		return 0, &sluice.InvalidError{Field: "wait", Rule: fmt.Sprintf("%.20q must be a duration from 0s to %s", text, maxWait)}
	}
	return wait, nil
}

func awaitJob(ctx context.Context, c *call, in *awaitInput) (jobEnd, error) {
	wait, err := waitOf(in.Wait)
	if err != nil {
		return jobEnd{}, err
	}
	job, err := c.job(ctx, in.ID)
	if err != nil {
		return jobEnd{}, err
	}
	if wait > 0 && !job.State.Finished() {
		c.await(ctx, in.ID, wait)
		if err := c.still(); err != nil {
			return jobEnd{}, err
		}
		if job, err = c.job(ctx, in.ID); err != nil {
			return jobEnd{}, err
		}
	}
	return jobEnd{ID: job.ID, State: job.State, Ended: job.State.Finished(), Error: job.Error, Result: job.Result}, nil
}

// await waits for the end of a job, until the wait is over, the client is gone or the server drains.
func (c *call) await(ctx context.Context, id sluice.ID, wait time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	go func() {
		select {
		case <-c.api.draining:
			cancel()
		case <-ctx.Done():
		}
	}()
	_, _ = c.api.waiter.Wait(ctx, id) // the job says how it ended
}

// editInput changes a waiting job.
type editInput struct {
	JobInput
	Body editBody
}

// editBody is a change. Fields that are missing stay as they are.
type editBody struct {
	// Version is that of the job as the caller read it. Missing: whatever the job is now.
	Version string `json:"version,omitempty"`
	// Payload is the new payload.
	Payload json.RawMessage `json:"payload,omitempty"`
	// Priority is from 1 (first) to 10 (last).
	Priority int `json:"priority,omitempty" minimum:"1" maximum:"10"`
	// DueAt is the new earliest start.
	DueAt time.Time `json:"due_at,omitzero"`
	// Labels are all labels of the job.
	Labels map[string]string `json:"labels,omitempty"`
	// Tenant is the new tenant; an empty one is none.
	Tenant *string `json:"tenant,omitempty"`
	// LimitKey is the new limit key; an empty one is none.
	LimitKey *string `json:"limit_key,omitempty"`
	// Cost is the new cost; 0 is 1.
	Cost *int `json:"cost,omitempty"`
	// Timeout is the new longest time of an attempt, such as 5m; 0s: the handler's or the queue's.
	Timeout *string `json:"timeout,omitempty" maxLength:"20"`
	wire.ReasonBody
}

func editJob(ctx context.Context, c *call, in *editInput) (jobDetail, error) {
	job, err := c.job(ctx, in.ID)
	if err != nil {
		return jobDetail{}, err
	}
	b, act := in.Body, c.act(in.Body.Reason)
	change := edit.Change{Payload: b.Payload, Priority: b.Priority, DueAt: b.DueAt, Labels: b.Labels, Tenant: b.Tenant, LimitKey: b.LimitKey, Cost: b.Cost}
	if b.Tenant != nil {
		if err := c.mayOwn(*b.Tenant); err != nil {
			return jobDetail{}, err
		}
	}
	if b.Timeout != nil {
		timeout, err := sluice.ParseDuration(*b.Timeout)
		if err != nil {
			return jobDetail{}, &sluice.InvalidError{Field: "timeout", Rule: "must be a duration such as 5m"}
		}
		change.Timeout = &timeout
	}
	if b.Version != "" && b.Version != edit.VersionOf(job) { // a conflict, unless the store knows the act
		err = edit.Given(c.api.store).EditJob(ctx, edit.Edit{Change: change, JobID: job.ID, Version: b.Version}, act)
	} else {
		err = edit.Job(ctx, c.api.store, job, change, act, schema.New())
	}
	if err != nil {
		return jobDetail{}, err
	}
	return getJob(ctx, c, &in.JobInput)
}

// mayOwn refuses a new tenant of jobs that is beyond the bounds of the caller.
func (c *call) mayOwn(tenant string) error {
	if !c.caller.Tenant(tenant) {
		return outOfBounds("the token is bounded to other tenants")
	}
	return nil
}

// orEmpty returns a list that JSON shows as a list.
func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
