package sluice

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// The answers of an engine that a dispatcher acts on, each in its own way. They arrive wrapped with what was being
// done. Any other error means that it is not known what the engine did.
var (
	// ErrEngineRefused: the engine will never take this run, whatever is tried: it is too large, or invalid.
	ErrEngineRefused = errors.New("refused by the engine")
	// ErrRefTaken: another run, that is not of this job, has the ref.
	ErrRefTaken = errors.New("the ref is taken by another run")
	// ErrEngineBusy: the engine started nothing, because it has too much to do. Later it may.
	ErrEngineBusy = errors.New("the engine is busy")
	// ErrEngineUnavailable: the engine could not be reached, or did not answer within the deadline. Whether it did what
	// it was asked for is not known.
	ErrEngineUnavailable = errors.New("engine unavailable")
	// ErrNotAsked comes beside another: nobody asked the engine for this run, so that this call has started nothing.
	ErrNotAsked = errors.New("the engine was not asked")
	// ErrEngineTarget: the engine lacks what the queue's settings name, such as the namespace, or does not let us use
	// it. No run of the queue can be started until a person mends it.
	ErrEngineTarget = errors.New("the engine lacks the queue's target")
	// ErrEngineCodec comes beside ErrEngineUnavailable: the engine's data converter failed, and may work later, such as one
	// whose codec server or KMS is away.
	ErrEngineCodec = errors.New("the data converter failed")
)

// Engine runs jobs elsewhere and tells what became of them. It is the port that package engine/temporal and
// package engine/local implement; package enginetest holds the rules that each obeys.
//
// A run has a ref, which is the same whenever the same run is asked for: starting it again finds it, whether it still
// runs or has ended, for as long as the engine keeps runs that ended. Every call has a deadline.
type Engine interface {
	// Start starts runs. It has one answer per run, nil for each that the engine has now, whether it was started by
	// this call or before. One that fails does not keep the others from being started. See ErrEngineRefused,
	// ErrRefTaken, ErrEngineBusy, ErrEngineTarget and ErrNotAsked; after any other error the run may have been started. It
	// calls Begins of each run right before the engine is asked for that one, and does not ask if that says no.
	Start(ctx context.Context, target RunTarget, runs []Run) []error
	// Outcomes says how runs are, each by its ref: one outcome per ref, in the same order. An engine that cannot be
	// reached gives an error, never RunAbsent. Beside an error there may be outcomes all the same; those without a State are
	// the ones that are not known.
	Outcomes(ctx context.Context, target RunTarget, refs []string) ([]RunOutcome, error)
	// Ended lists runs that ended at or after an instant of the engine's clock, many in one call; next goes on where
	// the page before ended, nil: at the beginning. It may miss some for a while: Outcomes is what is relied on.
	Ended(ctx context.Context, target RunTarget, since time.Time, next []byte) (RunPage, error)
	// Cancel asks runs to end. One answer per ref; a run that has ended or is unknown is none to fail on.
	Cancel(ctx context.Context, target RunTarget, refs []string, reason string) []error
	// Check looks whether runs can be started and followed.
	Check(ctx context.Context, target RunTarget) (EngineReport, error)
}

// Terminator is an Engine that can end runs by force too. A run that has not begun never does then, whereas one that was
// only asked to end may begin just for that.
type Terminator interface {
	// Terminate ends runs at once, as Cancel asks them to.
	Terminate(ctx context.Context, target RunTarget, refs []string, reason string) []error
}

// RunTarget is where an engine runs the jobs of a queue; see TargetOf.
type RunTarget struct {
	// Queue is the queue whose jobs these are.
	Queue string
	// Namespace, Type and TaskQueue name what runs them, in the engine's words. Type defaults to the queue's name.
	Namespace string
	Type      string
	TaskQueue string
	// Timeout ends a run that takes longer; 0: never.
	Timeout time.Duration
	// Results says that the results of runs that ended well are wanted, which may cost a call for each.
	Results bool
}

// TargetOf is where the settings of a queue let its jobs run.
func TargetOf(queue string, s Settings) RunTarget {
	target := RunTarget{
		Queue: queue, Namespace: s.RunNamespace, Type: s.RunType, TaskQueue: s.RunTaskQueue, Timeout: s.RunTimeout, Results: s.RunResults,
	}
	if target.Type == "" {
		target.Type = queue
	}
	return target
}

// EngineOf says where the settings of a queue let its jobs run: the engine's name and, where there is one, the namespace.
// It is stored with each run, because the settings may change while it is under way.
func EngineOf(s Settings) string {
	if s.RunNamespace == "" {
		return s.Engine
	}
	return s.Engine + "/" + s.RunNamespace
}

// TargetAt is where a run of a queue is that was intended already, and the name of the engine: as EngineOf said then, which
// is stored with the run, whatever the settings say by now.
func TargetAt(queue string, s Settings, where string) (engine string, target RunTarget) {
	engine, namespace, _ := strings.Cut(where, "/")
	target = TargetOf(queue, s)
	target.Namespace = namespace
	return engine, target
}

// Run is one run of a job, as a dispatcher asks an engine for it.
type Run struct {
	// Ref names it; see RefOf.
	Ref string
	// Job, Generation and Attempt say whose run it is: attempts are counted from 1.
	Job        ID
	Generation int
	Attempt    int
	Tenant     string
	Priority   int
	Labels     map[string]string
	Payload    json.RawMessage
	// Work names the work that the job is, where the ref would be another's with the same key; see Adopts. The engine keeps
	// it with the run.
	Work string
	// Delay is how long the engine must wait before the run begins.
	Delay time.Duration
	// Headers go with the run, for who observes it, such as the context of a trace. Engines without headers leave them out.
	Headers map[string]string
	// Begin, if there is one, says whether the engine may be asked for the run now. See Begins.
	Begin func() error
}

// Begins says whether an engine may be asked for the run now; nil: it may. Between claim and call the queue may have been
// paused, or the claim lost. The error is the answer of Start then.
func (r Run) Begins() error {
	if r.Begin == nil {
		return nil
	}
	if err := r.Begin(); err != nil {
		return fmt.Errorf("%w: %w", ErrNotAsked, err)
	}
	return nil
}

// RunState is how a run is.
type RunState string

// The states of a run.
const (
	// RunRunning: it has begun, or will, and has not ended.
	RunRunning RunState = "running"
	// RunCompleted: it ended well.
	RunCompleted RunState = "completed"
	// RunFailed: it ended with an error of its own.
	RunFailed RunState = "failed"
	// RunCancelled: it was asked to end, and did.
	RunCancelled RunState = "cancelled"
	// RunTerminated: somebody ended it by force.
	RunTerminated RunState = "terminated"
	// RunTimedOut: it took longer than it may.
	RunTimedOut RunState = "timed out"
	// RunAbsent: the engine has no such run. Either it was never started, or it ended so long ago that the engine does
	// not keep it any more.
	RunAbsent RunState = "absent"
	// RunForeign: the ref is that of a run that is not of this job.
	RunForeign RunState = "foreign"
)

// Over reports whether a run in this state has ended.
func (s RunState) Over() bool {
	switch s {
	case RunCompleted, RunFailed, RunCancelled, RunTerminated, RunTimedOut:
		return true
	}
	return false
}

// RunOutcome is what an engine knows of a run.
type RunOutcome struct {
	Ref   string
	Job   ID
	State RunState
	// Result is what the run returned, as JSON, where it is known.
	Result json.RawMessage
	// Error tells why it failed.
	Error string
	// Work is what the run was asked for with.
	Work string
	// StartedAt is when the engine took it, and EndedAt when it ended, by the engine's clock; zero: it has not, or the
	// engine does not say.
	StartedAt time.Time
	EndedAt   time.Time
}

// RunPage is a part of the runs that ended.
type RunPage struct {
	Runs []RunOutcome
	// Next is where the next page begins; nil: this was the last one.
	Next []byte
}

// EngineReport is what a check of an engine found.
type EngineReport struct {
	// Retention is how long the engine keeps runs that ended; 0: for ever.
	Retention time.Duration `json:"retention"`
	// Pollers is how many workers wait for runs of the target, -1: the engine does not say.
	Pollers int `json:"pollers"`
	// Version is the engine's own.
	Version string `json:"version"`
}

const (
	// SweepInterval is how often upkeep asks for a slice of all runs under way, one by one, because an engine that lists
	// those that ended may miss one.
	SweepInterval = 30 * time.Second
	// FollowLooks is how many looks at a run must be possible before its engine forgets that it ended.
	FollowLooks = 10
)

// LeastRetention is for how long an engine keeps runs that ended at the least: one that keeps them for less gets none.
const LeastRetention = FollowLooks * SweepInterval

// Forgets reports whether an engine may have forgotten a run that it could have been asked for so long ago. Then the run is
// not asked for again, and that the engine lacks it does not mean that it never was: the job is uncertain. A tenth of the
// retention is left for clocks that differ, and for calls under way.
func (r EngineReport) Forgets(age time.Duration) bool {
	return r.Retention > 0 && age > r.Retention-r.Retention/10
}

// CheckFollowing says whether runs can be followed safely: a run that ended must be noticed long before its engine
// forgets it. If they cannot, the error is an ErrInvalid of follow_interval; dispatchers start no runs of the queue then.
func CheckFollowing(s Settings, report EngineReport) error {
	every := max(s.FollowInterval, SweepInterval)
	if report.Retention <= 0 || FollowLooks*every <= report.Retention {
		return nil
	}
	return invalid("follow_interval", fmt.Sprintf(
		"%s is unsafe: the engine keeps runs that ended for %s only, and a run must be asked for at least %d times before it is forgotten, every %s at the most; shorten it, or let the engine keep runs longer",
		FormatDuration(s.FollowInterval), FormatDuration(report.Retention), FollowLooks, FormatDuration(every)))
}

// UnknownEngineError says that the settings of a queue name an engine that the process was not given.
type UnknownEngineError struct {
	Queue  string
	Engine string
}

// Error says what to do.
func (e *UnknownEngineError) Error() string {
	if e.Engine == "" {
		return "queue " + e.Queue + " has no engine: its jobs are for workers; set its `engine` to dispatch them"
	}
	return "queue " + e.Queue + " names the engine " + e.Engine + ", which this process was not given"
}

// Is makes it an ErrNotFound.
func (e *UnknownEngineError) Is(target error) bool { return target == ErrNotFound }

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
