package sluice

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"sync/atomic"
	"time"
)

// ClaimRequest asks for jobs of one queue, or of several queues.
type ClaimRequest struct {
	// Queue is the queue to claim from. The store ignores it if Queues are set.
	Queue string
	// Limit is the most jobs that the claim takes. 0: the claim only reports Begun.
	Limit int
	// Holder names the process that claims, as host:pid:nonce. Required.
	Holder string
	// Lease is how long the claim holds unless the holder renews it.
	Lease time.Duration
	// Token proves the claim. Required. Each claim has a new token; by the token, the store finds the claim again
	// after a lost answer.
	Token Token
	// Again says that the claim was sent before, and its answer was lost. The store then returns the jobs that the claim
	// still has, and takes others only if there are none. Default: false.
	Again bool
	// Ageing is the share of claims that begin with another priority than the first, from 0 to 1; see
	// [ClaimRequest.Priorities]. Default: 0, strict priority.
	Ageing float64
	// Engine is the engine that the holder hands jobs to, by its name in the settings of the queue. Empty: the
	// holder is a worker. If the queue has another engine, the store returns an [*OtherRunnerError].
	Engine string
	// ClaimAhead is how long before its due time the holder may claim a job, by the store's clock. The holder must not
	// start a job before its due time. Default: 0.
	ClaimAhead time.Duration
	// Tells says that the holder will report when the jobs begin, if the answer is Paced. Default: the rate counts
	// a job as begun when the holder claims it.
	ReportsBegun bool
	// Begun reports when the jobs of earlier claims of the queue began.
	Begun []Begun
	// Queues are claimed from instead of Queue, one after another, until the claim has Limit jobs. Default: none.
	//
	// The claim skips a queue that has limits, serves its tenants in turns, is paused, or has an engine. The store
	// ignores Ageing, ClaimAhead, Lease and Begun, and fills in only Jobs of [Claimed].
	Queues []QueueClaim
}

// QueueClaim is the part of a claim from several queues that is about one queue.
type QueueClaim struct {
	// Queue is the queue to claim from.
	Queue string
	// Limit is the most jobs of the queue that the claim takes.
	Limit int
	// Lease and Ageing have the meaning that they have in [ClaimRequest].
	Lease  time.Duration
	Ageing float64
}

// Of returns the claim of one of several queues, for at most left jobs.
func (r ClaimRequest) Of(q QueueClaim, left int) ClaimRequest {
	r.Queues, r.Queue, r.Lease, r.Limit = nil, q.Queue, q.Lease, min(q.Limit, left)
	r.Ageing, r.ClaimAhead, r.Begun, r.Engine = q.Ageing, 0, nil, ""
	return r
}

// Begun reports when the jobs of one claim began. The store counts them against the rate of the queue.
type Begun struct {
	// Token is the token of the claim.
	Token Token
	// Jobs is how many jobs of the claim have begun so far. Gone is how many will never begin.
	Jobs, Gone int
	// Ago is how long ago the last of them began, at least. Negative: the last job is to begin so much later.
	Ago time.Duration
}

// Check returns the rule that a request breaks, as an [ErrInvalid]. Nobody could settle a claim without a token, or
// find it again.
func (r ClaimRequest) Check() error {
	switch {
	case r.Token == Token{}:
		return invalid("token", "a claim must have a token")
	case r.Holder == "":
		return invalid("holder", "a claim must name its holder")
	}
	return nil
}

// Priorities returns the order in which a claim serves the priorities: from 1 to 10, as a rule. A share of Ageing
// of all claims begins with one of the other nine, so that no priority starves. Each of the nine gets a ninth of
// that share.
//
// The token draws the lot, so a claim that is sent again has the same order.
func (r ClaimRequest) Priorities() []int {
	order := []int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10}
	const lots = 1 << 32
	if lot := binary.BigEndian.Uint32(r.Token[:4]); float64(lot) >= r.Ageing*lots {
		return order
	}
	first := 1 + int(binary.BigEndian.Uint32(r.Token[4:8])%9)
	return slices.Insert(slices.Delete(order, first, first+1), 0, first+1)
}

// Claimed is the answer to a claim.
type Claimed struct {
	// Jobs are the claimed jobs.
	Jobs []*Claim
	// NextDue is how long until another claim with the same lead may get a job, by the store's clock. The next job
	// must come due, minus the lead, or the rate must allow a start.
	//
	// The store sets NextDue only if the claim found no job or Limited is true. Negative: no job waits.
	NextDue time.Duration
	// Limited says that the limits of the queue hold jobs back until NextDue.
	Limited bool
	// Full says that due jobs wait until a job in flight ends, of the queue or of their tenant.
	Full bool
	// Paced says that the queue has a rate. The rate counts the claimed jobs until the holder has reported when
	// they began.
	Paced bool
	// Unheard says that another claim was under way, and that the store ignored Begun. Report it again.
	Unheard bool
}

// Claim is a job that a holder has claimed.
type Claim struct {
	Job
	// Token proves the claim.
	Token Token
	// ReceivedAt is when the holder got the job, by the holder's own clock. Package observe sets it. Zero: nobody
	// observes the store.
	ReceivedAt time.Time

	settledInTx atomic.Bool
}

// MarkSettledInTx notes that the holder completed the job inside its own transaction. CompleteTx of the stores
// calls it. Afterwards the worker only checks that the transaction was committed.
func (c *Claim) MarkSettledInTx() { c.settledInTx.Store(true) }

// SettledInTx reports whether the holder completed the job inside its own transaction. The transaction may be
// rolled back all the same.
func (c *Claim) SettledInTx() bool { return c.settledInTx.Load() }

// Cancelled reports whether somebody cancelled the job while this claim held it. Job is the job as the holder reads
// it after it lost the claim.
//
// Cancelled is false if the job left the claim in another way first: another holder may have had it since.
func (c *Claim) Cancelled(job Job) bool {
	return job.State == StateCancelled && job.Generation == c.Generation &&
		job.Attempts == c.Attempts && job.Releases == c.Releases && job.Recoveries == c.Recoveries
}

// Renewal asks for more time on a claim.
type Renewal struct {
	// ID is the job, and Token proves the claim.
	ID    ID
	Token Token
	// Lease is the new lease, counted from now by the store's clock.
	Lease time.Duration
	// Queue is the queue of the job. Package observe uses it; stores ignore it.
	Queue string
}

// Settlement reports how the run of a claimed job ended.
type Settlement struct {
	// ID is the job, and Token proves the claim.
	ID    ID
	Token Token
	// Event is one of complete, retry, release, recover, bury, dispatch and doubt. Use recover if the engine says
	// that it never started a run of the claim.
	Event Event
	// Delay is how long a retried or released job waits, by the store's clock. A released job with a Delay of 0
	// keeps its place.
	Delay time.Duration
	// Result is the handler's result, as JSON. If it is larger than [MaxResultBytes], the store returns an
	// [ErrInvalid] and the job stays claimed. Default: none.
	Result json.RawMessage
	// Error and Stack describe the failed attempt, for retry and bury.
	Error string
	Stack string
	// Reason is for the audit entry. Default: none.
	Reason string
	// Ref names the engine's run, for dispatch. Default: the ref of the intent.
	Ref string
	// Poison says that the job is buried because it lost too many holders. It counts no failed attempt.
	Poison bool
	// Holder names the process that settles.
	Holder string
	// Claim is the claim that the settlement ends. Package observe uses it; stores ignore it.
	Claim *Claim
	// InTx says that the holder completed the job inside its own transaction. The settlement counts only if that
	// transaction was not committed.
	InTx bool
	// Returned says, together with InTx, that the handler returned nil, so the transaction was most likely
	// committed. Package observe uses it; stores ignore it.
	Returned bool
}

// MaxResultBytes is the most bytes of JSON in the result of a job, and in its checkpoint: 1 MiB.
const MaxResultBytes = 1 << 20

// MaxErrorBytes is the most bytes of an error text, and of a stack: 8 KiB. [StoredText] cuts a longer text in its
// middle.
const MaxErrorBytes = 8 << 10

// FailureOf returns the settlement of a failed attempt by the settings of the queue. The last attempt buries the
// job; an earlier attempt retries it after the backoff.
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

// OtherRunnerError says that a queue refused a claim because another kind of holder runs its jobs. It is an
// [ErrNotAllowed].
type OtherRunnerError struct {
	// Queue is the queue of the claim.
	Queue string
	// Engine runs the jobs of the queue. Empty: workers run them.
	Engine string
	// Claimed is the engine of the holder. Empty: the holder is a worker.
	Claimed string
}

// Error says which engine or worker runs the jobs, and what to do.
func (e *OtherRunnerError) Error() string {
	switch {
	case e.Engine == "":
		return fmt.Sprintf("claim from queue %s for engine %s: workers run its jobs; run `sluice work %s`, or set its `engine`", e.Queue, e.Claimed, e.Queue)
	case e.Claimed == "":
		return fmt.Sprintf("claim from queue %s for a worker: engine %s runs its jobs; run `sluice dispatch %s`, or clear its `engine`", e.Queue, e.Engine, e.Queue)
	}
	return fmt.Sprintf("claim from queue %s for engine %s: engine %s runs its jobs; read its settings again", e.Queue, e.Claimed, e.Engine)
}

// Is makes an OtherRunnerError an [ErrNotAllowed].
func (e *OtherRunnerError) Is(target error) bool { return target == ErrNotAllowed }

// CheckRunner returns an [*OtherRunnerError] if the engine of the queue is not the engine of the request.
func (r ClaimRequest) CheckRunner(engine string) error {
	if r.Engine == engine {
		return nil
	}
	return &OtherRunnerError{Queue: r.Queue, Engine: engine, Claimed: r.Engine}
}
