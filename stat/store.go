// Package stat reads statistics of queues and tenants: how many jobs were enqueued, claimed, completed or failed, how long they
// waited and ran, in slots of 10 s, 1 min and 1 h. Begin with [Of], the summary of a queue over a window; [Read] lists slots.
package stat

import (
	"context"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/feature"
)

// Store is the port of statistics, by queue and slot of time: SQLite, PostgreSQL and memory implement it beside their
// sluice.Store. Every open store counts its own calls (see [Counter]) and adds its counts.
type Store interface {
	// AddStats keeps what one process, the holder, counted, all or nothing of a slot. A slot that is not later than one
	// that the holder has added before changes nothing: so it may be sent again when an answer was lost, and a slot must be sent
	// at once. A slot that began longer ago than FineKept, or that begins more than a minute from now, is left out:
	// nobody could tell whether it was there before. What CheckNew refuses is an ErrInvalid.
	AddStats(ctx context.Context, holder string, stats []Stat) error
	// Stats lists slots, those of all holders merged, by when they begin, then by queue and tenant; also what was not
	// folded yet. A slot in which nothing happened is missing.
	Stats(ctx context.Context, filter Filter) ([]Stat, error)
	// FoldStats merges what holders added for minutes that are over, keeps it by slot, minute and hour, each with its
	// MaxTenants largest tenants, and deletes slots that were kept long enough. It handles at most limit rows of the
	// holders and deletes at most limit slots, and returns how many of both it did: fewer than limit means that there is
	// nothing more to do now. Several at once do no harm.
	FoldStats(ctx context.Context, limit int) (int, error)
}

// Given returns the port of a store, also where decorators stand before it. Where there is none, every method of the
// returned Store gives the reason: a [sluice.ErrInvalid] for nil, a [sluice.ErrNotFound] for a store without statistics.
func Given(store sluice.Store) Store {
	port, err := feature.Port[Store](store, "keeps no statistics")
	if err != nil {
		return missing{err}
	}
	return port
}

// missing is the port of a store that has none: every method gives the reason.
type missing struct{ err error }

func (m missing) AddStats(context.Context, string, []Stat) error { return m.err }

func (m missing) Stats(context.Context, Filter) ([]Stat, error) { return nil, m.err }

func (m missing) FoldStats(context.Context, int) (int, error) { return 0, m.err }
