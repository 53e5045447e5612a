package safe

import (
	"context"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/deadletter"
)

func (s store) DeadNotes(ctx context.Context, fingerprints []string) (_ []deadletter.Note, err error) {
	defer s.caught(&err)
	return s.deadNotes.DeadNotes(ctx, fingerprints)
}

func (s store) SaveDeadNote(ctx context.Context, note deadletter.Note, act sluice.Act) (_ deadletter.Note, err error) {
	defer s.caught(&err)
	return s.deadNotes.SaveDeadNote(ctx, note, act)
}
