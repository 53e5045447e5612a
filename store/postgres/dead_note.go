package postgres

import (
	"context"
	_ "embed"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/deadletter"
	"github.com/sluice-queue/sluice/internal/saving"
)

var _ deadletter.Store = (*Store)(nil)

//go:embed sql/dead_notes.sql
var deadNotesSQL string

//go:embed sql/dead_note_save.sql
var deadNoteSaveSQL string

// DeadNotes lists notes on groups of dead letters.
func (s *Store) DeadNotes(ctx context.Context, fingerprints []string) ([]deadletter.Note, error) {
	var out []deadletter.Note
	err := s.call(ctx, "list notes on dead letters", func(ctx context.Context, _ bool) (err error) {
		out, err = list(ctx, s.pool, scanDeadNote, deadNotesSQL, fingerprints)
		return err
	})
	return out, err
}

func scanDeadNote(row pgx.CollectableRow) (n deadletter.Note, err error) {
	var resolvedAt pgtype.Timestamptz
	err = row.Scan(&n.Fingerprint, &n.Text, &n.Owner, &resolvedAt, &n.Version, &n.ChangedAt, &n.ChangedBy, &n.Reason)
	n.ResolvedAt, n.ChangedAt = timeOf(resolvedAt), n.ChangedAt.UTC()
	return n, err
}

// SaveDeadNote stores a note on a group of dead letters, and its audit entry.
func (s *Store) SaveDeadNote(ctx context.Context, note deadletter.Note, act sluice.Act) (deadletter.Note, error) {
	return save(ctx, s, "save note on dead letters", saving.Notes, note, act, home[deadletter.Note]{
		stored: func(ctx context.Context, db rowsQuerier) ([]deadletter.Note, error) {
			return list(ctx, db, scanDeadNote, deadNotesSQL, []string{note.Fingerprint})
		},
		store: func(ctx context.Context, tx pgx.Tx, _ *deadletter.Note) (time.Time, error) {
			return savedRow(ctx, tx, deadNoteSaveSQL, note.Fingerprint, note.Text, note.Owner, nullTime(note.ResolvedAt), note.Version, act.By, act.Reason)
		},
	})
}
