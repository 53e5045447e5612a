package remote

import (
	"context"
	"errors"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/health"
	"github.com/sluice-queue/sluice/internal/wire"
)

var (
	_ health.Store            = (*Store)(nil)
	_ health.ServerMaintainer = (*Store)(nil)
)

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
	if err := s.call(ctx, request{verb: "read the health of the store", path: "/health", out: &answer}); err != nil {
		return health.Report{}, err
	}
	report := health.Report{Kind: answer.Kind, Findings: answer.Findings}
	for _, m := range answer.Metrics {
		report.Metrics = append(report.Metrics, health.Metric{Name: m.Name, Label: health.Label{Name: m.Label, Value: m.Of}, Value: m.Value, Unit: m.Unit})
	}
	if options.Statements {
		found, err := s.statements(ctx)
		if err != nil {
			return health.Report{}, err
		}
		report.Findings = append(report.Findings, found...)
	}
	if options.Thorough {
		report.Findings = append(report.Findings, health.Finding{
			Check: "integrity", Well: true, Severity: health.SeverityNote, What: "not looked at: every page and every index, which takes longer than a request may",
			Why: "damage shows there alone", Repair: "sluice doctor --thorough beside the server, with --db sqlite:PATH or --db postgres://USER@HOST/DATABASE",
		})
	}
	return report, nil
}

// statements lists the slowest statements, if the role of the token may see them.
func (s *Store) statements(ctx context.Context) ([]health.Finding, error) {
	var answer struct {
		Findings []health.Finding `json:"findings"`
	}
	err := s.call(ctx, request{verb: "list the slowest statements", path: "/health/statements", out: &answer})
	if errors.Is(err, ErrRefused) {
		return []health.Finding{{
			Check: "statements", Well: true, Severity: health.SeverityNote, What: "not looked at: the role of the token may not see statements",
			Why: "they may tell of other people's data", Repair: "a token of an operator",
		}}, nil
	}
	return answer.Findings, err
}

// MaintainThere has the server carry out a task of maintenance.
func (s *Store) MaintainThere(ctx context.Context, task health.Task, dryRun bool, act sluice.Act) (out health.Maintained, err error) {
	err = s.call(ctx, posting("maintain the store", "/maintenance/"+string(task), &act, wire.MaintainBody{DryRun: dryRun, ReasonBody: why(act)}, &out))
	return out, err
}
