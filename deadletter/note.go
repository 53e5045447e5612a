package deadletter

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/feature"
)

// The longest text and owner of a [Note], in bytes.
const (
	MaxNoteText  = 4 << 10
	MaxNoteOwner = 200
)

// Note is what people keep about a group of dead letters: a text, who owns the cause, and when it was resolved. A note outlives
// the dead letters of its group.
type Note struct {
	// Fingerprint names the group; see [Fingerprint].
	Fingerprint string `json:"fingerprint"`
	Text        string `json:"text"`
	// Owner is the person or team that looks after the cause. Empty: nobody.
	Owner string `json:"owner"`
	// ResolvedAt is when somebody resolved the cause, by the store's clock. Zero: it is open. A group whose last job died later
	// came back.
	ResolvedAt time.Time `json:"resolved_at,omitzero"`

	// Version counts the changes. 0: not stored yet.
	Version int64 `json:"version"`
	// ChangedAt, ChangedBy and Reason describe the last change.
	ChangedAt time.Time `json:"changed_at,omitzero"`
	ChangedBy string    `json:"changed_by"`
	Reason    string    `json:"reason"`
}

// Check returns the rule that a note breaks, as a [sluice.ErrInvalid].
func (n Note) Check() error {
	switch {
	case len(n.Fingerprint) != 2*fingerprintSum || strings.Trim(n.Fingerprint, "0123456789abcdef") != "":
		return feature.Invalid("fingerprint", fmt.Sprintf("%.80q must be 8 hexadecimal digits", n.Fingerprint))
	case len(n.Text) > MaxNoteText:
		return feature.Invalid("text", fmt.Sprintf("%d bytes must be at most %d", len(n.Text), MaxNoteText))
	case len(n.Owner) > MaxNoteOwner:
		return feature.Invalid("owner", fmt.Sprintf("%d bytes must be at most %d", len(n.Owner), MaxNoteOwner))
	}
	for field, text := range map[string]string{"text": n.Text, "owner": n.Owner} {
		if sluice.StoredText(text) != text {
			return feature.Invalid(field, "must be UTF-8 without zero bytes")
		}
	}
	return feature.CheckInstant("resolved_at", n.ResolvedAt)
}

// ForAudit returns the note as the audit keeps it.
func (n Note) ForAudit() any {
	return struct {
		Text       string    `json:"text"`
		Owner      string    `json:"owner"`
		ResolvedAt time.Time `json:"resolved_at,omitzero"`
	}{n.Text, n.Owner, n.ResolvedAt}
}

// Store is the port of notes. SQLite, PostgreSQL and memory implement it beside sluice.Store.
type Store interface {
	// DeadNotes lists notes by fingerprint. Nil fingerprints: every note. It leaves out groups without a note.
	DeadNotes(ctx context.Context, fingerprints []string) ([]Note, error)
	// SaveDeadNote stores a note, by the rule of SaveQueue of [sluice.Store].
	SaveDeadNote(ctx context.Context, note Note, act sluice.Act) (Note, error)
}

// Given returns the port of a store, through decorators too. For nil, every method of the returned Store returns a
// [sluice.ErrInvalid]. For a store without notes, every method returns a [sluice.ErrNotFound].
func Given(store sluice.Store) Store {
	port, err := feature.Port[Store](store, "keeps no notes on dead letters")
	if err != nil {
		return missing{err}
	}
	return port
}

// missing is the port of a store without notes. Every method returns the reason.
type missing struct{ err error }

func (m missing) DeadNotes(context.Context, []string) ([]Note, error) { return nil, m.err }

func (m missing) SaveDeadNote(context.Context, Note, sluice.Act) (Note, error) {
	return Note{}, m.err
}

// NoteOf returns the note on a group; without one, an empty note of version 0.
func NoteOf(ctx context.Context, store sluice.Store, fingerprint string) (Note, error) {
	none := Note{Fingerprint: fingerprint}
	if err := none.Check(); err != nil {
		return Note{}, err
	}
	found, err := Given(store).DeadNotes(ctx, []string{fingerprint})
	if err != nil {
		return Note{}, fmt.Errorf("read the note on dead letters %.80q: %w", fingerprint, err)
	}
	if len(found) == 0 {
		return none, nil
	}
	return found[0], nil
}

// NoteChange is a change of a note. What is nil stays as it is.
type NoteChange struct {
	Text  *string
	Owner *string
	// Resolved resolves the cause now, or opens it again.
	Resolved *bool
}

// Change changes the note on a group, or makes it. If somebody else changes the note in the meantime, Change begins again.
func Change(ctx context.Context, store sluice.Store, fingerprint string, change NoteChange, act sluice.Act) (Note, error) {
	for {
		note, err := NoteOf(ctx, store, fingerprint)
		if err == nil {
			err = change.of(ctx, store, &note)
		}
		if err != nil {
			return Note{}, err
		}
		saved, err := Save(ctx, store, note, act)
		if !errors.Is(err, sluice.ErrConflict) || ctx.Err() != nil {
			return saved, err
		}
	}
}

// of makes the change of a note.
func (c NoteChange) of(ctx context.Context, store sluice.Store, note *Note) (err error) {
	if c.Text != nil {
		note.Text = *c.Text
	}
	if c.Owner != nil {
		note.Owner = *c.Owner
	}
	if c.Resolved == nil {
		return nil
	}
	if note.ResolvedAt = (time.Time{}); *c.Resolved {
		note.ResolvedAt, err = store.Now(ctx)
	}
	return err
}

// Save stores a note as the caller has read and changed it. If somebody else has changed it since, the error is a
// [sluice.ErrConflict]. [Change] reads, changes and stores until nobody else has.
func Save(ctx context.Context, store sluice.Store, note Note, act sluice.Act) (Note, error) {
	note.ResolvedAt = feature.Instant(note.ResolvedAt)
	if err := errors.Join(act.Check(), note.Check()); err != nil {
		return Note{}, err
	}
	saved, err := Given(store).SaveDeadNote(ctx, note, act)
	if err != nil {
		return Note{}, fmt.Errorf("save the note on dead letters %s: %w", note.Fingerprint, err)
	}
	return saved, nil
}

// addNotes gives groups their notes. A store that keeps none leaves them without.
func addNotes(ctx context.Context, store sluice.Store, groups []Group) error {
	if len(groups) == 0 {
		return nil
	}
	fingerprints := make([]string, len(groups))
	for i, g := range groups {
		fingerprints[i] = g.Fingerprint
	}
	found, err := Given(store).DeadNotes(ctx, fingerprints)
	if err != nil && !errors.Is(err, sluice.ErrNotFound) {
		return err
	}
	notes := make(map[string]*Note, len(found))
	for i := range found {
		notes[found[i].Fingerprint] = &found[i]
	}
	for i := range groups {
		g := &groups[i]
		g.Note = notes[g.Fingerprint]
		g.CameBack = g.Note != nil && !g.Note.ResolvedAt.IsZero() && g.Last.After(g.Note.ResolvedAt)
	}
	return nil
}
