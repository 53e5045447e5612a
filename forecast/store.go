// Package forecast tells how much work falls due ahead, and when it starts and finishes by the present limits or by
// others.
//
// Begin with [Of], which forecasts each queue. [WhatIf] tries other limits. Upkeep counts the jobs of a store
// regularly; a forecast reads the last count and a bounded number of rows. [Recount] counts at once.
//
// Read next: docs/guide/forecast.md.
package forecast

import (
	"context"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/feature"
)

// Store is the port of forecasts. It counts jobs by due time. SQLite, PostgreSQL and memory implement it beside
// sluice.Store.
type Store interface {
	// CountWaves counts the jobs that fall due. It reads every unfinished job, in slices, blocks no other writer,
	// and writes only differences to the last count.
	CountWaves(ctx context.Context) (Count, error)
	// Waves reads the last count, with a bounded number of rows for each queue.
	Waves(ctx context.Context, filter Filter) (Counts, error)
}

// Given returns the port of a store, through decorators too. For nil, every method of the returned Store returns a
// [sluice.ErrInvalid]. For a store without forecasts, every method returns a [sluice.ErrNotFound].
func Given(store sluice.Store) Store {
	port, err := feature.Port[Store](store, "counts nothing ahead")
	if err != nil {
		return missing{err}
	}
	return port
}

// missing is the port of a store without forecasts. Every method returns the reason.
type missing struct{ err error }

func (m missing) CountWaves(context.Context) (Count, error) { return Count{}, m.err }

func (m missing) Waves(context.Context, Filter) (Counts, error) { return Counts{}, m.err }
