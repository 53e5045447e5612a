package observe

import (
	"context"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/deadletter"
)

func (s *store) DeadNotes(ctx context.Context, fingerprints []string) ([]deadletter.Note, error) {
	return do(ctx, s, "dead_notes", "", func(ctx context.Context) ([]deadletter.Note, error) { return s.deadNotes.DeadNotes(ctx, fingerprints) })
}

func (s *store) SaveDeadNote(ctx context.Context, note deadletter.Note, act sluice.Act) (deadletter.Note, error) {
	return do(ctx, s, "save_dead_note", "", func(ctx context.Context) (deadletter.Note, error) { return s.deadNotes.SaveDeadNote(ctx, note, act) })
}
