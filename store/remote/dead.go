package remote

import (
	"context"
	"net/url"
	"slices"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/deadletter"
	"github.com/sluice-queue/sluice/internal/wire"
)

// maxDeadNotes is the most fingerprints in the address of a request. For more, the server lists all notes.
const maxDeadNotes = 100

// DeadNotes lists notes on groups of dead letters.
func (s *Store) DeadNotes(ctx context.Context, fingerprints []string) ([]deadletter.Note, error) {
	q := params{}
	if len(fingerprints) <= maxDeadNotes {
		for _, fingerprint := range fingerprints {
			q.text("fingerprint", fingerprint)
		}
	}
	var answer wire.DeadNoteList
	if err := s.call(ctx, request{verb: "list notes on dead letters", path: "/dead/notes", query: q.values(), out: &answer}); err != nil {
		return nil, err
	}
	if fingerprints == nil {
		return answer.Notes, nil
	}
	return slices.DeleteFunc(answer.Notes, func(n deadletter.Note) bool { return !slices.Contains(fingerprints, n.Fingerprint) }), nil
}

// SaveDeadNote stores a note on a group of dead letters.
func (s *Store) SaveDeadNote(ctx context.Context, note deadletter.Note, act sluice.Act) (saved deadletter.Note, err error) {
	body := wire.SaveDeadNoteBody{Text: note.Text, Owner: note.Owner, ResolvedAt: note.ResolvedAt, Version: note.Version, ReasonBody: why(act)}
	err = s.call(ctx, saving("save a note on dead letters", "/dead/notes/"+url.PathEscape(note.Fingerprint), &act, body, &saved))
	return saved, err
}
