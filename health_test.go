package sluice_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
)

// decorated is a store around another one.
// silent is a store that does not tell of its health.
type silent struct{ sluice.Store }

type decorated struct {
	sluice.Store
	inner sluice.Store
}

func (d decorated) Unwrap() sluice.Store { return d.inner }

// telling is a store that tells of its health.
type telling struct{ sluice.Store }

func (telling) Health(_ context.Context, options sluice.HealthOptions) (sluice.Health, error) {
	health := sluice.Health{Kind: "telling"}
	if options.Thorough {
		health.Findings = []sluice.Finding{{Check: "depth", Severity: sluice.SeverityWarning}}
	}
	return health, nil
}

func (telling) HealthFigures() []sluice.HealthFigure {
	return []sluice.HealthFigure{{Name: "writer_queue", Value: 3}, {Name: "dead_rows", Label: sluice.HealthLabel{Name: "table", Value: "live"}, Value: 7}}
}

func TestHealthIsFoundBehindDecorators(t *testing.T) {
	t.Parallel()
	twice := decorated{inner: decorated{inner: telling{}}}
	health, err := sluice.HealthOf(t.Context(), twice, sluice.HealthOptions{Thorough: true})
	if err != nil || health.Kind != "telling" || !health.Ill() {
		t.Errorf("the health is %+v (%v), want that of the store behind two others", health, err)
	}
	health.Figures = sluice.HealthFiguresOf(twice)
	if queue, known := health.Figure("writer_queue", ""); queue != 3 || !known {
		t.Errorf("the figures are %+v, want those of the store behind two others", health.Figures)
	}
	if rows, known := health.Figure("dead_rows", "live"); rows != 7 || !known {
		t.Errorf("dead_rows of live is %v, want 7", rows)
	}
	if _, known := health.Figure("dead_rows", "done"); known {
		t.Error("a figure is known that was never told")
	}
	for _, silent := range []sluice.Store{silent{}, decorated{inner: silent{}}, decorated{inner: decorated{inner: silent{}}}} {
		health, err := sluice.HealthOf(t.Context(), silent, sluice.HealthOptions{})
		if err != nil || health.Kind != "" || health.Ill() || sluice.HealthFiguresOf(silent) != nil {
			t.Errorf("a store that does not tell gives %+v (%v)", health, err)
		}
	}
}

func TestChecksJudgeByTheirLimits(t *testing.T) {
	t.Parallel()
	above := sluice.HealthCheck{Note: 1, Warning: 10, Error: 100}
	below := sluice.HealthCheck{Warning: 100, Error: 10, Below: true}
	for _, one := range []struct {
		check sluice.HealthCheck
		value float64
		want  sluice.Severity
	}{
		{above, 0.9, ""},
		{above, 1, sluice.SeverityNote},
		{above, 10, sluice.SeverityWarning},
		{above, 100, sluice.SeverityError},
		{below, 100, ""},
		{below, 99, sluice.SeverityWarning},
		{below, 9, sluice.SeverityError},
		{sluice.HealthCheck{}, 1e18, ""},
	} {
		if got := one.check.Judge(one.value); got != one.want {
			t.Errorf("%+v judges %v as %q, want %q", one.check, one.value, got, one.want)
		}
	}
	seen := make(map[string]bool)
	for _, c := range sluice.HealthChecks() {
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

// healthTable is the docs' table of what the stores look at.
func healthTable() string {
	var text strings.Builder
	text.WriteString("| store | check | looks at | figure | note | warning | error | besides |\n| --- | --- | --- | --- | --- | --- | --- | --- |\n")
	for _, c := range sluice.HealthChecks() {
		figure := ""
		if c.Figure != "" {
			figure = "`" + c.Figure + "`"
		}
		limit := func(value float64) string { return limitText(c, value) }
		fmt.Fprintf(&text, "| %s | %s | %s | %s | %s | %s | %s | %s |\n", c.Kind, c.Name, c.Looks, figure, limit(c.Note), limit(c.Warning), limit(c.Error), c.Otherwise)
	}
	return text.String()
}

func limitText(c sluice.HealthCheck, value float64) string {
	if value == 0 {
		return ""
	}
	text := fmt.Sprintf("%.0f %s", value, c.Unit)
	switch {
	case c.Unit == "":
		text = fmt.Sprintf("%.0f %%", 100*value)
	case c.Unit == "seconds":
		text = time.Duration(value * float64(time.Second)).String()
		for _, none := range []string{"m0s", "h0m"} {
			if strings.HasSuffix(text, none) {
				text = text[:len(text)-2]
			}
		}
	case c.Unit == "bytes" && value >= 1<<30:
		text = fmt.Sprintf("%.0f GiB", value/(1<<30))
	case c.Unit == "bytes":
		text = fmt.Sprintf("%.0f MiB", value/(1<<20))
	case value >= 1e6:
		text = fmt.Sprintf("%.0f million %s", value/1e6, c.Unit)
	}
	if c.Below {
		return "below " + text
	}
	return text
}
