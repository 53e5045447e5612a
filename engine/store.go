package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/feature"
)

// Store is the port of runs: SQLite, PostgreSQL and memory implement it beside their sluice.Store.
type Store interface {
	// RecordIntent stores the runs that a dispatcher is about to start, and renews the claims of their jobs. From then on only
	// the engine can say whether a run exists, and Recover of [sluice.Store] leaves the claim alone. The same intent may be
	// sent again. An old token gives ErrLost and an audit entry; a run other than the recorded one gives ErrNotAllowed.
	RecordIntent(ctx context.Context, intents []Intent) ([]error, error)
	// Dispatches lists the jobs with a recorded or dispatched run, by id, without their payloads and checkpoints.
	Dispatches(ctx context.Context, filter DispatchFilter) ([]*sluice.Claim, error)
	// OrphanRuns lists the orphan runs of a queue, the earliest cancelled first, at most limit. After is the last run of the
	// page before; the zero value begins. An orphan run counts as in flight.
	OrphanRuns(ctx context.Context, queue string, after OrphanRun, limit int) ([]OrphanRun, error)
	// ForgetOrphanRuns deletes orphan runs that have ended, each by its job and ref. Jobs that waited for them go on. A run
	// that is not listed is no error.
	ForgetOrphanRuns(ctx context.Context, runs []OrphanRun) error
}

// Given returns the port of a store, or of the store that it decorates. If the store has none, every method of the
// returned Store returns the reason: a [sluice.ErrInvalid] for nil, a [sluice.ErrNotFound] otherwise.
func Given(store sluice.Store) Store {
	port, err := feature.Port[Store](store, "keeps no runs")
	if err != nil {
		return missing{err}
	}
	return port
}

// missing is the port of a store that has none.
type missing struct{ err error }

func (m missing) RecordIntent(context.Context, []Intent) ([]error, error) { return nil, m.err }

func (m missing) Dispatches(context.Context, DispatchFilter) ([]*sluice.Claim, error) {
	return nil, m.err
}

func (m missing) OrphanRuns(context.Context, string, OrphanRun, int) ([]OrphanRun, error) {
	return nil, m.err
}

func (m missing) ForgetOrphanRuns(context.Context, []OrphanRun) error { return m.err }

// Intent is a run that a dispatcher is about to start.
type Intent struct {
	ID    sluice.ID
	Token sluice.Token
	// Ref names the run; see RefOf.
	Ref string
	// Engine is where the run starts; see Location.
	Engine string
	// Lease is how long the claim holds from now, by the store's clock.
	Lease time.Duration
}

// Check returns the rule that an intent breaks, as a [sluice.ErrInvalid]. Without its run and its engine, the job would be
// handed out again although a run may exist.
func (in Intent) Check() error {
	switch {
	case in.Ref == "":
		return feature.Invalid("ref", "an intent must name the run")
	case in.Engine == "":
		return feature.Invalid("engine", "an intent must name the engine")
	}
	return nil
}

// OtherRun is the error of an intent for a job with another recorded run, which may exist.
func OtherRun(in Intent) error {
	return fmt.Errorf("record the intent %s at %s: another run of the job was recorded, and may exist: %w", in.Ref, in.Engine, sluice.ErrNotAllowed)
}

// DispatchFilter chooses among the jobs with a recorded or dispatched run.
type DispatchFilter struct {
	Queue string
	// IDs chooses these jobs only. Default: all.
	IDs []sluice.ID
	// Overdue chooses claims whose lease has ended. Default: all claimed and dispatched jobs.
	Overdue bool
	// After is the last id of the page before. Zero: from the first.
	After sluice.ID
	// Limit is the most jobs to return. Default: DispatchLimit.
	Limit int
	// Look says that the caller only reads: a store may leave out tokens, which a read-only role may not see.
	ReadOnly bool
}

// DispatchLimit is the most jobs that Dispatches returns by default.
const DispatchLimit = 1000

// OrphanRun is a run that may be open although its job has ended: somebody cancelled the job, or upkeep buried it before the
// engine told the run's outcome. The run is in flight until the engine says that it has ended.
type OrphanRun struct {
	// JobID is the job, and Queue its queue.
	JobID sluice.ID `json:"job_id"`
	Queue string    `json:"queue"`
	// Engine is where the run is; see Location.
	Engine string `json:"engine"`
	// Ref names the run.
	Ref string `json:"ref"`
	// CancelledAt is when the job ended, by the store's clock.
	CancelledAt time.Time `json:"cancelled_at"`
	// Tenant is the job's. Generation is the life of the job that the run belongs to.
	Tenant     string `json:"tenant,omitempty"`
	Generation int    `json:"generation"`
	// ClaimedAt is when the dispatcher claimed the job.
	ClaimedAt time.Time `json:"claimed_at,omitzero"`
	// Started says that the engine had the run. A run that was only recorded may never start.
	Started bool `json:"started"`
	// Terminate says that a person asked upkeep to terminate the run; see Terminate of [sluice.Store].
	Terminate bool `json:"terminate,omitempty"`
	// Beside says that a person let the job run beside this run; see [sluice.Act].
	Beside bool `json:"beside,omitempty"`
}
