// Package stat reads statistics of queues and tenants: how many jobs made each move, how long they waited, and how
// long they ran.
//
// Begin with [Of], the summary of a queue over a window. [Read] lists the statistics by slot of 10 s, 1 min or 1 h.
// [Store] is the port that SQLite, PostgreSQL and memory implement.
//
// Read next: docs/guide/statistics.md.
package stat

import (
	"context"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/feature"
)

// Store is the port of statistics, by queue and slot. SQLite, PostgreSQL and memory implement it beside
// sluice.Store. Every open store counts its own calls (see [Counter]) and adds the counts.
type Store interface {
	// AddStats adds the counts of one process, the holder: all of a slot or nothing. A slot no later than the
	// holder's last slot changes nothing, so the holder can send a slot again after a lost answer. The holder must
	// send all counts of a slot in one call.
	//
	// The store ignores a slot that began more than FineKept ago, or begins more than 1 min from now: it could not
	// recognise a repetition. A slot that fails CheckNew is an ErrInvalid.
	AddStats(ctx context.Context, holder string, stats []Stat) error
	// Stats lists slots, merged over all holders, by begin, then by queue and tenant. It includes slots that
	// FoldStats has not folded yet. A slot without any move is missing, unless
	// Levels of the filter asks for slots with a level alone.
	Stats(ctx context.Context, filter Filter) ([]Stat, error)
	// FoldStats merges the holders' slots of past minutes. It keeps them by slot, minute and hour, each with its
	// MaxTenants largest tenants, and deletes slots that were kept long enough.
	//
	// It handles at most limit rows of the holders and deletes at most limit slots. It returns the sum; fewer than
	// limit: nothing is left to do now. Several processes may call it at once.
	FoldStats(ctx context.Context, limit int) (int, error)
}

// Given returns the port of a store, through decorators too. For nil, every method of the returned Store returns a
// [sluice.ErrInvalid]. For a store without statistics, every method returns a [sluice.ErrNotFound].
func Given(store sluice.Store) Store {
	port, err := feature.Port[Store](store, "keeps no statistics")
	if err != nil {
		return missing{err}
	}
	return port
}

// missing is the port of a store without statistics. Every method returns the reason.
type missing struct{ err error }

func (m missing) AddStats(context.Context, string, []Stat) error { return m.err }

func (m missing) Stats(context.Context, Filter) ([]Stat, error) { return nil, m.err }

func (m missing) FoldStats(context.Context, int) (int, error) { return 0, m.err }
