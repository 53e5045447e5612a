package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/sluice-queue/sluice/cmd/internal/draw"
)

// column is a column of a printed table.
type column[T any] struct {
	title   string
	text    func(T) string
	numeric bool // right-aligned
}

// printList prints items in the format of --output. name returns what `ids` prints.
func printList[T any](a *app, items []T, name func(T) string, columns []column[T]) error {
	switch a.output {
	case "table":
		return printTable(a, items, columns)
	case "json":
		if items == nil {
			items = []T{}
		}
		return printJSON(a, items, "  ")
	case "jsonl":
		for _, item := range items {
			if err := printJSON(a, item, ""); err != nil {
				return err
			}
		}
		return nil
	case "ids":
		for _, item := range items {
			if _, err := fmt.Fprintln(a.stdout, name(item)); err != nil {
				return err
			}
		}
		return nil
	}
	return usagef("--output %q is not known", a.output) // settle has checked it
}

// printNamed is printOne for an item with an id or a name, which is all that `ids` prints.
func (a *app) printNamed(item any, name string, forPeople func() error) error {
	if a.output != "ids" {
		return a.printOne(item, forPeople)
	}
	_, err := fmt.Fprintln(a.stdout, name)
	return err
}

// printOne prints one item: as JSON for machines, else with forPeople.
func (a *app) printOne(item any, forPeople func() error) error {
	switch a.output {
	case "table":
		return forPeople()
	case "json":
		return printJSON(a, item, "  ")
	case "jsonl":
		return printJSON(a, item, "")
	case "ids":
		return forPeople()
	}
	return usagef("--output %q is not known", a.output) // settle has checked it
}

// printJSON prints a value. Characters that a terminal does not show as they are, such as U+009B or changes of writing
// direction, are escaped; programs read the same.
func printJSON(a *app, value any, indent string) error {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", indent)
	if err := encoder.Encode(value); err != nil {
		return err
	}
	_, err := a.stdout.Write(escapeUnseen(text.Bytes()))
	return err
}

// escapeUnseen writes invisible characters of JSON as \uXXXX. They occur only inside its texts.
func escapeUnseen(text []byte) []byte {
	if !bytes.ContainsFunc(text, unseen) {
		return text
	}
	out := make([]byte, 0, len(text)+16)
	for _, r := range string(text) {
		switch {
		case !unseen(r):
			out = utf8.AppendRune(out, r)
		case r > 0xFFFF:
			high, low := utf16.EncodeRune(r)
			out = fmt.Appendf(out, `\u%04x\u%04x`, high, low)
		default:
			out = fmt.Appendf(out, `\u%04x`, r)
		}
	}
	return out
}

func unseen(r rune) bool { return r > '~' && !strconv.IsPrint(r) }

// detailLines return functions that write the named lines of one item, without empty ones.
func detailLines(out io.Writer, layout string) (line func(name, value string), instant func(name string, at time.Time)) {
	line = func(name, value string) {
		if value != "" {
			fmt.Fprintf(out, "%-13s %s\n", name, strings.Map(printable, value))
		}
	}
	return line, func(name string, at time.Time) {
		if !at.IsZero() {
			line(name, at.Format(layout)+"  ("+ago(at)+")")
		}
	}
}

func oneLine(text string) string {
	return strings.Join(strings.Fields(strings.Map(printable, text)), " ")
}

// printable keeps texts of jobs from controlling the terminal.
func printable(r rune) rune {
	if r == '\n' || r == '\t' {
		return ' '
	}
	if !strconv.IsPrint(r) {
		return '·'
	}
	return r
}

// ago formats an instant relative to now, such as `in 5m` or `3h ago`; zero: a dash.
func ago(at time.Time) string {
	if at.IsZero() {
		return "-"
	}
	if d := time.Until(at); d > 0 {
		return "in " + draw.Duration(d)
	}
	return draw.Duration(time.Since(at)) + " ago"
}

// jobs formats a number of jobs.
func jobs(n int) string { return draw.Plural(n, "job") }

// orDash replaces an empty text.
func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}
