package httpapi

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/access"
	"github.com/sluice-queue/sluice/internal/pause"
	"github.com/sluice-queue/sluice/internal/wire"
	"github.com/sluice-queue/sluice/tenancy"
)

// workMore adds the routes of workers that schedule their claims themselves, as those in Go do.
func (a *API) workMore() {
	add(a, Route{
		Method: "POST", Path: "/work/next-due", Name: "next-due", Group: "work", Summary: "read when jobs of queues are due",
		Text:  "For workers that choose by themselves when to claim. It ignores limits, and leaves out queues without waiting jobs, and queues that are paused without an end.",
		Needs: access.Work, scope: ofJobs, noun: "queue",
	}, nextDue)
	add(a, Route{
		Method: "POST", Path: "/work/pause", Name: "pause-shared", Group: "work", Summary: "close what a claimed job shares with others",
		Text:  "For a job whose service refuses more calls: closes the limits of the job, or without limits its tenant in the queue. The outcome rate_limited does that too.",
		Needs: access.Work, scope: ofJobs,
	}, pauseShared)
	add(a, Route{
		Method: "POST", Path: "/work/paused", Name: "paused-tenants", Group: "work", Summary: "read which tenants are paused",
		Text:  "For jobs that were claimed a while ago and have not begun: those of paused tenants must go back.",
		Needs: access.Work, scope: ofJobs, noun: "queue",
	}, pausedTenants)
}

// ClaimDetail are the parts of a claim for workers that choose by themselves when to claim.
type ClaimDetail struct {
	// Ageing is the share of claims, 0 to 1, that begin with another priority than the first. Missing: the queue's setting.
	Ageing *float64 `json:"ageing,omitempty" minimum:"0" maximum:"1"`
	// Proof is the token of the claimed jobs, 32 hexadecimal digits from a good source of randomness. Missing: the server
	// makes one.
	Proof string `json:"proof,omitempty" minLength:"32" maxLength:"32"`
	// Limits are the most jobs by queue, for a claim that takes jobs of several queues, one after another, until there are
	// limit jobs. It skips queues that are paused or have limits, tenants in turns, or an engine. Missing: jobs of one queue.
	Limits map[string]int `json:"limits,omitempty" maxProperties:"100"`
	// ClaimAhead is how long before they are due jobs may be claimed. Do not begin them before. Missing: 0s.
	ClaimAhead string `json:"claim_ahead,omitempty" maxLength:"20"`
	// ReportsBegun says that the worker reports when its jobs begin, if the answer is paced.
	ReportsBegun bool `json:"reports_begun,omitempty"`
	// Begun reports when jobs of earlier claims began, of the only queue.
	Begun []begunBody `json:"begun,omitempty" maxItems:"1000"`
	// OnlyReports claims nothing.
	OnlyReports bool `json:"only_reports,omitempty"`
}

// begunBody reports when the jobs of a claim began.
type begunBody struct {
	// Proof is that of the claim.
	Proof proof `json:"proof" maxLength:"64"`
	// Jobs counts the jobs that have begun so far, and Gone those that never will.
	Jobs int `json:"jobs" minimum:"0"`
	Gone int `json:"gone,omitempty" minimum:"0"`
	// AgoSeconds is how long ago the last one began. Negative: it begins so much later.
	AgoSeconds float64 `json:"ago_seconds"`
}

// ClaimedDetail say when to claim again. They are about a claim from one queue.
type ClaimedDetail struct {
	// NextDueSeconds is how long until another claim may get a job, if this one got none or is limited; -1: no job waits.
	NextDueSeconds float64 `json:"next_due_seconds,omitempty"`
	// Limited says that limits of the queue hold jobs back until then, and Full that they wait until a job in flight ends.
	Limited bool `json:"limited,omitempty"`
	Full    bool `json:"full,omitempty"`
	// Paced says that the queue has a rate, which counts the jobs until the worker has reported when they began. Unheard says
	// that begun must be reported again.
	Paced   bool `json:"paced,omitempty"`
	Unheard bool `json:"unheard,omitempty"`
}

func extrasOf(claimed sluice.Claimed) ClaimedDetail {
	nextDue := claimed.NextDue.Seconds()
	if nextDue < 0 {
		nextDue = -1 // stores tell it by any negative time
	}
	return ClaimedDetail{nextDue, claimed.Limited, claimed.Full, claimed.Paced, claimed.Unheard}
}

// readExtras reads the extras of a claim.
func (o *claimOrder) readExtras() (err error) {
	if o.Proof != "" {
		if o.proof, err = proof(o.Proof).token(); err != nil || o.proof == (sluice.Token{}) {
			return &sluice.InvalidError{Field: "proof", Rule: "must be 32 hexadecimal digits, and not only zeros"}
		}
	}
	if o.ClaimAhead != "" {
		if o.ahead, err = sluice.ParseDuration(o.ClaimAhead); err != nil || o.ahead < 0 {
			return &sluice.InvalidError{Field: "claim_ahead", Rule: "must be a duration such as 1s"}
		}
	}
	for _, b := range o.Begun {
		token, err := b.Proof.token()
		if err != nil {
			return err
		}
		o.begun = append(o.begun, sluice.Begun{Token: token, Jobs: b.Jobs, Gone: b.Gone, Ago: durationOf(b.AgoSeconds)})
	}
	if len(o.Queues) > 1 && (len(o.Begun) > 0 || o.OnlyReports || o.ahead > 0) {
		return &sluice.InvalidError{Field: "begun", Rule: "begun, only_reports and claim_ahead are about one queue; name one"}
	}
	if o.wait > 0 && (len(o.Limits) > 0 || o.OnlyReports) {
		return &sluice.InvalidError{Field: "wait", Rule: "must be missing with limits and only_reports"}
	}
	return nil
}

// durationOf reads seconds. What no duration can hold is the longest.
func durationOf(seconds float64) time.Duration {
	const longest = 100 * 365 * 24 * 3600
	return time.Duration(max(-longest, min(seconds, longest)) * float64(time.Second))
}

// leaseIn returns the lease in a queue with these settings. It is one that can be renewed over HTTP.
func (o *claimOrder) leaseIn(settings sluice.Settings) time.Duration {
	return cmp.Or(o.lease, max(settings.Lease, minLease))
}

// nextDueInput names queues.
type nextDueInput struct{ Body nextDueBody }

// nextDueBody names queues.
type nextDueBody struct {
	// Queues are the queues.
	Queues []string `json:"queues" minItems:"1" maxItems:"1000"`
}

// nextDueList says when jobs are due.
type nextDueList struct {
	// Seconds is how long until the first waiting job is due, by queue; 0 or less: now.
	Seconds map[string]float64 `json:"seconds"`
}

func nextDue(ctx context.Context, c *call, in *nextDueInput) (nextDueList, error) {
	out := nextDueList{Seconds: make(map[string]float64)}
	for _, queue := range in.Body.Queues {
		if sluice.CheckQueueName(queue) != nil {
			return out, &sluice.InvalidError{Field: "queues", Rule: fmt.Sprintf("%.80q must be the name of a queue", queue)}
		}
		if len(c.caller.Tenants) > 0 || !c.caller.Queue(queue) {
			return out, outOfBounds("the token is bounded to other queues, or to some tenants")
		}
	}
	found, err := c.api.store.NextDue(ctx, in.Body.Queues)
	for queue, wait := range found {
		out.Seconds[queue] = wait.Seconds()
	}
	return out, err
}

// pauseSharedInput closes what a job shares.
type pauseSharedInput struct{ Body pauseSharedBody }

// pauseSharedBody names a claimed job.
type pauseSharedBody struct {
	WorkerBody
	HeldJob
	// For is how long the service refuses more, such as 30s; at most 1h if the token is bounded.
	For string `json:"for" minLength:"1" maxLength:"20"`
	wire.ReasonBody
}

func pauseShared(ctx context.Context, c *call, in *pauseSharedInput) (done, error) {
	b := in.Body
	holder, err := b.holder(c)
	if err != nil {
		return done{}, err
	}
	token, err := b.Token.token()
	if err != nil {
		return done{}, err
	}
	while, err := positive("for", b.For)
	if err != nil {
		return done{}, err
	}
	if err := c.mayClose("for", while); err != nil {
		return done{}, err
	}
	job, err := c.job(ctx, b.ID)
	if err != nil {
		return done{}, err
	}
	held, err := c.proves(ctx, job, token)
	switch {
	case err != nil:
		return done{}, err
	case !held || job.Holder != holder:
		return done{}, problemOf(http.StatusConflict, "lost", "the worker does not hold the job", "end the work on the job")
	}
	settings, err := c.api.board.settingsOf(ctx, job.Queue)
	if err != nil {
		return done{}, err
	}
	act := c.act(b.Reason)
	act.By = holder
	return done{true}, pause.Shared(ctx, c.api.store, &sluice.Claim{Job: job}, settings, while, act)
}

// longestClose is the longest time for which a bounded caller closes what jobs outside of its bounds may share.
const longestClose = time.Hour

// mayClose refuses to close for too long what a job shares with others.
func (c *call) mayClose(field string, while time.Duration) error {
	if while > longestClose && !c.caller.None() {
		return &sluice.InvalidError{Field: field, Rule: "must be at most 1h, because the token is bounded, and other jobs may share the limits"}
	}
	return nil
}

// proves reports whether a token proves the claim of a job. The store compares it to renew the lease for as long as it has left.
func (c *call) proves(ctx context.Context, job sluice.Job, token sluice.Token) (bool, error) {
	if job.State != sluice.StateClaimed {
		return false, nil
	}
	now, err := c.api.store.Now(ctx)
	if err != nil {
		return false, err
	}
	lost, err := c.api.store.Renew(ctx, []sluice.Renewal{{ID: job.ID, Token: token, Lease: max(job.LeaseUntil.Sub(now), minLease), Queue: job.Queue}})
	return len(lost) == 0, err
}

// pausedInput names tenants.
type pausedInput struct{ Body pausedBody }

// pausedBody names tenants in a queue.
type pausedBody struct {
	// Queue is the queue, and Tenants the tenants.
	Queue   string   `json:"queue" maxLength:"64"`
	Tenants []string `json:"tenants" minItems:"1" maxItems:"1000"`
}

// pausedList lists paused tenants.
type pausedList struct {
	// Paused are those of the tenants that are paused in the queue.
	Paused []string `json:"paused"`
}

func pausedTenants(ctx context.Context, c *call, in *pausedInput) (pausedList, error) {
	out := pausedList{Paused: []string{}}
	for _, tenant := range in.Body.Tenants {
		if !c.caller.Job(in.Body.Queue, tenant) {
			return out, outOfBounds("the token is bounded to other queues or tenants")
		}
	}
	found, err := c.api.store.Queues(ctx, sluice.QueueFilter{Names: []string{in.Body.Queue}})
	if err != nil || len(found) == 0 {
		return out, err
	}
	limits, err := tenancy.Given(c.api.store).EffectiveLimits(ctx, found[0], in.Body.Tenants, found[0].Now)
	for tenant, l := range limits {
		if l.Paused && (l.PausedUntil.IsZero() || l.PausedUntil.After(found[0].Now)) {
			out.Paused = append(out.Paused, tenant)
		}
	}
	slices.Sort(out.Paused)
	return out, err
}
