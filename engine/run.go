package engine

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/sluice-queue/sluice"
)

// Run is a run of a job, as a dispatcher asks an engine for it.
type Run struct {
	// Ref names the run; see [RefOf].
	Ref string
	// Job, Generation and Attempt identify the run. Attempts are counted from 1.
	Job        sluice.ID
	Generation int
	Attempt    int
	Tenant     string
	Priority   int
	Labels     map[string]string
	Payload    json.RawMessage
	// Work identifies queue, key and payload if another job with the same key would have the same ref; see [Adopts]. The engine
	// keeps it with the run.
	Work string
	// Delay is how long the engine waits before the run begins.
	Delay time.Duration
	// Timeout ends a longer run. Default: the target's.
	Timeout time.Duration
	// Headers travel with the run, such as the context of a trace. Engines without headers ignore them.
	Headers map[string]string
	// Begin returns an error if the engine must not be asked for the run any more. Default: nil, always ask. See Begins.
	Begin func() error
}

// Begins returns nil if the engine may be asked for the run now. Between claim and call, somebody may have paused the queue, or
// the claim may be lost. The error, an [ErrNotAsked], is the answer of Start.
func (r Run) Begins() error {
	if r.Begin == nil {
		return nil
	}
	if err := r.Begin(); err != nil {
		return fmt.Errorf("%w: %w", ErrNotAsked, err)
	}
	return nil
}

// State is the state of a run.
type State string

// The states of a run.
const (
	// Running: the run is open, or will begin.
	Running State = "running"
	// Completed: the run succeeded.
	Completed State = "completed"
	// Failed: the run ended with an error.
	Failed State = "failed"
	// Cancelled: the run ended because somebody asked it to.
	Cancelled State = "cancelled"
	// Terminated: somebody terminated the run.
	Terminated State = "terminated"
	// TimedOut: the run exceeded its timeout.
	TimedOut State = "timed out"
	// Absent: the engine has no such run. The run never started, or ended so long ago that the engine has forgotten it.
	Absent State = "absent"
	// Foreign: a run of another job has the ref.
	Foreign State = "foreign"
)

// Over reports whether a run in this state has ended.
func (s State) Over() bool {
	switch s {
	case Completed, Failed, Cancelled, Terminated, TimedOut:
		return true
	}
	return false
}

// Outcome is what an engine knows of a run.
type Outcome struct {
	Ref   string
	Job   sluice.ID
	State State
	// Result is the return value of the run as JSON, if known.
	Result json.RawMessage
	// Error is why the run failed.
	Error string
	// Work is that of [Run].
	Work string
	// StartedAt is when the engine accepted the run, EndedAt when the run ended, by the engine's clock. Zero: not yet, or not
	// known.
	StartedAt time.Time
	EndedAt   time.Time
}

// Page is a page of closed runs.
type Page struct {
	Runs []Outcome
	// Next begins the next page. Nil: this is the last page.
	Next []byte
}
