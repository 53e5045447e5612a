// Package checkup holds the parts of a health check that all stores share: the report, the texts
// for people and the thresholds.
//
// Begin with [Report]: the Health method of a store adds findings with Find and Well, and figures
// with Figure. [Checks] returns the thresholds of a kind of store.
//
// Read next: docs/guide/health.md for the checks, and the files health*.go of packages sqlite and
// postgres.
package checkup

import (
	"github.com/sluice-queue/sluice/health"
)

// Report is the result of a health check so far.
type Report struct{ Health health.Report }

// Find adds a problem with its effect and its remedy. A finding with the severity note counts as
// healthy.
func (r *Report) Find(severity health.Severity, check, what, why, mend string) {
	r.Health.Findings = append(r.Health.Findings, health.Finding{
		Check: check, Well: severity == health.SeverityNote, Severity: severity, What: what, Why: why, Repair: mend,
	})
}

// Well adds that a check has found no problem.
func (r *Report) Well(check, format string, args ...any) {
	r.Health.Findings = append(r.Health.Findings, health.Well(check, format, args...))
}

// Figure adds a figure that exists once.
func (r *Report) Figure(name string, value float64, unit string) {
	r.MetricOf(name, "", "", value, unit)
}

// MetricOf adds one of several figures of the same name, with the label that distinguishes them.
func (r *Report) MetricOf(name, label, of string, value float64, unit string) {
	r.Health.Metrics = append(r.Health.Metrics, health.Metric{
		Name: name, Label: health.Label{Name: label, Value: of}, Value: value, Unit: unit,
	})
}

// Checks returns the health checks of a kind of store, by name.
func Checks(kind string) map[string]health.Check {
	checks := make(map[string]health.Check)
	for _, c := range health.Checks() {
		if c.Kind == kind {
			checks[c.Name] = c
		}
	}
	return checks
}
