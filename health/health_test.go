package health_test

import (
	"context"
	"testing"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/health"
)

// silent is a store without a health report.
type silent struct{ sluice.Store }

// decorated is a store around another store.
type decorated struct {
	sluice.Store
	inner sluice.Store
}

func (d decorated) Unwrap() sluice.Store { return d.inner }

// telling is a store with a health report.
type telling struct{ sluice.Store }

func (telling) Health(_ context.Context, options health.Options) (health.Report, error) {
	report := health.Report{Kind: "telling"}
	if options.Thorough {
		report.Findings = []health.Finding{{Check: "depth", Severity: health.SeverityWarning}}
	}
	return report, nil
}

func (telling) HealthMetrics() []health.Metric {
	return []health.Metric{{Name: "writer_queue", Value: 3}, {Name: "dead_rows", Label: health.Label{Name: "table", Value: "live"}, Value: 7}}
}

func TestHealthIsFoundBehindDecorators(t *testing.T) {
	t.Parallel()
	twice := decorated{inner: decorated{inner: telling{}}}
	report, err := health.Of(t.Context(), twice, health.Options{Thorough: true})
	if err != nil || report.Kind != "telling" || !report.Ill() {
		t.Errorf("the health is %+v (%v), want that of the store behind two others", report, err)
	}
	report.Metrics = health.MetricsOf(twice)
	if queue, known := report.Metric("writer_queue", ""); queue != 3 || !known {
		t.Errorf("the figures are %+v, want those of the store behind two others", report.Metrics)
	}
	if rows, known := report.Metric("dead_rows", "live"); rows != 7 || !known {
		t.Errorf("dead_rows of live is %v, want 7", rows)
	}
	if _, known := report.Metric("dead_rows", "done"); known {
		t.Error("a figure is known that was never told")
	}
	for _, silent := range []sluice.Store{silent{}, decorated{inner: silent{}}, decorated{inner: decorated{inner: silent{}}}} {
		report, err := health.Of(t.Context(), silent, health.Options{})
		if err != nil || report.Kind != "" || report.Ill() || health.MetricsOf(silent) != nil {
			t.Errorf("a store that does not tell gives %+v (%v)", report, err)
		}
	}
}

func TestChecksJudgeByTheirLimits(t *testing.T) {
	t.Parallel()
	above := health.Check{Note: 1, Warning: 10, Error: 100}
	below := health.Check{Warning: 100, Error: 10, Below: true}
	for _, one := range []struct {
		check health.Check
		value float64
		want  health.Severity
	}{
		{above, 0.9, ""},
		{above, 1, health.SeverityNote},
		{above, 10, health.SeverityWarning},
		{above, 100, health.SeverityError},
		{below, 100, ""},
		{below, 99, health.SeverityWarning},
		{below, 9, health.SeverityError},
		{health.Check{}, 1e18, ""},
	} {
		if got := one.check.Judge(one.value); got != one.want {
			t.Errorf("%+v judges %v as %q, want %q", one.check, one.value, got, one.want)
		}
	}
	seen := make(map[string]bool)
	for _, c := range health.Checks() {
		if name := c.Kind + " " + c.Name; seen[name] || c.Name == "" || c.Looks == "" {
			t.Errorf("the check %+v is there twice, or does not say what it looks at", c)
		} else {
			seen[name] = true
		}
		if (c.Note > 0 || c.Warning > 0 || c.Error > 0) != (c.Figure != "") {
			t.Errorf("%s: a limit needs a figure, and a figure a limit", c.Name)
		}
	}
}
