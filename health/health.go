// Package health reports whether a store is well: figures, such as dead rows or the size of the write-ahead log, and findings
// that say why each matters and how to repair it. Begin with [Of]. [Checks] lists the checks and their limits; `sluice doctor`
// prints the findings.
package health

import (
	"context"
	"fmt"

	"github.com/sluice-queue/sluice"
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
	// Check is the name of the check; those of stores are in Checks.
	Check string `json:"check"`
	// Well says that there is nothing to mend. Notes are well.
	Well bool `json:"well"`
	// Severity is empty where there is nothing but good to say.
	Severity Severity `json:"severity,omitempty"`
	// What was seen, Why it matters, and the command or the statement that mends it.
	What   string `json:"what"`
	Why    string `json:"why,omitempty"`
	Repair string `json:"repair,omitempty"`
}

// Well is a finding with nothing but good to say.
func Well(check, format string, args ...any) Finding {
	return Finding{Check: check, Well: true, What: fmt.Sprintf(format, args...)}
}

// Label tells figures of the same name apart, such as by table. The zero value: there is one figure.
type Label struct {
	Name, Value string
}

// Figure is a figure of a store, by the name that its metric has without prefix.
type Figure struct {
	// Name is in snake_case, such as dead_rows.
	Name string
	// Label says of what it is, such as of a table.
	Label Label
	// Value is in Unit: seconds, bytes, rows, pages, transactions, connections; empty: a mere number, where 1 is on and
	// 0 is off.
	Value float64
	Unit  string
}

// Report is the health of a store.
type Report struct {
	// Kind of the store: postgres, sqlite or memory; empty: it does not tell of its health.
	Kind string
	// Figures in no particular order. One that is not known is not there.
	Figures []Figure
	// Findings in the order in which they are to be read.
	Findings []Finding
}

// Figure looks a figure up by its name and the value of its label, which is empty for a figure that has none.
func (h Report) Figure(name, label string) (value float64, known bool) {
	for _, f := range h.Figures {
		if f.Name == name && f.Label.Value == label {
			return f.Value, true
		}
	}
	return 0, false
}

// Ill reports whether there is something to mend.
func (h Report) Ill() bool {
	for _, f := range h.Findings {
		if !f.Well {
			return true
		}
	}
	return false
}

// Options say how closely to look. The zero value is cheap enough for every ten seconds.
type Options struct {
	// Statements names the slowest statements too, where the server keeps count of them.
	Statements bool
	// Thorough also reads every page of the store and checks it, which may take minutes; the caller's context bounds it.
	Thorough bool
}

// Store is the port of health: SQLite, PostgreSQL and memory implement it beside their sluice.Store.
type Store interface {
	// Health looks at the store by a bounded number of reads, each with a deadline. A look that fails is a finding;
	// it is an ErrUnavailable only where the store does not answer at all.
	Health(ctx context.Context, options Options) (Report, error)
}

// FigureStore is a store that has figures in memory.
type FigureStore interface {
	// HealthFigures gives what is known without asking the database. It may be called as often as you like.
	HealthFigures() []Figure
}

// Of examines a store, or the store that it decorates. A store without a health report gives the zero Report, no store (nil) a
// [sluice.ErrInvalid].
func Of(ctx context.Context, store sluice.Store, options Options) (Report, error) {
	if err := sluice.CheckGiven("store", store); err != nil {
		return Report{}, err
	}
	reporter, found := sluice.StoreAs[Store](store)
	if !found {
		return Report{}, nil
	}
	return reporter.Health(ctx, options)
}

// FiguresOf gives the figures that a store, or the one that it decorates, has in memory; nil: it has none.
func FiguresOf(store sluice.Store) []Figure {
	reporter, found := sluice.StoreAs[FigureStore](store)
	if !found {
		return nil
	}
	return reporter.HealthFigures()
}
