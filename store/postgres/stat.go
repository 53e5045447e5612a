package postgres

import (
	"context"
	"errors"

	"github.com/sluice-queue/sluice"
)

// AddStats keeps what a holder counted.
func (s *Store) AddStats(context.Context, string, []sluice.Stat) error { return errors.ErrUnsupported }

// Stats lists slots.
func (s *Store) Stats(context.Context, sluice.StatFilter) ([]sluice.Stat, error) {
	return nil, errors.ErrUnsupported
}

// FoldStats merges what holders added.
func (s *Store) FoldStats(context.Context, int) (int, error) { return 0, errors.ErrUnsupported }
