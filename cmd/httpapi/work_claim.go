package httpapi

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/access"
)

// work adds the routes of workers.
func (a *API) work() {
	add(a, Route{
		Method: "POST", Path: "/work/claim", Name: "claim", Group: "work", Summary: "claim jobs",
		Text: "Answers as soon as there are jobs of one of the queues, or with none after the wait. Waiting costs the store nothing per caller. " +
			"Of several queues, it passes over those whose jobs an engine runs. " +
			"To send a claim again after a lost answer, send the same token and again: true.",
		Needs: access.Work, scope: ofJobs, noun: "queue", timeout: maxWait + claimTime + slack, waits: true,
	}, claimJobs)
	add(a, Route{
		Method: "POST", Path: "/work/renew", Name: "renew", Group: "work", Summary: "renew the leases of claimed jobs",
		Text:  "Send it well before the leases end. The answer names the jobs that the caller has lost, and which of them were cancelled: end the work on these.",
		Needs: access.Work, scope: ofJobs,
	}, renewJobs)
	add(a, Route{
		Method: "POST", Path: "/work/settle", Name: "settle", Group: "work", Summary: "end claimed jobs",
		Text:  "An outcome that is sent again changes nothing. A job that the caller has lost is refused.",
		Needs: access.Work, scope: ofJobs,
	}, settleJobs)
	add(a, Route{
		Method: "POST", Path: "/work/checkpoint", Name: "save-checkpoint", Group: "work", Summary: "save the checkpoint of a claimed job",
		Text: "The next attempt of the job gets it.", Needs: access.Work, scope: ofJobs,
	}, saveCheckpoint)
	add(a, Route{
		Method: "POST", Path: "/work/progress", Name: "report-progress", Group: "work", Summary: "report how far claimed jobs have come",
		Text: "Reports of jobs that the caller has lost are ignored.", Needs: access.Work, scope: ofJobs,
	}, reportProgress)
	add(a, Route{
		Method: "POST", Path: "/work/heartbeat", Name: "heartbeat", Group: "work", Summary: "tell that a worker is alive",
		Text:  "Send it every 10 s. People then see the worker, and the answer tells what they want it to do. It renews no lease.",
		Needs: access.Work, scope: ofJobs,
	}, heartbeat)
}

// WorkerBody names a worker.
type WorkerBody struct {
	// Worker names the process that works, such as host:pid:nonce. It must be another after each start.
	Worker string `json:"worker" minLength:"1" maxLength:"100"`
}

// holder names the worker as holder of jobs, with the caller's token.
func (b WorkerBody) holder(c *call) (string, error) {
	switch {
	case strings.TrimSpace(b.Worker) == "" || sluice.StoredText(b.Worker) != b.Worker || strings.ContainsFunc(b.Worker, unseen):
		return "", &sluice.InvalidError{Field: "worker", Rule: fmt.Sprintf("%.60q must be a name such as host:pid:nonce", b.Worker)}
	case c.caller.Name == local.Name:
		return b.Worker, nil
	}
	return b.Worker + " by " + c.caller.Name, nil
}

// unseen reports whether a character controls a terminal, or cannot be seen.
func unseen(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) }

// claimInput claims jobs.
type claimInput struct{ Body claimBody }

// claimBody is a claim.
type claimBody struct {
	WorkerBody
	// Queues are the queues to claim from. The answer has jobs of one of them.
	Queues []string `json:"queues" minItems:"1" maxItems:"100"`
	// Limit is the most jobs. Missing: 1.
	Limit int `json:"limit,omitempty" minimum:"1" maximum:"1000"`
	// Lease is how long the claim holds unless it is renewed, such as 1m. Missing: the queue's setting, but at least 1s.
	Lease string `json:"lease,omitempty" maxLength:"20"`
	// Wait is how long to wait for jobs, such as 30s; at most 60s. Missing: not at all.
	Wait string `json:"wait,omitempty" maxLength:"20"`
	// Token is a random text, of at least 16 bytes, that names the claim. Missing: the claim cannot be sent again.
	Token string `json:"token,omitempty" minLength:"16" maxLength:"100"`
	// Again says that the claim may have been sent before.
	Again bool `json:"again,omitempty"`
	ClaimDetail
}

// claimedList lists claimed jobs.
type claimedList struct {
	// Jobs are the jobs, in the order in which to begin them. Empty: there were none.
	Jobs []claimedJob `json:"jobs"`
	ClaimedDetail
}

// claimedJob is a claimed job.
type claimedJob struct {
	sluice.Job
	// Token proves the claim of this job. Send it with everything about the job.
	Token proof `json:"token"`
	// LeaseSeconds is how long the claim holds, from the answer on, unless it is renewed.
	LeaseSeconds float64 `json:"lease_seconds"`
	// TimeoutSeconds is the longest time of the attempt. Missing: no limit is set.
	TimeoutSeconds float64 `json:"timeout_seconds,omitempty"`
	// OfQueue says that max_attempts is the queue's setting, because the job has none of its own.
	OfQueue bool `json:"max_attempts_of_queue,omitempty"`
}

// proof is the token of a claim, in hexadecimal digits.
type proof string

func proofOf(t sluice.Token) proof { return proof(hex.EncodeToString(t[:])) }

// token reads the proof.
func (p proof) token() (t sluice.Token, err error) {
	raw, err := hex.DecodeString(string(p))
	if err != nil || len(raw) != len(t) {
		return t, &sluice.InvalidError{Field: "token", Rule: fmt.Sprintf("must be the %d hexadecimal digits of a claimed job", 2*len(t))}
	}
	copy(t[:], raw)
	return t, nil
}

// claimedOf shows a claimed job of a queue with these settings.
func claimedOf(claim *sluice.Claim, settings sluice.Settings, lease time.Duration) claimedJob {
	out := claimedJob{claim.Job, proofOf(claim.Token), lease.Seconds(), cmp.Or(claim.Timeout, settings.Timeout).Seconds(), claim.MaxAttempts == 0}
	out.MaxAttempts = cmp.Or(out.MaxAttempts, settings.MaxAttempts)
	return out
}

// claimOrder is a checked claim.
type claimOrder struct {
	claimBody
	holder             string
	lease, wait, ahead time.Duration
	proof              sluice.Token // of the caller; zero: none
	begun              []sluice.Begun
}

func (c *call) orderOf(b *claimBody) (o *claimOrder, err error) {
	o = new(claimOrder)
	if o.claimBody = *b; !b.OnlyReports {
		o.Limit = max(b.Limit, 1)
	}
	if o.holder, err = b.holder(c); err != nil {
		return o, err
	}
	if o.lease, err = leaseOf(b.Lease); err != nil {
		return o, err
	}
	if b.Wait != "" {
		if o.wait, err = waitOf(b.Wait); err != nil {
			return o, err
		}
	}
	if err := o.readExtras(); err != nil {
		return o, err
	}
	if b.Again && b.Token == "" && b.Proof == "" {
		return o, &sluice.InvalidError{Field: "token", Rule: "must be that of the claim that is sent again"}
	}
	if len(c.caller.Tenants) > 0 {
		return o, outOfBounds("the token is bounded to some tenants, and a claim takes jobs of all")
	}
	o.Queues = nil
	for _, queue := range b.Queues {
		switch {
		case sluice.CheckOwnQueueName(queue) != nil || sluice.IsGroup(queue):
			return o, &sluice.InvalidError{Field: "queues", Rule: fmt.Sprintf("%.80q must be the name of a queue", queue)}
		case !c.caller.Queue(queue):
			return o, outOfBounds("the token is bounded to other queues")
		case !slices.Contains(o.Queues, queue):
			o.Queues = append(o.Queues, queue)
		}
	}
	return o, nil
}

// The bounds of leases.
const minLease, maxLease = time.Second, 24 * time.Hour

// leaseOf reads a lease. Empty: 0.
func leaseOf(text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	lease, err := sluice.ParseDuration(text)
	if err != nil || lease < minLease || lease > maxLease {
		return 0, &sluice.InvalidError{Field: "lease", Rule: fmt.Sprintf("%.20q must be a duration from %s to 24h", text, minLease)}
	}
	return lease, nil
}

// claimToken returns the token of the claim, one for all queues. It follows from the caller's, so that a claim is found again.
func (c *call) claimToken(o *claimOrder) (t sluice.Token) {
	switch {
	case o.proof != sluice.Token{}:
		return o.proof
	case o.Token == "":
		return sluice.NewToken()
	}
	sum := sha256.Sum256([]byte(strings.Join([]string{"claim", c.caller.Name, o.holder, o.Token}, "\x00")))
	copy(t[:], sum[:])
	return t
}

func claimJobs(ctx context.Context, c *call, in *claimInput) (out claimedList, err error) {
	o, err := c.orderOf(&in.Body)
	if err == nil {
		err = c.api.ending()
	}
	if err != nil {
		return out, err
	}
	if o.Again || o.wait == 0 {
		if out, err = c.claimNow(ctx, o); err != nil || len(out.Jobs) > 0 || o.wait == 0 {
			return out, err
		}
		o.Again = false
	}
	for until := time.Now().Add(o.wait); ; o.wait = time.Until(until) {
		if out, err = c.claimInTurn(ctx, o); !o.passesOver(err) {
			return out, err
		}
	}
}

// passesOver leaves a queue out that refuses the claim because an engine runs its jobs: it must not keep the jobs of other queues. The
// only queue is not left out.
func (o *claimOrder) passesOver(err error) bool {
	var runner *sluice.OtherRunnerError
	if len(o.Queues) < 2 || !errors.As(err, &runner) {
		return false
	}
	o.Queues = slices.DeleteFunc(slices.Clone(o.Queues), func(queue string) bool { return queue == runner.Queue })
	return true
}

// ending refuses a claim of a server that ends.
func (a *API) ending() error {
	select {
	case <-a.draining:
		return problemOf(http.StatusServiceUnavailable, "draining", "the server ends", "send it again, to another server if there is one").after(time.Second)
	default:
		return nil
	}
}

// claimNow claims from the queues, one after another, until one has jobs.
func (c *call) claimNow(ctx context.Context, o *claimOrder) (claimedList, error) {
	queues, several := o.Queues, len(o.Queues) > 1
	if o.Again && (several || len(o.Limits) > 0) {
		out, _, err := c.claimedBefore(ctx, o)
		if err != nil || len(out.Jobs) > 0 {
			return out, err
		}
	}
	if len(o.Limits) > 0 {
		return c.claimTogether(ctx, o)
	}
	if several { // one look costs less than a claim from each
		due, err := c.api.store.NextDue(ctx, queues)
		if err != nil {
			return claimedList{}, err
		}
		queues = slices.DeleteFunc(slices.Clone(queues), func(queue string) bool {
			wait, waits := due[queue]
			return !waits || wait > 0
		})
	}
	out := claimedList{Jobs: []claimedJob{}}
	for _, queue := range queues {
		var err error
		if out, _, err = c.claimFrom(ctx, o, queue); !o.passesOver(err) && (err != nil || len(out.Jobs) > 0) {
			return out, err
		}
	}
	if several {
		out.ClaimedDetail = ClaimedDetail{} // of one queue alone
	}
	return out, nil
}

// claimInTurn waits for its turn at one of the queues.
func (c *call) claimInTurn(ctx context.Context, o *claimOrder) (out claimedList, err error) {
	out.Jobs = []claimedJob{}
	w := c.api.board.join(o.Queues)
	defer c.api.board.leave(w)
	timer := time.NewTimer(o.wait)
	defer timer.Stop()
	for {
		select {
		case queue := <-w.turn:
			if err := c.still(); err != nil {
				w.turn <- queue // for the next in the line
				return out, err
			}
			if out, err = c.takeTurn(ctx, o, w, queue); err != nil || len(out.Jobs) > 0 {
				return out, err
			}
		case <-timer.C:
			return out, nil
		case <-c.api.draining:
			return out, nil
		case <-ctx.Done():
			return out, ctx.Err()
		}
	}
}

// takeTurn claims from the queue whose turn it is.
func (c *call) takeTurn(ctx context.Context, o *claimOrder, w *waiter, queue string) (claimedList, error) {
	b := c.api.board
	signals := b.signalsOf(queue)
	out, claimed, err := c.claimFrom(ctx, o, queue)
	b.served(w, queue, signals, len(out.Jobs), claimed.limit, claimed.Claimed, err)
	return out, err
}

// claimedFrom is the answer of the store, and the most jobs that it could give.
type claimedFrom struct {
	sluice.Claimed
	limit int
}

// claimFrom claims once from a queue, unless the queue rests.
func (c *call) claimFrom(ctx context.Context, o *claimOrder, queue string) (claimedList, claimedFrom, error) {
	from := claimedFrom{limit: o.Limit}
	settings, err := c.api.board.settingsOf(ctx, queue)
	if err != nil {
		return claimedList{}, from, err
	}
	if settings.Batch > 0 {
		from.limit = min(from.limit, settings.Batch)
	}
	ageing := settings.Ageing
	if o.Ageing != nil {
		ageing = *o.Ageing
	}
	limit, rest := from.limit, c.restOf(o, queue, settings)
	if rest > 0 {
		limit = 0 // it reports, and gets what it has
	}
	out := claimedList{Jobs: []claimedJob{}}
	switch {
	case rest > 0 && o.Again:
		out, from.Claimed, err = c.claimedBefore(ctx, o)
	case rest == 0 || len(o.begun) > 0:
		out, from.Claimed, err = c.ask(ctx, o, sluice.ClaimRequest{
			Queue: queue, Limit: limit, Lease: o.leaseIn(settings), Ageing: ageing, Again: o.Again, ClaimAhead: o.ahead, ReportsBegun: o.ReportsBegun, Begun: o.begun,
		}, map[string]sluice.Settings{queue: settings})
		if err != nil && rest == 0 {
			c.api.board.wake(queue) // it got nothing
		}
	}
	if rest > 0 && len(out.Jobs) == 0 {
		from.NextDue = rest
		out.ClaimedDetail = extrasOf(from.Claimed)
	}
	return out, from, err
}

// restOf returns how long a queue rests until it may be claimed from again. Workers that name the tokens of their jobs choose by
// themselves when to claim.
func (c *call) restOf(o *claimOrder, queue string, settings sluice.Settings) time.Duration {
	if o.Proof != "" {
		return 0
	}
	return c.api.board.rest(queue, settings.Interval)
}
