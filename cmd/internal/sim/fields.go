package sim

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/sluice-queue/sluice"
)

// Fault is an error in a scenario, with its place.
type Fault struct {
	// Line is counted from 1. 0: the error concerns no single line.
	Line int
	// Summary is the broken rule.
	Summary string
}

// Error names the line and the rule.
func (f *Fault) Error() string {
	if f.Line == 0 {
		return f.Summary
	}
	return fmt.Sprintf("line %d: %s", f.Line, f.Summary)
}

func faultAt(n *yaml.Node, format string, args ...any) error {
	return &Fault{n.Line, fmt.Sprintf(format, args...)}
}

// document parses a text of one YAML document.
func document(text []byte) (*yaml.Node, error) {
	decoder := yaml.NewDecoder(strings.NewReader(string(text)))
	var root, more yaml.Node
	if err := decoder.Decode(&root); errors.Is(err, io.EOF) {
		return nil, &Fault{0, "the scenario is empty"}
	} else if err != nil {
		return nil, &Fault{0, strings.TrimPrefix(err.Error(), "yaml: ")}
	}
	if err := decoder.Decode(&more); !errors.Is(err, io.EOF) {
		return nil, &Fault{0, "the file holds more than one document"}
	}
	return root.Content[0], nil
}

// reader reads one value of a scenario.
type reader func(*yaml.Node) error

// field is a name of a mapping, and the reader of its value.
type field struct {
	name string
	read reader
}

// readFields reads a mapping with a fixed set of names.
func readFields(n *yaml.Node, what string, fields ...field) error {
	return readNames(n, what, func(name, value *yaml.Node) error {
		var names []string
		for _, f := range fields {
			if f.name == name.Value {
				return f.read(value)
			}
			names = append(names, f.name)
		}
		return faultAt(name, "%q is not a field of %s; there are: %s", name.Value, what, strings.Join(names, ", "))
	})
}

// readNames reads a mapping, each name once.
func readNames(n *yaml.Node, what string, read func(name, value *yaml.Node) error) error {
	if n.Kind != yaml.MappingNode {
		return faultAt(n, "%s is written as names and values", what)
	}
	seen := make(map[string]bool)
	for i := 0; i < len(n.Content); i += 2 {
		name, value := n.Content[i], n.Content[i+1]
		if seen[name.Value] {
			return faultAt(name, "%q is there twice", name.Value)
		}
		seen[name.Value] = true
		if err := read(name, value); err != nil {
			return err
		}
	}
	return nil
}

// readList reads a list, item by item.
func readList(what string, read reader) reader {
	return func(n *yaml.Node) error {
		if n.Kind != yaml.SequenceNode {
			return faultAt(n, "%s are written as a list", what)
		}
		for _, item := range n.Content {
			if err := read(item); err != nil {
				return err
			}
		}
		return nil
	}
}

// scalar makes a reader that parses a text.
func scalar[T any](into *T, what string, parse func(string) (T, error)) reader {
	return func(n *yaml.Node) error {
		if n.Kind != yaml.ScalarNode {
			return faultAt(n, "%s is expected here", what)
		}
		value, err := parse(n.Value)
		if err != nil {
			return faultAt(n, "%.60q is not %s", n.Value, what)
		}
		*into = value
		return nil
	}
}

func text(into *string) reader {
	return scalar(into, "a text", func(text string) (string, error) { return strings.TrimSpace(text), nil })
}

// errRange needs no text: scalar reports the allowed range.
var errRange = errors.New("out of range")

// whole reads a count. The thousands may be separated by _.
func whole[N int | int64](into *N, low, high N) reader {
	return scalar(into, fmt.Sprintf("a whole number from %d to %d", low, high), func(text string) (N, error) {
		n, err := strconv.ParseInt(strings.ReplaceAll(text, "_", ""), 10, 64)
		if err == nil && (n < int64(low) || n > int64(high)) {
			err = errRange
		}
		return N(n), err
	})
}

func number(into *float64, low, high float64) reader {
	return scalar(into, fmt.Sprintf("a number from %v to %v", low, high), func(text string) (float64, error) {
		n, err := strconv.ParseFloat(text, 64)
		if err == nil && !(n >= low && n <= high) {
			err = errRange
		}
		return n, err
	})
}

// maxSpan is the longest scenario: 10 years of virtual time.
const maxSpan = 3650 * 24 * time.Hour

func duration(into *time.Duration) reader {
	return scalar(into, "a duration such as 500ms, 30s, 5m or 7d", parseSpan)
}

func parseSpan(text string) (time.Duration, error) {
	d, err := sluice.ParseDuration(text)
	if err == nil && (d < 0 || d > maxSpan) {
		err = errRange
	}
	return d, err
}

func rate(into *sluice.Rate) reader {
	return scalar(into, "a rate such as 100/s, 500/5s or 20/m", func(text string) (sluice.Rate, error) {
		r, err := sluice.ParseRate(text)
		if err == nil && (r.IsZero() || r.PerSecond() > 1_000_000) {
			err = errRange
		}
		return r, err
	})
}

func instant(into *time.Time) reader {
	return scalar(into, "an instant with its zone, such as 2026-12-01T16:00:00Z", func(text string) (time.Time, error) {
		return time.Parse(time.RFC3339, text)
	})
}

// moment is a moment of a scenario: an instant, or a time since its start.
type moment struct {
	line  int
	at    time.Time
	after time.Duration
}

func (m *moment) read(n *yaml.Node) error {
	m.line = n.Line
	if n.Kind == yaml.ScalarNode {
		if at, err := time.Parse(time.RFC3339, n.Value); err == nil {
			m.at = at
			return nil
		}
	}
	return scalar(&m.after, "an instant with its zone, such as 2026-12-01T16:00:00Z, or a time from the start on, such as 30m", parseSpan)(n)
}

// since returns the moment as a time since the start.
func (m *moment) since(start time.Time) (time.Duration, error) {
	if m.at.IsZero() {
		return m.after, nil
	}
	d := m.at.Sub(start)
	if d < 0 || d > maxSpan {
		return 0, &Fault{m.line, fmt.Sprintf("%s is not within ten years from the start, %s", m.at.Format(time.RFC3339), start.Format(time.RFC3339))}
	}
	return d, nil
}

func pointer[T any](into **T, read func(*T) reader) reader {
	return func(n *yaml.Node) error {
		*into = new(T)
		return read(*into)(n)
	}
}
