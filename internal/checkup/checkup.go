// Package checkup is what the examinations of all stores write down alike, for people and as figures.
package checkup

import (
	"github.com/sluice-queue/sluice/health"
)

// Report is what an examination has found so far.
type Report struct{ Health health.Report }

// Find adds what is to be mended; a note is well all the same.
func (r *Report) Find(severity health.Severity, check, what, why, mend string) {
	r.Health.Findings = append(r.Health.Findings, health.Finding{
		Check: check, Well: severity == health.SeverityNote, Severity: severity, What: what, Why: why, Mend: mend,
	})
}

// Well adds that a check has found nothing to mend.
func (r *Report) Well(check, format string, args ...any) {
	r.Health.Findings = append(r.Health.Findings, health.Well(check, format, args...))
}

// Figure adds a figure of which there is one.
func (r *Report) Figure(name string, value float64, unit string) {
	r.FigureOf(name, "", "", value, unit)
}

// FigureOf adds one of several figures of the same name, which a label tells apart.
func (r *Report) FigureOf(name, label, of string, value float64, unit string) {
	r.Health.Figures = append(r.Health.Figures, health.Figure{
		Name: name, Label: health.Label{Name: label, Value: of}, Value: value, Unit: unit,
	})
}

// Checks gives what a kind of store is judged by, by name.
func Checks(kind string) map[string]health.Check {
	checks := make(map[string]health.Check)
	for _, c := range health.Checks() {
		if c.Kind == kind {
			checks[c.Name] = c
		}
	}
	return checks
}
