package httpapi

import (
	"context"

	"github.com/sluice-queue/sluice/access"
	"github.com/sluice-queue/sluice/deadletter"
	"github.com/sluice-queue/sluice/internal/wire"
)

// dead adds the routes of groups of dead letters and their notes.
func (a *API) dead() {
	route := func(r Route) Route { r.Group, r.noun = "look", "note"; return r }
	add(a, route(Route{
		Method: "GET", Path: "/dead/groups", Name: "list-dead-groups", Summary: "group dead letters by their errors",
		Needs: access.Look, Commands: []string{"dead groups"},
	}), func(ctx context.Context, c *call, in *deadInput) (deadletter.Groups, error) {
		var queues []string
		if in.Queue != "" {
			queues = []string{in.Queue}
		}
		found, err := deadletter.Read(ctx, c.api.store, queues, in.Limit)
		found.Groups = orEmpty(found.Groups)
		return found, err
	})
	add(a, route(Route{
		Method: "GET", Path: "/dead/notes", Name: "list-dead-notes", Summary: "list notes on groups of dead letters",
		Needs: access.Look, Commands: []string{"dead note"},
	}), func(ctx context.Context, c *call, in *deadNotesInput) (wire.DeadNoteList, error) {
		found, err := deadletter.Given(c.api.store).DeadNotes(ctx, in.Fingerprint)
		return wire.DeadNoteList{Notes: orEmpty(found)}, err
	})
	add(a, route(Route{
		Method: "PATCH", Path: "/dead/notes/{fingerprint}", Name: "change-dead-note", Summary: "change the note on a group of dead letters",
		Text:  "Missing fields stay as they are. If a job of a resolved group dies later, the group came back.",
		Needs: access.Operate, Commands: []string{"dead note"},
	}), func(ctx context.Context, c *call, in *changeDeadNoteInput) (deadletter.Note, error) {
		b := in.Body
		change := deadletter.NoteChange{Text: b.Text, Owner: b.Owner, Resolved: b.Resolved}
		return deadletter.Change(ctx, c.api.store, in.Fingerprint, change, c.act(b.Reason))
	})
	add(a, route(Route{
		Method: "PUT", Path: "/dead/notes/{fingerprint}", Name: "save-dead-note", Summary: "store the note on a group of dead letters",
		Text: "Stores the note if its version is still that of the body; 0 makes the note.", Needs: access.Operate, Commands: []string{"dead note"},
	}), func(ctx context.Context, c *call, in *saveDeadNoteInput) (deadletter.Note, error) {
		b := in.Body
		note := deadletter.Note{Fingerprint: in.Fingerprint, Text: b.Text, Owner: b.Owner, ResolvedAt: b.ResolvedAt, Version: b.Version}
		return deadletter.Save(ctx, c.api.store, note, c.act(b.Reason))
	})
}

// deadInput chooses dead letters.
type deadInput struct {
	Queue string `query:"queue" doc:"only this queue" maxLength:"64"`
	Limit int    `query:"limit" doc:"the most dead letters to look at" minimum:"1" maximum:"100000" default:"10000"`
}

// deadNotesInput chooses notes.
type deadNotesInput struct {
	Fingerprint []string `query:"fingerprint,explode" doc:"only the notes on these groups" maxItems:"100"`
}

// changeDeadNoteInput changes a note.
type changeDeadNoteInput struct {
	Fingerprint string `path:"fingerprint" doc:"the fingerprint of the group" maxLength:"8"`
	Body        changeDeadNoteBody
}

// changeDeadNoteBody changes a note.
type changeDeadNoteBody struct {
	wire.ReasonBody
	// Text is the new text.
	Text *string `json:"text,omitempty" maxLength:"4096"`
	// Owner is the new owner. Empty: nobody.
	Owner *string `json:"owner,omitempty" maxLength:"200"`
	// Resolved says that the cause is resolved as of now, or that it is open again.
	Resolved *bool `json:"resolved,omitempty"`
}

// saveDeadNoteInput stores a note.
type saveDeadNoteInput struct {
	Fingerprint string `path:"fingerprint" doc:"the fingerprint of the group" maxLength:"8"`
	Body        wire.SaveDeadNoteBody
}
