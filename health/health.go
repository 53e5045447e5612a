// Package health reports whether a store is well.
//
// Begin with [Of]. Its [Report] has figures, such as dead rows, and findings that say why each matters and how to
// repair it. [Checks] lists the checks and their limits. `sluice doctor` prints the findings.
//
// Read next: docs/guide/health.md.
package health

import (
	"context"
	"fmt"
	"slices"

	"github.com/sluice-queue/sluice"
)

// Severity says how much a finding matters.
type Severity string

// The severities.
const (
	// SeverityNote is worth knowing; nothing is wrong.
	SeverityNote Severity = "note"
	// SeverityWarning is wrong, and gets worse until somebody repairs it.
	SeverityWarning Severity = "warning"
	// SeverityError is wrong now: jobs are delayed, or may be lost.
	SeverityError Severity = "error"
	// SeverityCritical needs a person now, at night too. Only alerts have it.
	SeverityCritical Severity = "critical"
)

// Finding is the result of a check. If the store is not well, Why and Repair say why it matters and how to repair
// it.
type Finding struct {
	// Check is the name of the check; see [Checks].
	Check string `json:"check"`
	// Well says that there is nothing to repair. A note is well too.
	Well bool `json:"well"`
	// Severity is empty if the check found nothing to report.
	Severity Severity `json:"severity,omitempty"`
	// The observation is in What, its consequence in Why, and the command or the statement that repairs it in
	// Repair.
	What   string `json:"what"`
	Why    string `json:"why,omitempty"`
	Repair string `json:"repair,omitempty"`
}

// Well returns a finding with nothing to report.
func Well(check, format string, args ...any) Finding {
	return Finding{Check: check, Well: true, What: fmt.Sprintf(format, args...)}
}

// Label tells metrics of the same name apart, such as by table. The zero value: there is one figure.
type Label struct {
	Name, Value string
}

// Metric is a figure of a store. Its name is the name of the metric without the prefix.
type Metric struct {
	// Name is in snake_case, such as dead_rows.
	Name string
	// Label names the measured part, such as a table.
	Label Label
	// Value is the value in Unit: seconds, bytes, rows, pages, transactions or connections. Unit empty: a plain
	// number, or 1 for on and 0 for off.
	Value float64
	Unit  string
}

// Report is the health of a store.
type Report struct {
	// Kind is the kind of store: postgres, sqlite or memory. Empty: the store does not report its health.
	Kind string
	// Metrics are in no particular order. An unknown metric is missing.
	Metrics []Metric
	// Findings are in the order in which to read them.
	Findings []Finding
}

// Metric returns a figure by its name and the value of its label. The label is empty for a figure without one.
func (h Report) Metric(name, label string) (value float64, known bool) {
	for _, f := range h.Metrics {
		if f.Name == name && f.Label.Value == label {
			return f.Value, true
		}
	}
	return 0, false
}

// Ill reports whether there is something to repair.
func (h Report) Ill() bool {
	for _, f := range h.Findings {
		if !f.Well {
			return true
		}
	}
	return false
}

// Options says how closely to examine a store. The zero value is cheap enough for every 10 s.
type Options struct {
	// Statements adds the slowest statements, if the server records them. Default: false.
	Statements bool
	// Only is the name of the one check to run; see [Checks]. Default: all.
	Only string
	// Thorough also reads and checks every page of the store, which may take minutes; use ctx to bound it. Default:
	// false.
	Thorough bool
}

// Store is the port of health. SQLite, PostgreSQL and memory implement it beside sluice.Store.
type Store interface {
	// Health examines the store by a bounded number of reads, each with a deadline. A failed read is a finding. If
	// the store does not answer at all, the error is an ErrUnavailable.
	Health(ctx context.Context, options Options) (Report, error)
}

// MetricStore is a store with metrics in memory.
type MetricStore interface {
	// HealthFigures returns the metrics that need no call to the database. It is cheap.
	HealthMetrics() []Metric
}

// Of examines a store, through decorators too. A store without a health report returns the zero Report. A nil store
// is a [sluice.ErrInvalid].
func Of(ctx context.Context, store sluice.Store, options Options) (Report, error) {
	if err := sluice.CheckGiven("store", store); err != nil {
		return Report{}, err
	}
	reporter, found := sluice.StoreAs[Store](store)
	if !found {
		return Report{}, nil
	}
	report, err := reporter.Health(ctx, options)
	if options.Only != "" {
		report.Findings = slices.DeleteFunc(report.Findings, func(f Finding) bool { return f.Check != options.Only })
	}
	return report, err
}

// MetricsOf returns the metrics that a store has in memory, through decorators too. Nil: it has none.
func MetricsOf(store sluice.Store) []Metric {
	reporter, found := sluice.StoreAs[MetricStore](store)
	if !found {
		return nil
	}
	return reporter.HealthMetrics()
}
