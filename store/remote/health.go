package remote

import (
	"context"

	"github.com/sluice-queue/sluice/health"
)

var _ health.Store = (*Store)(nil)

// Health reports what the server finds of its store. A thorough look takes longer than a request may: a note says that it was
// not taken.
func (s *Store) Health(ctx context.Context, options health.Options) (health.Report, error) {
	var answer struct {
		Kind     string           `json:"kind"`
		Findings []health.Finding `json:"findings"`
		Metrics  []struct {
			Name  string  `json:"name"`
			Label string  `json:"label"`
			Of    string  `json:"of"`
			Value float64 `json:"value"`
			Unit  string  `json:"unit"`
		} `json:"metrics"`
	}
	q := params{}
	if options.Statements {
		q.text("statements", "true")
	}
	if err := s.call(ctx, request{verb: "read the health of the store", path: "/health", query: q.values(), out: &answer}); err != nil {
		return health.Report{}, err
	}
	report := health.Report{Kind: answer.Kind, Findings: answer.Findings}
	for _, m := range answer.Metrics {
		report.Metrics = append(report.Metrics, health.Metric{Name: m.Name, Label: health.Label{Name: m.Label, Value: m.Of}, Value: m.Value, Unit: m.Unit})
	}
	if options.Thorough {
		report.Findings = append(report.Findings, health.Finding{
			Check: "integrity", Well: true, Severity: health.SeverityNote, What: "not looked at: every page and every index, which takes longer than a request may",
			Why: "damage shows there alone", Repair: "sluice doctor --thorough beside the server, with --db sqlite:PATH or --db postgres://USER@HOST/DATABASE",
		})
	}
	return report, nil
}
