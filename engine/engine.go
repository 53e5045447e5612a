// Package engine is the port of systems that run jobs elsewhere, such as Temporal, and of their runs in a store.
//
// Begin with [Engine], which packages engine/temporal and engine/local implement. [Store] keeps what a dispatcher has asked
// of an engine. Package engine/enginetest holds the rules that every engine obeys.
//
// Read next: package dispatcher, which starts runs, and package upkeep, which follows them to their end.
package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/feature"
)

// The errors of an engine that dispatchers tell apart. They arrive wrapped. After any other error, the engine may or may not
// have done the call.
var (
	// ErrRefused: the engine will never accept this run, because it is too large or invalid.
	ErrRefused = errors.New("refused by the engine")
	// ErrRefTaken: a run of another job has the ref.
	ErrRefTaken = errors.New("the ref is taken by another run")
	// ErrBusy: the engine is overloaded and started nothing. It may accept the run later.
	ErrBusy = errors.New("the engine is busy")
	// ErrUnavailable: the engine did not answer within the deadline. It may or may not have done the call.
	ErrUnavailable = errors.New("engine unavailable")
	// ErrNotAsked comes beside another error: the engine was not asked, so this call started nothing.
	ErrNotAsked = errors.New("the engine was not asked")
	// ErrTarget: the engine lacks the namespace or another target of the queue's settings, or denies it. The queue starts no
	// run until a person repairs that.
	ErrTarget = errors.New("the engine lacks the queue's target")
	// ErrCodec comes beside ErrUnavailable: the engine's data converter failed, for example because its codec server or KMS is
	// away.
	ErrCodec = errors.New("the data converter failed")
)

// Engine runs jobs elsewhere and tells their outcomes.
//
// A run has a ref. Starting a run again with its ref finds the first run, open or closed, for as long as the engine keeps
// closed runs. Every call has a deadline.
type Engine interface {
	// Start starts runs. It returns one error per run: nil if the engine has the run now, started by this call or before. A
	// failed run does not stop the others. After ErrRefused, ErrRefTaken, ErrBusy, ErrTarget and ErrNotAsked nothing was
	// started; after any other error the run may exist. Right before it asks the engine, Start calls Begins of the run, and
	// does not ask if that returns an error.
	Start(ctx context.Context, target Target, runs []Run) []error
	// Outcomes looks runs up by their refs: one outcome per ref, in the same order. An engine that cannot be reached gives an
	// error, never Absent. Beside an error, outcomes with a State are valid; those without are not known.
	Outcomes(ctx context.Context, target Target, refs []string) ([]Outcome, error)
	// Ended lists runs that ended at or after an instant of the engine's clock. Next is that of the page before; nil: the
	// first page. Ended may miss runs for a while, so Outcomes decides.
	Ended(ctx context.Context, target Target, since time.Time, next []byte) (Page, error)
	// Cancel asks runs to end. It returns one error per ref. A run that has ended or is unknown is no error.
	Cancel(ctx context.Context, target Target, refs []string, reason string) []error
	// Check checks whether the engine can start and follow runs.
	Check(ctx context.Context, target Target) (Report, error)
}

// Terminator is an Engine that can terminate runs. A terminated run that has not begun never begins; a cancelled one may begin
// in order to end.
type Terminator interface {
	// Terminate ends runs at once. It returns one error per ref, by the rule of Cancel.
	Terminate(ctx context.Context, target Target, refs []string, reason string) []error
}

// Target is where an engine runs the jobs of a queue; see [TargetOf].
type Target struct {
	// Queue is the queue of the jobs.
	Queue string
	// Namespace, Type and TaskQueue are the engine's own names. Default of Type: the queue's name.
	Namespace string
	Type      string
	TaskQueue string
	// Timeout ends a longer run that has no timeout of its own. 0: none.
	Timeout time.Duration
	// Results asks for the results of completed runs, which may cost a call for each.
	Results bool
}

// TargetOf returns the target in the settings of a queue.
func TargetOf(queue string, s sluice.Settings) Target {
	target := Target{
		Queue: queue, Namespace: s.RunNamespace, Type: s.RunType, TaskQueue: s.RunTaskQueue, Timeout: s.RunTimeout, Results: s.RunResults,
	}
	if target.Type == "" {
		target.Type = queue
	}
	return target
}

// Location returns the engine in the settings of a queue, with the namespace if there is one: `temporal` or
// `temporal/billing`. Stores keep it with each run, because the settings may change while the run is open.
func Location(s sluice.Settings) string {
	if s.RunNamespace == "" {
		return s.Engine
	}
	return s.Engine + "/" + s.RunNamespace
}

// TargetAt returns the engine's name and the target of a recorded run. Location is what [Location] returned when the run was
// recorded; the settings may have changed since.
func TargetAt(queue string, s sluice.Settings, location string) (engine string, target Target) {
	engine, namespace, _ := strings.Cut(location, "/")
	target = TargetOf(queue, s)
	target.Namespace = namespace
	return engine, target
}

// Report is the result of [Engine].Check.
type Report struct {
	// Retention is how long the engine keeps closed runs. 0: for ever.
	Retention time.Duration `json:"retention"`
	// Pollers is how many workers wait for runs of the target. -1: not known.
	Pollers int `json:"pollers"`
	// Version is the engine's.
	Version string `json:"version"`
}

const (
	// SweepInterval is how often upkeep looks up some of the open runs one by one, because Ended may miss a run.
	SweepInterval = 30 * time.Second
	// FollowRounds is how often upkeep must be able to look a closed run up before its engine forgets the run.
	FollowRounds = 10
)

// LeastRetention is the shortest retention with which dispatchers start runs.
const LeastRetention = FollowRounds * SweepInterval

// Forgets reports whether the engine may have forgotten a run of this age. If it may, Absent does not prove that the run never
// existed, and the job becomes uncertain. A tenth of the retention is a margin for clocks and calls under way.
func (r Report) Forgets(age time.Duration) bool {
	return r.Retention > 0 && age > r.Retention-r.Retention/10
}

// CheckFollowing returns a [sluice.ErrInvalid] of `follow_interval` if the engine could forget a closed run before upkeep
// notices it. Dispatchers then start no runs of the queue.
func CheckFollowing(s sluice.Settings, report Report) error {
	every := max(s.FollowInterval, SweepInterval)
	if report.Retention <= 0 || FollowRounds*every <= report.Retention {
		return nil
	}
	return feature.Invalid("follow_interval", fmt.Sprintf(
		"%s is unsafe: the engine keeps runs that ended for %s only, and a run must be asked for at least %d times before it is forgotten, every %s at the most; shorten it, or let the engine keep runs longer",
		sluice.FormatDuration(s.FollowInterval), sluice.FormatDuration(report.Retention), FollowRounds, sluice.FormatDuration(every)))
}

// UnknownError says that the settings of a queue name an engine that the process does not have. It is a [sluice.ErrNotFound].
type UnknownError struct {
	Queue  string
	Engine string
}

// Error names the queue, the engine and the remedy.
func (e *UnknownError) Error() string {
	if e.Engine == "" {
		return "queue " + e.Queue + " has no engine: its jobs are for workers; set its `engine` to dispatch them"
	}
	return "queue " + e.Queue + " names the engine " + e.Engine + ", which this process was not given"
}

// Is makes an UnknownError a [sluice.ErrNotFound].
func (e *UnknownError) Is(target error) bool { return target == sluice.ErrNotFound }
