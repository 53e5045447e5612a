package metric_test

import (
	"cmp"
	"flag"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/sluice-queue/sluice/cmd/metric"
	"github.com/sluice-queue/sluice/internal/docpart"
)

var update = flag.Bool("update", false, "write the generated parts of the docs")

func TestDocsListTheMetrics(t *testing.T) {
	const page = "../../docs/metrics.md"
	docpart.Check(t, *update,
		docpart.Part{Path: page, Name: "metrics", Text: metricsTable()},
		docpart.Part{Path: page, Name: "reasons", Text: reasonsTable()},
		docpart.Part{Path: page, Name: "sources", Text: sourceMetricsTable()},
	)
}

// metricsTable renders the metrics as docs/metrics.md shows them.
func metricsTable() string {
	var text strings.Builder
	text.WriteString("| metric | type | labels | meaning |\n| --- | --- | --- | --- |\n")
	for _, d := range metric.Names() {
		labels := "–"
		if len(d.Labels) > 0 {
			labels = "`" + strings.Join(d.Labels, "` `") + "`"
		}
		fmt.Fprintf(&text, "| `%s` | %s | %s | %s |\n", d.Name, d.Type, labels, d.Help)
	}
	return text.String()
}

func reasonsTable() string {
	var text strings.Builder
	text.WriteString("| reason | why |\n| --- | --- |\n")
	for _, r := range metric.Reasons() {
		fmt.Fprintf(&text, "| `%s` | %s |\n", r.Word, r.Meaning)
	}
	return text.String()
}

// sourceMetricsTable renders queries that stand for the metrics of the source designs.
func sourceMetricsTable() string {
	var text strings.Builder
	text.WriteString("| its name | query | what differs |\n| --- | --- | --- |\n")
	for _, s := range metric.SourceNames() {
		fmt.Fprintf(&text, "| %s | `%s` | %s |\n", s.Name, strings.ReplaceAll(s.Query, "|", `\|`), cmp.Or(s.Note, "–"))
	}
	return text.String()
}

// TestSourceMetricsAreOurs checks that the queries for the sources' metrics use only metrics that exist. Every number
// of the sources must have a query.
func TestSourceMetricsAreOurs(t *testing.T) {
	t.Parallel()
	known := make(map[string]bool)
	for _, d := range metric.Names() {
		known[d.Name] = true
	}
	part := regexp.MustCompile(`_(sum|count|bucket)$`)
	var sources []string
	for _, s := range metric.SourceNames() {
		sources = append(sources, s.Source)
		names := regexp.MustCompile(`sluice_\w+`).FindAllString(s.Query, -1)
		if len(names) == 0 {
			t.Errorf("%s asks for no metric", s.Name)
		}
		for _, name := range names {
			if !known[name] && !known[part.ReplaceAllString(name, "")] {
				t.Errorf("%s asks for %s, which there is not", s.Name, name)
			}
		}
	}
	all := strings.Join(sources, ", ")
	for _, number := range strings.Fields("A-73 A-74 A-75 A-76 A-77 A-78 A-79 B-25 B-26 B-27 B-28 C-65 C-66 C-67 C-68 D-14 D-57 D-58") {
		if !strings.Contains(all, number) {
			t.Errorf("%s is not mapped", number)
		}
	}
}
