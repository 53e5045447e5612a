package sqlite

import (
	"context"
	"database/sql"
	_ "embed"

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
	err := s.read(ctx, "list notes on dead letters", func(tx runner) (err error) {
		out, err = deadNotes(tx, fingerprints)
		return err
	})
	return out, err
}

func deadNotes(tx runner, fingerprints []string) ([]deadletter.Note, error) {
	var given any
	if fingerprints != nil {
		var err error
		if given, err = jsonOf(fingerprints); err != nil {
			return nil, err
		}
	}
	return list(tx, func(rows *sql.Rows) (n deadletter.Note, err error) {
		var resolvedAt *int64
		var changedAt int64
		err = rows.Scan(&n.Fingerprint, &n.Text, &n.Owner, &resolvedAt, &n.Version, &changedAt, &n.ChangedBy, &n.Reason)
		n.ResolvedAt, n.ChangedAt = timeOf(resolvedAt), timeOf(&changedAt)
		return n, err
	}, deadNotesSQL, given)
}

// SaveDeadNote stores a note on a group of dead letters, and its audit entry.
func (s *Store) SaveDeadNote(ctx context.Context, note deadletter.Note, act sluice.Act) (deadletter.Note, error) {
	return save(ctx, s, "save note on dead letters", saving.Notes, note, act, home[deadletter.Note]{
		stored: func(tx runner) ([]deadletter.Note, error) { return deadNotes(tx, []string{note.Fingerprint}) },
		store: func(tx runner, next deadletter.Note) error {
			_, err := tx.exec(deadNoteSaveSQL, next.Fingerprint, next.Text, next.Owner, micros(next.ResolvedAt), next.Version, next.ChangedAt.UnixMicro(), next.ChangedBy, next.Reason)
			return err
		},
	})
}
