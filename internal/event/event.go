// Package event is every line that Sluice logs: what it is called, how loud it is, when it comes and what is in it.
// docs/events.md is made from it, and nothing else is logged by who runs, dispatches, follows and forwards jobs.
package event

import (
	"log/slog"
	"slices"
	"strings"
)

// Event is something that is logged.
type Event struct {
	// Name is the line's message.
	Name  string
	Level slog.Level
	// By is who logs it.
	By string
	// When says when it comes, and what to do where that is not plain.
	When string
	// Fields are what is in it beside the holder, in order. One in brackets is there where it is known.
	Fields string
}

// Must lists the fields that are in every line of the event.
func (e *Event) Must() []string {
	return slices.DeleteFunc(strings.Fields(e.Fields), func(f string) bool { return strings.HasPrefix(f, "[") })
}

// May lists all fields that can be in a line of the event.
func (e *Event) May() []string {
	return strings.Fields(strings.NewReplacer("[", "", "]", "").Replace(e.Fields))
}

// Field is what a name stands for in every line.
type Field struct{ Name, Meaning string }

// Fields lists what the names of fields stand for.
func Fields() []Field { return slices.Clone(fields) }

// All lists every event, in the order of the documents.
func All() []*Event { return slices.Clone(all) }

var all []*Event

// is puts an event in the table.
func is(name string, level slog.Level, by, fields, when string) *Event {
	e := &Event{Name: name, Level: level, By: by, When: when, Fields: fields}
	all = append(all, e)
	return e
}

const (
	debug = slog.LevelDebug
	info  = slog.LevelInfo
	warn  = slog.LevelWarn
	wrong = slog.LevelError
)
