// Package observe decorates the two ports of Sluice, [sluice.Store] and [engine.Engine], so that observers see
// each call.
//
// Begin with [Store] and [Engine]: they wrap a store or an engine with any number of [Observer] values. Each
// method call becomes a [Call], and each observer is called when the call begins and when it ends. [Call.Moves]
// lists the moves of jobs that a call has made.
//
// Metrics and traces are observers: next, read packages metric and trace. This package imports only the
// standard library and Sluice.
package observe

import (
	"context"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/engine"
)

// Observer is called for each call. Many goroutines call its methods at once, so they must be quick. An
// observer must neither keep a call nor change it, except for fields that allow it.
type Observer interface {
	// Begin is called before a call. The call, and End, get the returned context.
	Begin(ctx context.Context, call *Call) context.Context
	// End is called when the call has ended.
	End(ctx context.Context, call *Call)
}

// Kind is the kind of a call.
type Kind string

// The kinds of calls.
const (
	// KindStore is a method of the store.
	KindStore Kind = "store"
	// KindEngine is a method of an engine.
	KindEngine Kind = "engine"
	// KindStep is a part of the work that no method shows; see [step.Step].
	KindStep Kind = "step"
)

// Call is one call of a store or an engine, or one step of the work. Its name decides which of its fields are
// set. Results are set at the end of the call.
type Call struct {
	Kind Kind
	// Name is the name of the method or step, in lower case with underscores, such as save_queue.
	Name string
	// Queue is the queue of the call; empty: several queues, or unknown.
	Queue string
	// Engine is the name of the engine.
	Engine string

	// Began is when the call began. Took, its duration, and Err are set at its end.
	Began time.Time
	Took  time.Duration
	Err   error
	// Jobs is how many jobs the call concerned, such as the jobs that a claim got or a settle wrote.
	Jobs int
	// Errs has an entry per job if the call answers for each job; nil: success.
	Errs []error

	// Inserts are the jobs of an enqueue, and Receipts its answers. In Begin, an observer may replace the
	// labels of an insert, but must not change the existing map.
	Inserts  []sluice.Insert
	Receipts []sluice.Receipt
	// Claims are the jobs that a claim got, or the job being handled.
	Claims []*sluice.Claim
	// Claimed is the full answer of a claim.
	Claimed sluice.Claimed
	// Settlements, Intents and Renewals are the arguments of settle, record_intent and renew. Lost is how many claims
	// renew found lost, and LostJobs are their jobs.
	Settlements []sluice.Settlement
	Intents     []engine.Intent
	Renewals    []sluice.Renewal
	Lost        int
	LostJobs    []sluice.ID
	// Runs are the runs that an engine is asked to start. In Begin, an observer may set their Headers.
	Runs []engine.Run
	// Refs are the runs that an engine is asked about, and Outcomes its answers.
	Refs     []string
	Outcomes []engine.Outcome

	event     sluice.Event
	recovered sluice.Recovered
	count     int
	reason    string
}
