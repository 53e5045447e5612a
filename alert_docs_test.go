package sluice_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sluice-queue/sluice/alert"
	"github.com/sluice-queue/sluice/health"
	"github.com/sluice-queue/sluice/internal/event"
)

// alertPresetsTable lists the presets: the condition, how long it must hold, its severity and the place that shows it.
func alertPresetsTable() string {
	var text strings.Builder
	text.WriteString("| rule | fires when | for | severity | looked at in | needs |\n| --- | --- | --- | --- | --- | --- |\n")
	for _, r := range alert.Presets() {
		metric, err := alert.MetricNamed(r.Metric)
		if err != nil {
			panic(err)
		}
		condition := "`" + r.Metric + "` " + strings.NewReplacer("<", "&lt;", ">", "&gt;").Replace(r.Op) + " " + alertField(r, "threshold") + unitOf(metric)
		if r.RateShare > 0 {
			condition += fmt.Sprintf(", or %g of the queue's rate", r.RateShare)
		}
		if metric.Windowed {
			condition += ", over " + alertField(r, "window")
		}
		needs := "–"
		if metric.NeedsStatistics() {
			needs = "[statistics](guide/statistics.md#where-nobody-counts)"
		}
		fmt.Fprintf(&text, "| [`%s`](#%s) | %s | %s | %s | %s | %s |\n", r.Name, r.Name, condition, alertField(r, "for"), r.Severity, r.Covers.Describe(), needs)
	}
	return text.String()
}

func alertField(r alert.Rule, name string) string {
	f, err := alert.FieldNamed(name)
	if err != nil {
		panic(err)
	}
	return f.Format(r)
}

func unitOf(metric alert.Metric) string {
	return map[string]string{"seconds": " s", "per second": " a second", "bytes": " bytes"}[metric.Unit]
}

// command finds a command at the end of a runbook's line.
var command = regexp.MustCompile(`(?m)(: )((?:sluice|select|alter|vacuum|sqlite3|timedatectl) .*)$`)

// alertRunbooks lists each preset with its meaning and the steps of its runbook.
func alertRunbooks() string {
	var text strings.Builder
	for _, r := range alert.Presets() {
		fmt.Fprintf(&text, "### %s\n\n%s%s.\n\n", r.Name, strings.ToUpper(r.Summary[:1]), r.Summary[1:])
		for _, line := range strings.Split(r.Runbook, "\n") {
			fmt.Fprintf(&text, "- %s\n", command.ReplaceAllString(line, "$1`$2`"))
		}
		text.WriteString("\n")
	}
	return strings.TrimSuffix(text.String(), "\n")
}

// pagedRules lists the presets that need a person now.
func pagedRules() string {
	var text strings.Builder
	text.WriteString("| rule | fires when |\n| --- | --- |\n")
	for _, r := range alert.Presets() {
		if r.Severity == health.SeverityCritical {
			fmt.Fprintf(&text, "| [`%s`](../alerts.md#%s) | %s |\n", r.Name, r.Name, r.Summary)
		}
	}
	return text.String()
}

// TestGuidesPageOnAlertsAndNotOnALevel refuses advice to page on the level ERROR, which attempts that are retried also
// use. It also checks the log lines that the guide names instead.
func TestGuidesPageOnAlertsAndNotOnALevel(t *testing.T) {
	t.Parallel()
	advice := regexp.MustCompile(`(?i)\b(alert|alerts? belongs?|page) on (the level )?ERROR`)
	for _, pattern := range []string{"README.md", "docs/*.md", "docs/guide/*.md", "deploy/*.md"} {
		paths, err := filepath.Glob(pattern)
		if err != nil || len(paths) == 0 {
			t.Fatalf("%s: %v, %v", pattern, paths, err)
		}
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if found := advice.Find(text); found != nil {
				t.Errorf("%s says %q", path, found)
			}
		}
	}
	text, err := os.ReadFile("docs/guide/production.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(text), "### What to page on\n")
	if !found {
		t.Fatal("the guide does not say what to page on")
	}
	section, _, _ = strings.Cut(section, "\n## ")
	for _, name := range regexp.MustCompile("(?:lines?|and|,) `([a-z]+ [a-z ]+)`").FindAllStringSubmatch(section, -1) {
		if !slices.ContainsFunc(event.All(), func(e *event.Event) bool { return e.Name == name[1] }) {
			t.Errorf("the guide names a line %q, which nobody writes", name[1])
		}
	}
}
