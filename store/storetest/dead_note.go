package storetest

import (
	"strings"
	"sync"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/deadletter"
)

func deadNoteRules() []Rule {
	return []Rule{
		{"R-1000", "A note on a group of dead letters reads back as it was stored, from every process, by fingerprint; a group without one is left out.", "[guide](guide/dead-letters.md)", func(w *world) {
			note := deadletter.Note{Fingerprint: "9ac1f00d", Text: "the bank's certificate\nran out", Owner: "team-money", ResolvedAt: w.Now().UTC().Truncate(time.Microsecond)}
			saved, err := deadletter.Save(w.ctx, w.Store, note, person("found"))
			w.ok(err)
			w.near("changed at", saved.ChangedAt, w.Now())
			note.Version, note.ChangedAt, note.ChangedBy, note.Reason = 1, saved.ChangedAt, "ada", "found"
			equal(w, "saved", saved, note)
			w.noted("0badcafe", deadletter.NoteChange{Owner: new("ada")})
			for _, store := range []sluice.Store{w.Store, w.Other} {
				all, err := deadletter.Given(store).DeadNotes(w.ctx, nil)
				w.ok(err)
				equal(w, "notes", len(all), 2)
				equal(w, "first", all[0].Fingerprint, "0badcafe")
				some, err := deadletter.Given(store).DeadNotes(w.ctx, []string{"9ac1f00d", "00000000"})
				w.ok(err)
				equal(w, "some", len(some), 1)
				equal(w, "note", some[0], note)
				none, err := deadletter.Given(store).DeadNotes(w.ctx, []string{})
				w.ok(err)
				equal(w, "none", len(none), 0)
			}
		}},
		{"R-1001", "A change of a note must name the version it was made from, and is audited before and after.", "I-15", func(w *world) {
			saved := w.noted("9ac1f00d", deadletter.NoteChange{Text: new("DNS")})
			for _, version := range []int64{0, 2} {
				stale := saved
				stale.Version = version
				_, err := deadletter.Save(w.ctx, w.Other, stale, person("late"))
				w.is(err, sluice.ErrConflict)
			}
			unknown := deadletter.Note{Fingerprint: "00000000", Version: 1}
			_, err := deadletter.Save(w.ctx, w.Other, unknown, person("unknown"))
			w.is(err, sluice.ErrConflict)
			w.noted("9ac1f00d", deadletter.NoteChange{Owner: new("bo")})
			entries, err := w.Other.Audit(w.ctx, sluice.AuditFilter{Object: audit.ObjectNote, Name: "9ac1f00d", Limit: 10})
			w.ok(err)
			equal(w, "entries", len(entries), 2)
			equal(w, "event", entries[0].Event, audit.EventChange)
			equal(w, "actor", entries[0].Actor, "ada")
			equal(w, "before", squeezed(entries[0].Before), `{"text":"DNS","owner":""}`)
			equal(w, "after", squeezed(entries[0].After), `{"text":"DNS","owner":"bo"}`)
		}},
		{"R-1002", "Of many changes of a note at the same time, each is stored, and none takes another back.", "I-15", func(w *world) {
			var all sync.WaitGroup
			for _, change := range []deadletter.NoteChange{{Text: new("DNS")}, {Owner: new("bo")}, {Resolved: new(true)}} {
				for _, store := range []sluice.Store{w.Store, w.Other} {
					all.Go(func() {
						_, err := deadletter.Change(w.ctx, store, "9ac1f00d", change, person("at once"))
						w.ok(err)
					})
				}
			}
			all.Wait()
			note, err := deadletter.NoteOf(w.ctx, w.Other, "9ac1f00d")
			w.ok(err)
			equal(w, "text", note.Text, "DNS")
			equal(w, "owner", note.Owner, "bo")
			equal(w, "resolved", note.ResolvedAt.IsZero(), false)
			equal(w, "version", note.Version, 6)
		}},
		{"R-1003", "A group has its note. A job of a resolved group that dies later brings the group back; resolved anew, it is resolved, and opened, it is open.", "[guide](guide/dead-letters.md)", func(w *world) {
			group := w.die("no answer from 10.0.0.1")
			equal(w, "without a note", group.Note == nil && !group.CameBack, true)
			w.noted(group.Fingerprint, deadletter.NoteChange{Text: new("DNS"), Resolved: new(true)})
			resolved := w.deadGroup()
			equal(w, "text", resolved.Note.Text, "DNS")
			w.near("resolved at", resolved.Note.ResolvedAt, w.Now())
			equal(w, "came back", resolved.CameBack, false)
			w.Advance(time.Minute)
			again := w.die("no answer from 10.0.0.2")
			equal(w, "count", again.Count, 2)
			equal(w, "came back after a death", again.CameBack, true)
			w.noted(group.Fingerprint, deadletter.NoteChange{Owner: new("bo")})
			equal(w, "came back with an owner", w.deadGroup().CameBack, true)
			w.noted(group.Fingerprint, deadletter.NoteChange{Resolved: new(true)})
			equal(w, "came back when resolved anew", w.deadGroup().CameBack, false)
			w.noted(group.Fingerprint, deadletter.NoteChange{Resolved: new(false)})
			equal(w, "resolved when opened", w.deadGroup().Note.ResolvedAt.IsZero(), true)
		}},
		{"R-1004", "A note outlives the dead letters of its group.", "[guide](guide/dead-letters.md)", func(w *world) {
			group := w.die("no answer")
			w.noted(group.Fingerprint, deadletter.NoteChange{Text: new("DNS")})
			w.ok(w.only(w.Store.DeleteJobs(w.ctx, []sluice.ID{group.Sample}, person("paid by hand"))))
			note, err := deadletter.NoteOf(w.ctx, w.Other, group.Fingerprint)
			w.ok(err)
			equal(w, "text", note.Text, "DNS")
		}},
		{"R-1005", "A note of a wrong fingerprint, or that is too long, is refused, and nothing is stored.", "[guide](guide/dead-letters.md)", func(w *world) {
			for _, wrong := range []deadletter.Note{
				{},
				{Fingerprint: "9AC1F00D"},
				{Fingerprint: "9ac1f00d1"},
				{Fingerprint: "9ac1f00d", Text: "a\x00b"},
				{Fingerprint: "9ac1f00d", Text: strings.Repeat("x", deadletter.MaxNoteText+1)},
				{Fingerprint: "9ac1f00d", Owner: strings.Repeat("x", deadletter.MaxNoteOwner+1)},
			} {
				_, err := deadletter.Save(w.ctx, w.Store, wrong, person("wrong"))
				w.is(err, sluice.ErrInvalid)
			}
			all, err := deadletter.Given(w.Other).DeadNotes(w.ctx, nil)
			w.ok(err)
			equal(w, "notes", len(all), 0)
		}},
	}
}

// noted changes the note on a group.
func (w *world) noted(fingerprint string, change deadletter.NoteChange) deadletter.Note {
	w.Helper()
	saved, err := deadletter.Change(w.ctx, w.Store, fingerprint, change, person("test"))
	w.ok(err)
	return saved
}

// die lets a new job die of an error, and returns the group of all dead letters.
func (w *world) die(text string) deadletter.Group {
	w.Helper()
	w.add(sluice.EnqueueOptions{})
	bury := by(sluice.EventBury, w.claimOne())
	bury.Error = text
	w.done(bury)
	return w.deadGroup()
}

// deadGroup returns the only group of dead letters.
func (w *world) deadGroup() deadletter.Group {
	w.Helper()
	found, err := deadletter.Read(w.ctx, w.Other, []string{queue}, 0)
	w.ok(err)
	equal(w, "groups", len(found.Groups), 1)
	return found.Groups[0]
}
