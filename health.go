package sluice

import (
	"context"
	"fmt"
)

// Severity says how much a finding matters.
type Severity string

// The severities.
const (
	// SeverityNote is worth knowing; nothing is wrong.
	SeverityNote Severity = "note"
	// SeverityWarning is wrong, and gets worse if nobody mends it.
	SeverityWarning Severity = "warning"
	// SeverityError is wrong now: jobs are held up, or may be lost.
	SeverityError Severity = "error"
	// SeverityCritical wants somebody now, at night too. Only alerts have it.
	SeverityCritical Severity = "critical"
)

// Finding is what a check has seen. One that is not well says why it matters and what mends it.
type Finding struct {
	// Check is the name of the check; those of stores are HealthChecks.
	Check string `json:"check"`
	// Well says that there is nothing to mend. Notes are well.
	Well bool `json:"well"`
	// Severity is empty where there is nothing but good to say.
	Severity Severity `json:"severity,omitempty"`
	// What was seen, Why it matters, and the command or the statement that mends it.
	What string `json:"what"`
	Why  string `json:"why,omitempty"`
	Mend string `json:"mend,omitempty"`
}

// WellFound is a finding with nothing but good to say.
func WellFound(check, format string, args ...any) Finding {
	return Finding{Check: check, Well: true, What: fmt.Sprintf(format, args...)}
}

// HealthLabel tells figures of the same name apart, such as by table. The zero value: there is one figure.
type HealthLabel struct {
	Name, Value string
}

// HealthFigure is a figure of a store, by the name that its metric has without prefix.
type HealthFigure struct {
	// Name is in snake_case, such as dead_rows.
	Name string
	// Label says of what it is, such as of a table.
	Label HealthLabel
	// Value is in Unit: seconds, bytes, rows, pages, transactions, connections; empty: a mere number, where 1 is on and
	// 0 is off.
	Value float64
	Unit  string
}

// Health is how a store is.
type Health struct {
	// Kind of the store: postgres, sqlite or memory; empty: it does not tell of its health.
	Kind string
	// Figures in no particular order. One that is not known is not there.
	Figures []HealthFigure
	// Findings in the order in which they are to be read.
	Findings []Finding
}

// Figure looks a figure up by its name and the value of its label, which is empty for a figure that has none.
func (h Health) Figure(name, label string) (value float64, known bool) {
	for _, f := range h.Figures {
		if f.Name == name && f.Label.Value == label {
			return f.Value, true
		}
	}
	return 0, false
}

// Ill reports whether there is something to mend.
func (h Health) Ill() bool {
	for _, f := range h.Findings {
		if !f.Well {
			return true
		}
	}
	return false
}

// HealthOptions say how closely to look. The zero value is cheap enough for every ten seconds.
type HealthOptions struct {
	// Statements names the slowest statements too, where the server keeps count of them.
	Statements bool
	// Thorough also reads every page of the store and checks it, which may take minutes; the caller's context bounds it.
	Thorough bool
}

// HealthReporter is a Store that can tell of its health.
type HealthReporter interface {
	// Health looks at the store by a bounded number of reads, each with a deadline. A look that fails is a finding;
	// it is an ErrUnavailable only where the store does not answer at all.
	Health(ctx context.Context, options HealthOptions) (Health, error)
}

// FigureReporter is a Store that has figures in memory.
type FigureReporter interface {
	// HealthFigures gives what is known without asking the database. It may be called as often as you like.
	HealthFigures() []HealthFigure
}

// HealthOf asks a store, or the one that it decorates, of its health. One that cannot tell gives the zero Health.
func HealthOf(ctx context.Context, store Store, options HealthOptions) (Health, error) {
	reporter, found := StoreAs[HealthReporter](GivenStore(store))
	if !found {
		return Health{}, nil
	}
	return reporter.Health(ctx, options)
}

// HealthFiguresOf gives the figures that a store, or the one that it decorates, has in memory; nil: it has none.
func HealthFiguresOf(store Store) []HealthFigure {
	reporter, found := StoreAs[FigureReporter](store)
	if !found {
		return nil
	}
	return reporter.HealthFigures()
}
