package limit

import (
	"context"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/feature"
)

// Store is the port of named limits. SQLite, PostgreSQL and memory implement it beside sluice.Store.
type Store interface {
	// Limits lists limits by name. Nil names: every limit. It leaves out unknown names.
	Limits(ctx context.Context, names []string) ([]Limit, error)
	// LimitUses is Limits with how much of each is in use.
	LimitUses(ctx context.Context, names []string) ([]Use, error)
	// SaveLimit stores a limit, by the rule of SaveQueue of [sluice.Store]. It counts from the next claim on.
	SaveLimit(ctx context.Context, limit Limit, act sluice.Act) (Limit, error)
	// DeleteLimit deletes a limit, with an audit entry. An unknown name is an ErrNotFound, and a limit that the setting
	// limits of a queue names is an ErrNotAllowed.
	DeleteLimit(ctx context.Context, name string, act sluice.Act) error
	// KeyUses says how much of a limit that is per key the given keys use, in their order. Nil keys: those that are closed or
	// have waiting jobs, by name, at most that many.
	KeyUses(ctx context.Context, name string, keys []string, most int) ([]KeyUse, error)
	// CloseKey closes a key of a limit until an instant, with an audit entry. A key that is closed for longer stays as it
	// is, without an entry. The zero instant opens the key. It counts from the next claim on.
	CloseKey(ctx context.Context, name, key string, until time.Time, act sluice.Act) error
}

// Given returns the port of a store, through decorators too. For nil, every method of the returned Store returns a
// [sluice.ErrInvalid]. For a store without named limits, every method returns a [sluice.ErrNotFound].
func Given(store sluice.Store) Store {
	port, err := feature.Port[Store](store, "keeps no named limits")
	if err != nil {
		return missing{err}
	}
	return port
}

// missing is the port of a store without named limits. Every method returns the reason.
type missing struct{ err error }

func (m missing) Limits(context.Context, []string) ([]Limit, error) { return nil, m.err }

func (m missing) LimitUses(context.Context, []string) ([]Use, error) { return nil, m.err }

func (m missing) SaveLimit(context.Context, Limit, sluice.Act) (Limit, error) {
	return Limit{}, m.err
}

func (m missing) DeleteLimit(context.Context, string, sluice.Act) error { return m.err }

func (m missing) KeyUses(context.Context, string, []string, int) ([]KeyUse, error) { return nil, m.err }

func (m missing) CloseKey(context.Context, string, string, time.Time, sluice.Act) error { return m.err }
