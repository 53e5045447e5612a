package scrub

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
)

// Nothing returns a text unchanged. Use it for options that take a function like [Text], to leave texts alone.
func Nothing(text string) string { return text }

// NewHandler makes a slog.Handler that scrubs the attributes of each line with clean, and passes the line on to
// next. With keys, it scrubs the attributes with one of these keys, and errors under any key; without keys,
// every text. Messages stay as they are, because they are the program's own words. Default of next (nil): the
// handler of slog.Default. Default of clean (nil): [Text].
func NewHandler(next slog.Handler, clean func(string) string, keys ...string) slog.Handler {
	if next == nil {
		next = slog.Default().Handler()
	}
	if clean == nil {
		clean = Text
	}
	return &handler{next: next, clean: clean, keys: slices.Clone(keys)}
}

// Scrubs reports whether [NewHandler] made a handler.
func Scrubs(h slog.Handler) bool {
	_, scrubs := h.(*handler)
	return scrubs
}

type handler struct {
	next  slog.Handler
	clean func(string) string
	keys  []string
}

// Enabled asks the next handler.
func (h *handler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.next.Enabled(ctx, level)
}

// Handle passes a line on, scrubbed.
func (h *handler) Handle(ctx context.Context, line slog.Record) error {
	out := slog.NewRecord(line.Time, line.Level, line.Message, line.PC)
	line.Attrs(func(a slog.Attr) bool {
		out.AddAttrs(h.attr(a))
		return true
	})
	return h.next.Handle(ctx, out)
}

// WithAttrs scrubs the attributes of all lines once.
func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &handler{h.next.WithAttrs(h.attrs(attrs)), h.clean, h.keys}
}

// WithGroup opens a group.
func (h *handler) WithGroup(name string) slog.Handler {
	return &handler{h.next.WithGroup(name), h.clean, h.keys}
}

func (h *handler) attrs(attrs []slog.Attr) []slog.Attr {
	out := make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		out[i] = h.attr(a)
	}
	return out
}

// attr scrubs a text, and every value that is written as text. Instants, durations and numbers need no
// scrubbing.
func (h *handler) attr(a slog.Attr) slog.Attr {
	a.Value = a.Value.Resolve()
	switch a.Value.Kind() {
	case slog.KindGroup:
		a.Value = slog.GroupValue(h.attrs(a.Value.Group())...)
	case slog.KindString:
		if h.looksAt(a.Key) {
			a.Value = slog.StringValue(h.clean(a.Value.String()))
		}
	case slog.KindAny:
		if failed, is := a.Value.Any().(error); is && failed != nil {
			a.Value = slog.StringValue(h.clean(fmt.Sprint(failed))) // the error's own methods may panic
		} else if _, level := a.Value.Any().(slog.Level); !level && h.looksAt(a.Key) {
			if text := a.Value.String(); h.clean(text) != text {
				a.Value = slog.StringValue(h.clean(text))
			}
		}
	}
	return a
}

func (h *handler) looksAt(key string) bool {
	return len(h.keys) == 0 || slices.Contains(h.keys, key)
}
