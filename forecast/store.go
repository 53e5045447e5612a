// Package forecast tells how much work falls due ahead, and when it starts and finishes by the limits in effect or by others.
// Upkeep counts the jobs of a store regularly; a forecast reads the last count and costs a bounded number of rows.
package forecast

import (
	"context"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/feature"
)

// Store is the port of forecasts: it counts jobs by the time at which they fall due. SQLite, PostgreSQL and memory implement
// it beside their sluice.Store.
type Store interface {
	// CountWaves counts what falls due. It reads every unfinished job, in slices, holds nothing that others write, and
	// writes only what differs from the last count.
	CountWaves(ctx context.Context) (Count, error)
	// Waves reads the last count, by a bounded number of rows for each queue.
	Waves(ctx context.Context, filter Filter) (Counts, error)
}

// Given returns the port of a store, also where decorators stand before it. Where there is none, every method of the
// returned Store gives the reason: a [sluice.ErrInvalid] for nil, a [sluice.ErrNotFound] for a store without forecasts.
func Given(store sluice.Store) Store {
	port, err := feature.Port[Store](store, "counts nothing ahead")
	if err != nil {
		return missing{err}
	}
	return port
}

// missing is the port of a store that has none: every method gives the reason.
type missing struct{ err error }

func (m missing) CountWaves(context.Context) (Count, error) { return Count{}, m.err }

func (m missing) Waves(context.Context, Filter) (Counts, error) { return Counts{}, m.err }
