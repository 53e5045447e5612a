// Package observe decorates the two ports of the system, Store and Engine: each call becomes a Call, and every observer
// is told when it begins and when it has ended. Metrics and traces are observers. It imports the standard library only.
package observe

import (
	"context"
	"time"

	"github.com/sluice-queue/sluice"
)

// Observer is told of calls. Its methods are called by many goroutines at once, and must be quick. It must not keep a
// call, nor change it but where a field says so.
type Observer interface {
	// Begin is told before a call. The call, and End, get the context that it returns.
	Begin(ctx context.Context, call *Call) context.Context
	// End is told when the call has ended.
	End(ctx context.Context, call *Call)
}

// Kind says what is called.
type Kind string

// The kinds of calls.
const (
	// KindStore: a method of the store.
	KindStore Kind = "store"
	// KindEngine: a method of an engine.
	KindEngine Kind = "engine"
	// KindStep: a part of the work that no method shows; see sluice.Step.
	KindStep Kind = "step"
)

// Call is one call of a store or an engine, or one step of the work. Which of its fields are set depends on its name;
// what it brought is set at its end.
type Call struct {
	Kind Kind
	// Name is that of the method or of the step, in small letters with _ between words, such as save_queue.
	Name string
	// Queue is the queue that it is about; empty: it is about several, or that is not known.
	Queue string
	// Engine is the name of the engine that is called.
	Engine string

	// Began is when it began. Took, how long it took, and Err are set at its end.
	Began time.Time
	Took  time.Duration
	Err   error
	// Jobs is how many jobs it was about, such as those that a claim got, or that a settle was to write.
	Jobs int
	// Errs has an entry per job where the call answers for each, nil for each that succeeded.
	Errs []error

	// Inserts are the jobs of an enqueue, and Receipts what became of them. An observer may give an insert other labels,
	// in Begin, but must not change the map that is there.
	Inserts  []sluice.Insert
	Receipts []sluice.Receipt
	// Claims are what a claim got, or the job that is handled.
	Claims []*sluice.Claim
	// Claimed is the rest of what a claim got.
	Claimed sluice.Claimed
	// Settlements, Intents and Renewals are those of settle, intend and renew; Lost is how many claims renew found lost,
	// and LostJobs whose they were.
	Settlements []sluice.Settlement
	Intents     []sluice.Intent
	Renewals    []sluice.Renewal
	Lost        int
	LostJobs    []sluice.ID
	// Runs are those that an engine is asked to start. An observer may set their Headers, in Begin.
	Runs []sluice.Run
	// Refs are the runs that an engine is asked about, and Outcomes what it answered.
	Refs     []string
	Outcomes []sluice.RunOutcome

	event     sluice.Event
	recovered sluice.Recovered
	count     int
	reason    string
}
