package httpapi

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/pause"
	"github.com/sluice-queue/sluice/presence"
	"github.com/sluice-queue/sluice/progress"
)

// HeldJob names a claimed job.
type HeldJob struct {
	// ID is the job, and Token proves the claim.
	ID    sluice.ID `json:"id"`
	Token proof     `json:"token" maxLength:"64"`
}

// renewInput renews leases.
type renewInput struct{ Body renewBody }

// renewBody renews leases.
type renewBody struct {
	// Lease is how long the claims hold from now on, such as 1m.
	Lease string `json:"lease" minLength:"1" maxLength:"20"`
	// Jobs are the claimed jobs.
	Jobs []HeldJob `json:"jobs" minItems:"1" maxItems:"10000"`
}

// renewed says which jobs were not renewed.
type renewed struct {
	// Lost are the jobs that the caller has no more.
	Lost []lostJob `json:"lost"`
}

// lostJob is a job that its worker has lost.
type lostJob struct {
	// ID is the job.
	ID sluice.ID `json:"id"`
	// Cancelled says that somebody cancelled the job. False: its lease ended, or its outcome is stored.
	Cancelled bool `json:"cancelled"`
}

func renewJobs(ctx context.Context, c *call, in *renewInput) (renewed, error) {
	out := renewed{Lost: []lostJob{}}
	lease, err := leaseOf(in.Body.Lease)
	if err != nil {
		return out, err
	}
	renewals := make([]sluice.Renewal, len(in.Body.Jobs))
	for i, held := range in.Body.Jobs {
		token, err := held.Token.token()
		if err != nil {
			return out, err
		}
		renewals[i] = sluice.Renewal{ID: held.ID, Token: token, Lease: lease}
	}
	lost, err := c.api.store.Renew(ctx, renewals)
	if err != nil {
		return out, err
	}
	for _, id := range lost {
		job, err := c.job(ctx, id)
		if err != nil && !errors.Is(err, sluice.ErrNotFound) {
			return out, err
		}
		out.Lost = append(out.Lost, lostJob{id, job.State == sluice.StateCancelled})
	}
	return out, nil
}

// settleInput ends claimed jobs.
type settleInput struct{ Body settleBody }

// settleBody ends claimed jobs.
type settleBody struct {
	WorkerBody
	// Jobs are the outcomes.
	Jobs []outcomeBody `json:"jobs" minItems:"1" maxItems:"1000"`
}

// outcomeBody is how the attempt of a claimed job ended.
type outcomeBody struct {
	HeldJob
	// Outcome is complete, fail, release, or rate_limited. A released job goes back, and no attempt is counted. So does a
	// rate-limited one, and for the delay no process claims the jobs that share its limits, or else its tenant. A worker that
	// decides about failures itself sends retry, with the delay, or bury.
	Outcome string `json:"outcome" enum:"complete,fail,release,rate_limited,retry,bury"`
	// Result is the result of a completed job, any JSON of at most 1 MiB.
	Result json.RawMessage `json:"result,omitempty"`
	// Error says why an attempt failed, and Stack where.
	Error string `json:"error,omitempty" maxLength:"100000"`
	Stack string `json:"stack,omitempty" maxLength:"100000"`
	// Permanent makes a failed job dead at once.
	Permanent bool `json:"permanent,omitempty"`
	// Delay is how long the job waits, such as 10m. Missing: by the queue's backoff if it failed, else not at all. A
	// rate-limited job needs one, of at most 1h if the token is bounded.
	Delay string `json:"delay,omitempty" maxLength:"20"`
	// Reason is for the audit.
	Reason string `json:"reason,omitempty" maxLength:"1000"`
}

// settled says what became of outcomes.
type settled struct {
	// Done counts the outcomes that are stored.
	Done int `json:"done"`
	// Failed lists the others.
	Failed []failedJob `json:"failed"`
}

func settleJobs(ctx context.Context, c *call, in *settleInput) (settled, error) {
	out := settled{Failed: []failedJob{}}
	holder, err := in.Body.holder(c)
	if err != nil {
		return out, err
	}
	var settlements []sluice.Settlement
	var outcomes []outcomeBody
	for _, outcome := range in.Body.Jobs {
		settlement, err := c.settlement(ctx, outcome, holder)
		switch {
		case ctx.Err() != nil:
			return out, ctx.Err()
		case errors.Is(err, sluice.ErrUnavailable):
			return out, err
		case err != nil:
			out.Failed = append(out.Failed, failedJob{outcome.ID, c.problem(err)})
		default:
			settlements, outcomes = append(settlements, settlement), append(outcomes, outcome)
		}
	}
	if len(settlements) == 0 {
		return out, nil
	}
	errs, err := c.api.store.Settle(ctx, settlements)
	if err != nil {
		return out, err
	}
	for i, failure := range errs {
		if failure == nil {
			out.Done++
			c.closeShared(ctx, outcomes[i], settlements[i], holder)
			continue
		}
		out.Failed = append(out.Failed, failedJob{settlements[i].ID, c.problem(failure)})
	}
	c.api.board.ended()
	return out, nil
}

// rateLimited is the outcome of a job whose service refuses more calls.
const rateLimited = "rate_limited"

// closeShared closes what a rate-limited job shares with others. If that fails, only the job waits. The ID of the act follows
// from the claim, so that an outcome that is sent again closes nothing again.
func (c *call) closeShared(ctx context.Context, b outcomeBody, s sluice.Settlement, holder string) {
	if b.Outcome != rateLimited {
		return
	}
	job, err := c.job(ctx, b.ID)
	if err != nil {
		return
	}
	settings, err := c.api.board.settingsOf(ctx, job.Queue)
	if err != nil {
		return
	}
	now, err := c.api.store.Now(ctx)
	if err != nil {
		return
	}
	while := min(s.Delay, job.DueAt.Sub(now)) // an outcome that is sent again late closes no longer than the first one
	if while <= 0 {
		return
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "rate limited %s %s", proofOf(s.Token), b.ID))
	act := sluice.Act{By: holder, Reason: fmt.Sprintf("job %s was rate limited for %s", b.ID, sluice.FormatDuration(s.Delay)), ID: sluice.ID(sum[:16])}
	_ = pause.Shared(ctx, c.api.store, &sluice.Claim{Job: job}, settings, while, act)
}

// settlement returns what the store is to write for an outcome.
func (c *call) settlement(ctx context.Context, b outcomeBody, holder string) (sluice.Settlement, error) {
	out := sluice.Settlement{ID: b.ID, Holder: holder, Reason: b.Reason}
	var err error
	if out.Token, err = b.Token.token(); err != nil {
		return out, err
	}
	var delay time.Duration
	if b.Delay != "" {
		if delay, err = positive("delay", b.Delay); err != nil {
			return out, err
		}
	}
	decided := b.Outcome == "retry" || b.Outcome == "bury"
	failed := decided || b.Outcome == "fail"
	switch {
	case b.Result != nil && b.Outcome != "complete":
		return out, &sluice.InvalidError{Field: "result", Rule: "must be missing unless the outcome is complete"}
	case (b.Permanent || b.Error != "" || b.Stack != "") && !failed:
		return out, &sluice.InvalidError{Field: "error", Rule: "error, stack and permanent must be missing unless the outcome is fail"}
	case b.Permanent && (delay > 0 || decided), (b.Outcome == "complete" || b.Outcome == "bury") && delay > 0:
		return out, &sluice.InvalidError{Field: "delay", Rule: "must be missing, because the job waits no more"}
	case b.Outcome == rateLimited && delay == 0:
		return out, &sluice.InvalidError{Field: "delay", Rule: "must be there: how long the service refuses more"}
	case b.Outcome == rateLimited:
		if err := c.mayClose("delay", delay); err != nil {
			return out, err
		}
		out.Event, out.Delay, out.Reason = sluice.EventRelease, delay, "rate limited"
		return out, nil
	case b.Outcome == "complete":
		out.Event, out.Result = sluice.EventComplete, b.Result
		return out, nil
	case b.Outcome == "release":
		out.Event, out.Delay = sluice.EventRelease, delay
		return out, nil
	case decided:
		out.Event, out.Delay = sluice.Event(b.Outcome), delay
		out.Error, out.Stack = c.api.options.Clean(b.Error), c.api.options.Clean(b.Stack)
		return out, nil
	}
	return c.failure(ctx, b, out, delay)
}

// failure decides whether a failed job is retried, by its attempts and the settings of its queue.
func (c *call) failure(ctx context.Context, b outcomeBody, out sluice.Settlement, delay time.Duration) (sluice.Settlement, error) {
	clean := c.api.options.Clean
	out.Error, out.Stack = clean(b.Error), clean(b.Stack)
	job, err := c.job(ctx, b.ID)
	switch {
	case err != nil:
		return out, err
	case job.State == sluice.StateQueued: // the same outcome was stored before, or the claim is lost
		out.Event = sluice.EventRetry
		return out, nil
	case b.Permanent, job.State == sluice.StateDead:
		out.Event = sluice.EventBury
		return out, nil
	}
	settings, err := c.api.board.settingsOf(ctx, job.Queue)
	if err != nil {
		return out, err
	}
	decided := sluice.FailureOf(&sluice.Claim{Job: job, Token: out.Token}, settings, out.Error)
	if out.Event, out.Delay = decided.Event, decided.Delay; decided.Reason != "" {
		out.Reason = decided.Reason
	}
	if delay > 0 && out.Event == sluice.EventRetry {
		out.Delay = delay
	}
	return out, nil
}

// checkpointInput saves a checkpoint.
type checkpointInput struct{ Body checkpointBody }

// checkpointBody is a checkpoint.
type checkpointBody struct {
	HeldJob
	// Checkpoint is any JSON, of at most 1 MiB.
	Checkpoint json.RawMessage `json:"checkpoint"`
}

func saveCheckpoint(ctx context.Context, c *call, in *checkpointInput) (done, error) {
	token, err := in.Body.Token.token()
	if err != nil {
		return done{}, err
	}
	return done{true}, c.api.store.SaveCheckpoint(ctx, in.Body.ID, token, in.Body.Checkpoint)
}

// progressInput reports progress.
type progressInput struct{ Body progressBody }

// progressBody reports progress.
type progressBody struct {
	// Reports are the reports, one per job.
	Reports []reportBody `json:"reports" minItems:"1" maxItems:"1000"`
}

// reportBody is how far a claimed job has come.
type reportBody struct {
	HeldJob
	// Fraction is the part that is done, from 0 to 1.
	Fraction float64 `json:"fraction" minimum:"0" maximum:"1"`
	// Message is one line for people.
	Message string `json:"message,omitempty" maxLength:"1000"`
}

func reportProgress(ctx context.Context, c *call, in *progressInput) (done, error) {
	reports := make([]progress.Report, len(in.Body.Reports))
	for i, r := range in.Body.Reports {
		token, err := r.Token.token()
		if err != nil {
			return done{}, err
		}
		reports[i] = progress.New(r.ID, token, r.Fraction, c.api.options.Clean(r.Message))
	}
	return done{true}, progress.Given(c.api.store).SaveProgress(ctx, reports)
}

// heartbeatInput tells that a worker is alive.
type heartbeatInput struct{ Body heartbeatBody }

// heartbeatBody is a worker that is alive.
type heartbeatBody struct {
	WorkerBody
	// Queues are those that it claims from.
	Queues []string `json:"queues,omitempty" maxItems:"1000"`
	// Slots is how many jobs it runs at once, and Busy how many it runs now.
	Slots int `json:"slots,omitempty" minimum:"0" maximum:"1000000"`
	Busy  int `json:"busy,omitempty" minimum:"0" maximum:"1000000"`
	// Version is the version of the program, by which people tell processes to stop.
	Version string `json:"version,omitempty" maxLength:"100"`
	// Protocol is the version of the rules that the worker obeys. Missing: that of the server.
	Protocol int `json:"protocol,omitempty" minimum:"0" maximum:"1000000"`
	// StartedAt is when the worker began.
	StartedAt time.Time `json:"started_at,omitzero"`
	// Mode is working, or quiesced once the worker obeys.
	Mode presence.Mode `json:"mode,omitempty" enum:"working,quiesced,stopping"`
	// Conditions keep the worker from parts of its work.
	Conditions []presence.Condition `json:"conditions,omitempty" maxItems:"100"`
	// Leaving says that the worker ends. It is then listed no more.
	Leaving bool `json:"leaving,omitempty"`
}

// told is what people want a worker to do.
type told struct {
	// Wanted is work, quiesce (claim no more) or stop (end, when the jobs have ended).
	Wanted presence.Wanted `json:"wanted"`
	// Reason says why, and ChangedBy who said so.
	Reason    string `json:"reason,omitempty"`
	ChangedBy string `json:"changed_by,omitempty"`
	// Instruction is the whole instruction. Missing: there is none.
	Instruction *presence.Instruction `json:"instruction,omitempty"`
}

func heartbeat(ctx context.Context, c *call, in *heartbeatInput) (told, error) {
	b := in.Body
	out := told{Wanted: presence.WantedWork}
	holder, err := b.holder(c)
	if err != nil {
		return out, err
	}
	for _, queue := range b.Queues {
		if sluice.CheckQueueName(queue) != nil || !c.caller.Queue(queue) {
			return out, outOfBounds("the token is bounded to other queues")
		}
	}
	conditions, err := c.conditions(b.Conditions)
	if err != nil {
		return out, err
	}
	port := presence.Given(c.api.store)
	if b.Leaving {
		return out, port.Deregister(ctx, holder)
	}
	if b.Mode == "" {
		b.Mode = presence.ModeWorking
	}
	instruction, err := port.Heartbeat(ctx, presence.Holder{
		ID: holder, Role: presence.RoleWorker, Queues: b.Queues, Slots: b.Slots, Busy: b.Busy, Version: sluice.StoredText(b.Version),
		Protocol: cmp.Or(b.Protocol, presence.Protocol), Mode: b.Mode, Started: b.StartedAt, Conditions: conditions,
	})
	if instruction.Wanted != "" {
		out = told{instruction.Wanted, instruction.Reason, instruction.ChangedBy, &instruction}
	}
	return out, err
}

// conditions returns what keeps a worker from its work, each with the repair that Sluice knows for its kind: people run such a command,
// so it must not be one that the worker made up.
func (c *call) conditions(told []presence.Condition) (all []presence.Condition, err error) {
	for i, one := range told {
		for _, name := range []string{string(one.Kind), one.Queue, one.Engine} {
			if name != "" && sluice.CheckQueueName(name) != nil {
				return nil, &sluice.InvalidError{Field: fmt.Sprintf("conditions[%d]", i), Rule: fmt.Sprintf("%.80q must have 1 to 64 letters, digits and . _ : -", name)}
			}
		}
		if one.Queue != "" && !c.caller.Queue(one.Queue) {
			return nil, outOfBounds("the token is bounded to other queues")
		}
		all = append(all, presence.NewCondition(one.Kind, one.Queue, one.Engine, one.Since, c.api.options.Clean(one.Text)))
	}
	return all, nil
}
