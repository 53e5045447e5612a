package sluice

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"sync/atomic"
	"time"
)

// ClaimRequest asks for jobs of one queue.
type ClaimRequest struct {
	Queue string
	// Limit is how many at the most.
	Limit int
	// Holder names who claims, as host:pid:nonce.
	Holder string
	// Lease is how long the claim holds without being renewed.
	Lease time.Duration
	// Token guards the claim. Each claim has a new one; by it the store knows its jobs again when
	// an answer was lost.
	Token Token
	// Ageing is the share of claims that begin with another priority than the first, from 0 to 1;
	// see Priorities. Default 0: priority is strict.
	Ageing float64
	// Engine is the name of the engine that the holder hands jobs to, as the queue's settings have it; empty: the holder is a
	// worker. A queue of other jobs refuses the claim by an *OtherRunnerError.
	Engine string
	// Lead is how long before they are due jobs may be claimed, by the store's clock. The holder must not
	// start one before it is due. Default 0.
	Lead time.Duration
	// Tells says that the holder will tell when the jobs begin, if the answer is that the claim is Paced. Without it, a
	// job counts as begun when it is claimed.
	Tells bool
	// Begun tells what became of earlier claims of the queue. A claim with a Limit of 0 does nothing else.
	Begun []Begun
	// Queues, if there are any, are claimed from together instead of Queue, one after the other until Limit is reached. Queues
	// that have limits, serve their tenants in turns, are paused or whose jobs an engine runs give nothing. Ageing, Lead, Lease
	// and Begun do not count then; the answer tells of nothing but Jobs.
	Queues []QueueClaim
}

// QueueClaim is what a claim from several queues asks of one of them.
type QueueClaim struct {
	Queue string
	// Limit is how many jobs of the queue at the most.
	Limit int
	// Lease and Ageing are as in ClaimRequest.
	Lease  time.Duration
	Ageing float64
}

// Of is the claim of one of several queues, if so many jobs are left to be claimed.
func (r ClaimRequest) Of(q QueueClaim, left int) ClaimRequest {
	r.Queues, r.Queue, r.Lease, r.Limit = nil, q.Queue, q.Lease, min(q.Limit, left)
	r.Ageing, r.Lead, r.Begun, r.Engine = q.Ageing, 0, nil, ""
	return r
}

// Begun tells of the jobs of one claim that they began, for the queue's rate.
type Begun struct {
	Token Token
	// Jobs of them have begun so far, and Gone ones never will.
	Jobs, Gone int
	// Ago is how long ago the last of them began, at the least; negative: it is to begin so much later.
	Ago time.Duration
}

// Check says which rule a request breaks. A claim without a token could be neither settled nor found again.
func (r ClaimRequest) Check() error {
	switch {
	case r.Token == Token{}:
		return invalid("token", "a claim must have a token")
	case r.Holder == "":
		return invalid("holder", "a claim must name its holder")
	}
	return nil
}

// Priorities is the order in which a claim serves the priorities: from 1 to 10, but that of all claims
// the share Ageing begins with one of the others, so that none of them starves however much there is to
// do at the first: each of the nine gets at least a ninth of that share. The token draws the lot, so
// that a claim that is sent again is served alike.
func (r ClaimRequest) Priorities() []int {
	order := []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
	const lots = 1 << 32
	if lot := binary.BigEndian.Uint32(r.Token[:4]); float64(lot) >= r.Ageing*lots {
		return order
	}
	first := 1 + int(binary.BigEndian.Uint32(r.Token[4:8])%9)
	return slices.Insert(slices.Delete(order, first, first+1), 0, first+1)
}

// Claimed is what a claim got.
type Claimed struct {
	Jobs []*Claim
	// NextDue is how long until another claim with the same lead may get something, by the store's clock:
	// until the next job of the queue is due but for the lead, or the queue's rate allows one. It is only set where the claim
	// found nothing or Limited is true; negative: no job waits.
	NextDue time.Duration
	// Limited says that the queue's limits held jobs back, and that none may go before NextDue.
	Limited bool
	// Full says that jobs which are due wait for one of those in flight to end, of the queue or of their
	// tenant.
	Full bool
	// Paced says that the queue has a rate, by which what was claimed counts until its holder has told when it began.
	Paced bool
	// Unheard says that another claim was under way: Begun must be told again.
	Unheard bool
}

// Claim is a job in the hands of a holder.
type Claim struct {
	Job
	Token Token
	// ReceivedAt is when the holder got it, by the holder's own clock; zero: nobody observes the store.
	ReceivedAt time.Time

	settledInTx atomic.Bool
}

// MarkSettledInTx notes that the holder completed the job inside its own transaction; the stores'
// CompleteTx calls it. The worker then only makes sure that the transaction was committed.
func (c *Claim) MarkSettledInTx() { c.settledInTx.Store(true) }

// SettledInTx reports whether MarkSettledInTx was called. It says nothing of whether that transaction
// was committed.
func (c *Claim) SettledInTx() bool { return c.settledInTx.Load() }

// Cancelled reports whether somebody cancelled the job while this claim held it, by the job as it was read after the claim
// was lost. It is false if the job was handed back, taken back or requeued in between: another holder may have it, or had it.
func (c *Claim) Cancelled(job Job) bool {
	return job.State == StateCancelled && job.Generation == c.Generation &&
		job.Attempts == c.Attempts && job.Releases == c.Releases && job.Recoveries == c.Recoveries
}

// Renewal asks for more time on a claim.
type Renewal struct {
	ID    ID
	Token Token
	// Lease is counted from now, by the store's clock.
	Lease time.Duration
	// Queue is that of the job, for who observes the store; stores do not read it.
	Queue string
}

// Settlement is what a holder says became of a job it claimed.
type Settlement struct {
	ID    ID
	Token Token
	// Event is one of complete, retry, release, recover, bury, dispatch and doubt. Recover is for a claim of which the
	// engine says that no run was ever started.
	Event Event
	// Delay is how long a retried job waits, by the store's clock. A released job with a Delay of
	// 0 keeps its place.
	Delay time.Duration
	// Result is what the handler returned, as JSON. One that is larger than MaxResultBytes is an ErrInvalid, and the
	// job stays claimed.
	Result json.RawMessage
	// Error and Stack tell of the failed attempt, for retry and bury.
	Error string
	Stack string
	// Reason goes to the audit.
	Reason string
	// Ref names the engine's run, for dispatch; empty: as it was intended.
	Ref string
	// Poison says that a job is buried because it lost too many holders, which is not a failed attempt.
	Poison bool
	// Holder is who says it.
	Holder string
	// Claim is what it settles, for who observes the store; stores do not read it.
	Claim *Claim
	// InTx says that the holder completed the job in a transaction of its own, and that this
	// settlement only counts if that transaction was not committed.
	InTx bool
	// Returned says, with InTx, that the handler returned nil: the transaction was most likely committed. It is for who
	// observes the store; stores do not read it.
	Returned bool
}

// MaxResultBytes bounds the result of a job and its checkpoint, each in bytes of JSON.
const MaxResultBytes = 1 << 20

// CheckResult returns an ErrInvalid if a result or a checkpoint, which the field names, is larger than MaxResultBytes.
// Stores ask it before they write one.
func CheckResult(field string, text json.RawMessage) error {
	if len(text) > MaxResultBytes {
		return invalid(field, fmt.Sprintf("%d bytes are more than the %d that a store keeps; keep it elsewhere, and store where", len(text), MaxResultBytes))
	}
	return nil
}

// MaxErrorBytes bounds an error's text and a stack; what is longer is cut in the middle.
const MaxErrorBytes = 8 << 10

// FailureOf settles a failed attempt by the queue's rules: the last attempt buries the job, the
// ones before retry it after the backoff.
func FailureOf(c *Claim, s Settings, cause string) Settlement {
	out := Settlement{ID: c.ID, Token: c.Token, Holder: c.Holder, Claim: c, Event: EventRetry, Error: cause}
	limit := c.MaxAttempts
	if limit == 0 {
		limit = s.MaxAttempts
	}
	attempt := c.Attempts + 1
	if attempt >= limit {
		out.Event, out.Reason = EventBury, "attempts spent"
		return out
	}
	out.Delay = s.Backoff.Delay(attempt)
	return out
}

// OtherRunnerError says that a queue refused a claim: its jobs are not for this kind of holder.
type OtherRunnerError struct {
	Queue string
	// Engine runs the queue's jobs; empty: workers do.
	Engine string
	// Claimed is the engine that the holder claimed for; empty: it is a worker.
	Claimed string
}

// Error says who runs the jobs, and what to do.
func (e *OtherRunnerError) Error() string {
	switch {
	case e.Engine == "":
		return fmt.Sprintf("claim from queue %s for engine %s: workers run its jobs; run `sluice work %s`, or set its `engine`", e.Queue, e.Claimed, e.Queue)
	case e.Claimed == "":
		return fmt.Sprintf("claim from queue %s for a worker: engine %s runs its jobs; run `sluice dispatch %s`, or clear its `engine`", e.Queue, e.Engine, e.Queue)
	}
	return fmt.Sprintf("claim from queue %s for engine %s: engine %s runs its jobs; read its settings again", e.Queue, e.Claimed, e.Engine)
}

// Is makes it an ErrNotAllowed.
func (e *OtherRunnerError) Is(target error) bool { return target == ErrNotAllowed }

// CheckRunner refuses a claim from a queue whose engine is another one than the request's.
func (r ClaimRequest) CheckRunner(engine string) error {
	if r.Engine == engine {
		return nil
	}
	return &OtherRunnerError{Queue: r.Queue, Engine: engine, Claimed: r.Engine}
}
