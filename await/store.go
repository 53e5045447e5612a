package await

import (
	"context"
	"encoding/json"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/feature"
)

// Store is the port of waiting for jobs. SQLite, PostgreSQL and memory implement it beside sluice.Store.
type Store interface {
	// Await asks the processes that end one of these jobs within the next minute to signal that; see Ended of
	// [sluice.Signal]. It writes nothing, and a signal may be lost: look with Ended from time to time.
	Await(ctx context.Context, ids []sluice.ID) error
	// Ended returns the ends of those jobs that have ended. A job that is not stored has an end without a state. It
	// leaves out unfinished jobs.
	Ended(ctx context.Context, ids []sluice.ID) ([]End, error)
}

// End is how a job ended.
type End struct {
	// ID names the job.
	ID sluice.ID `json:"id"`
	// State is completed, dead or cancelled. Empty: the job is not stored.
	State sluice.State `json:"state"`
	// Result is the result of the handler or the engine, as JSON. Empty: none.
	Result json.RawMessage `json:"result,omitempty"`
	// ResultRemoved says that there was a result, which upkeep has removed after keep_results.
	ResultRemoved bool `json:"result_removed,omitempty"`
	// Error is the text of the last failure. A completed job keeps that of an earlier attempt. Empty: none.
	Error string `json:"error,omitempty"`
	// FinishedAt is when the job ended.
	FinishedAt time.Time `json:"finished_at,omitzero"`
}

// Given returns the port of a store, through decorators too. For nil, every method of the returned Store returns a
// [sluice.ErrInvalid]. For a store that cannot wait, every method returns a [sluice.ErrNotFound].
func Given(store sluice.Store) Store {
	port, err := feature.Port[Store](store, "cannot wait for jobs")
	if err != nil {
		return missing{err}
	}
	return port
}

// missing is the port of a store that cannot wait.
type missing struct{ err error }

func (m missing) Await(context.Context, []sluice.ID) error { return m.err }

func (m missing) Ended(context.Context, []sluice.ID) ([]End, error) { return nil, m.err }
