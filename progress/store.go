package progress

import (
	"context"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/feature"
)

// Store is the port of progress. SQLite, PostgreSQL and memory implement it beside sluice.Store.
type Store interface {
	// SaveProgress stores the reports of claimed jobs, instead of earlier ones. It ignores a report whose token does not
	// prove the claim. Upkeep deletes reports of attempts that have ended.
	SaveProgress(ctx context.Context, reports []Report) error
	// Progress returns the reports of those jobs whose attempt has reported and goes on.
	Progress(ctx context.Context, ids []sluice.ID) ([]Report, error)
}

// Given returns the port of a store, through decorators too. For nil, every method of the returned Store returns a
// [sluice.ErrInvalid]. For a store without progress, every method returns a [sluice.ErrNotFound].
func Given(store sluice.Store) Store {
	port, err := feature.Port[Store](store, "keeps no progress")
	if err != nil {
		return missing{err}
	}
	return port
}

// missing is the port of a store without progress. Every method returns the reason.
type missing struct{ err error }

func (m missing) SaveProgress(context.Context, []Report) error { return m.err }

func (m missing) Progress(context.Context, []sluice.ID) ([]Report, error) { return nil, m.err }
