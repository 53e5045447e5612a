package memory

import (
	"context"
	"maps"
	"slices"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/deadletter"
	"github.com/sluice-queue/sluice/internal/saving"
)

var _ deadletter.Store = (*Store)(nil)

// DeadNotes lists notes on groups of dead letters.
func (s *Store) DeadNotes(ctx context.Context, fingerprints []string) ([]deadletter.Note, error) {
	leave, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	var out []deadletter.Note
	for _, fingerprint := range slices.Sorted(maps.Keys(s.deadNotes)) {
		if fingerprints == nil || slices.Contains(fingerprints, fingerprint) {
			out = append(out, s.deadNotes[fingerprint])
		}
	}
	return out, nil
}

// SaveDeadNote stores a note on a group of dead letters, and its audit entry.
func (s *Store) SaveDeadNote(ctx context.Context, note deadletter.Note, act sluice.Act) (deadletter.Note, error) {
	return save(ctx, s, saving.Notes, note, act, in(s.deadNotes, note.Fingerprint))
}
