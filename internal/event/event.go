// Package event defines every line that Sluice logs: its name, its level, when it appears and its
// fields. Workers, dispatchers, forwarders, upkeep and servers log nothing else.
//
// Begin with [Log], which writes events and limits their number, and with table.go, which defines
// the events. [All] and [Fields] list them; docs/events.md is generated from these.
//
// Read next: docs/events.md.
package event

import (
	"log/slog"
	"slices"
	"strings"
)

// Event is a kind of log line.
type Event struct {
	// Name is the line's message.
	Name  string
	Level slog.Level
	// By is the part of Sluice that logs the event.
	By string
	// When describes when the event is logged, and what to do then if that is not obvious.
	When string
	// Fields are the names of its fields beside the holder, in order. A field in brackets is
	// present if it is known.
	Fields string
}

// Must lists the fields that every line of the event has.
func (e *Event) Must() []string {
	return slices.DeleteFunc(strings.Fields(e.Fields), func(f string) bool { return strings.HasPrefix(f, "[") })
}

// May lists all fields that a line of the event can have.
func (e *Event) May() []string {
	return strings.Fields(strings.NewReplacer("[", "", "]", "").Replace(e.Fields))
}

// Field is the meaning of a field's name, the same in every line.
type Field struct{ Name, Meaning string }

// Fields lists the meanings of all field names.
func Fields() []Field { return slices.Clone(fields) }

// All lists every event, in the order of the documents.
func All() []*Event { return slices.Clone(all) }

var all []*Event

// is adds an event to the table.
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
