package export_test

import (
	"flag"
	"fmt"
	"strings"
	"testing"

	"github.com/sluice-queue/sluice/alert"
	"github.com/sluice-queue/sluice/cmd/internal/export"
	"github.com/sluice-queue/sluice/internal/docpart"
)

var update = flag.Bool("update", false, "write the generated parts of the docs")

func TestDocsNameTheMetricsOfRules(t *testing.T) {
	docpart.Check(t, *update, docpart.Part{Path: "../../../docs/alerts.md", Name: "metrics", Text: alertMetricsTable()})
}

func alertMetricsTable() string {
	var text strings.Builder
	text.WriteString("| metric | of | unit | meaning | in Prometheus |\n| --- | --- | --- | --- | --- |\n")
	for _, m := range alert.Metrics() {
		of, differs := "the store", export.Differs(m.Name)
		if m.OfQueue {
			of = "a queue"
		}
		if m.Windowed {
			of += ", over a window"
		}
		if differs == "" {
			differs = "the same"
		}
		fmt.Fprintf(&text, "| `%s` | %s | %s | %s | %s |\n", m.Name, of, m.Unit, m.Meaning, differs)
	}
	return text.String()
}
