package report_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/sluice-queue/sluice/bench/report"
)

func example() report.Report {
	return report.Report{
		Date:     time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		Machine:  []report.Fact{{Name: "Cores", Value: "2"}},
		Versions: []report.Fact{{Name: "Go", Value: "1.26"}},
		Method:   "- Taken in turns.\n",
		Columns:  []report.Column{{Key: "rate", Title: "jobs/s"}, {Key: "p50", Title: "p50 ms", Decimals: 2}, {Key: "none", Title: "unused"}},
		Sections: []report.Section{
			{
				Name: "work", Title: "Work", Method: "All are worked off.", Ratio: "against the best.", Rounds: 2,
				Rows: []report.Row{
					{System: "ours", Jobs: 100_000, Figures: map[string]float64{"rate": 1234567}, Ratio: 2},
					{System: "theirs", Jobs: 999, Figures: map[string]float64{"rate": 10}, Ratio: math.NaN()},
				},
				Targets: []report.Target{{Text: "twice as fast", Limit: 2, Unit: "×", Value: 2, Low: 1.5, High: 2.5}},
			},
			{
				Name: "wait", Title: "Wait", Method: "All wait.", Ratio: "none.", Rounds: 1,
				Rows:    []report.Row{{System: "ours", Figures: map[string]float64{"p50": 7.125}, Ratio: 1}},
				Targets: []report.Target{{Text: "soon", Limit: 5, AtMost: true, Unit: " ms", Value: 7.125, Low: 7.125, High: 7.125}},
			},
		},
	}
}

func TestTextIsOneTableAndTheTargets(t *testing.T) {
	t.Parallel()
	const want = `scenario  system     jobs     jobs/s  p50 ms  ratio
work      ours    100,000  1,234,567           2.00
          theirs      999         10
wait      ours                          7.12   1.00

ratio in work: against the best.
ratio in wait: none.

scenario  target                wanted  measured         range  met
work      twice as fast  at least 2.0×     2.00×  1.50 to 2.50  yes
wait      soon           at most 5.0 ms   7.12 ms  7.12 to 7.12  **no**
`
	got := example().Text()
	// The widths of the last table depend on its longest cells, so the test ignores blanks.
	if squeezed(got) != squeezed(want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func squeezed(text string) string {
	var out []string
	for _, line := range strings.Split(text, "\n") {
		out = append(out, strings.Join(strings.Fields(line), " "))
	}
	return strings.Join(out, "\n")
}

func TestMarkdownTablesHaveTheirColumnsEverywhere(t *testing.T) {
	t.Parallel()
	text := example().Markdown()
	for _, want := range []string{
		"Measured on 2026-01-02: `cd bench && go run . -only work`.", "## Machine", "## Versions", "- Taken in turns.",
		"All are worked off. Rounds: 2.", "| system |    jobs |    jobs/s | ratio |", "Ratio: against the best.",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q:\n%s", want, text)
		}
	}
	columns := 0
	for _, line := range strings.Split(text, "\n") {
		if !strings.HasPrefix(line, "|") {
			columns = 0
			continue
		}
		if n := strings.Count(line, "|"); columns == 0 {
			columns = n
		} else if n != columns {
			t.Errorf("a row has %d bars, and the head %d: %s", n, columns, line)
		}
	}
}

func TestMergeReplacesWhatWasMeasuredAgain(t *testing.T) {
	t.Parallel()
	whole := example()
	whole.Sections[0].Note = "Which is twice as fast."
	page := whole.Markdown()
	again := example()
	again.Date = again.Date.AddDate(0, 1, 0)
	again.Versions = []report.Fact{{Name: "Go", Value: "1.27"}, {Name: "PostgreSQL", Value: "15"}}
	again.Sections = again.Sections[1:]
	again.Sections[0].Rows[0].Figures["p50"] = 3
	again.Sections[0].Targets[0].Value = 3
	again.Sections = append(again.Sections, report.Section{Name: "new", Title: "New", Method: "As before.", Ratio: "none."})
	got := report.Merge(page, again)
	for want, times := range map[string]int{
		"## Work": 1, "## Wait": 1, "## New": 1, "## Machine": 1, "7.12 to 7.12": 1, "| work     |": 1, "| wait     |": 1,
		"Which is twice as fast.": 1, "Measured on 2026-01-02": 1, "Measured on 2026-02-02": 2, "1.26 ": 0, "1.27": 1, "| PostgreSQL |": 1,
	} {
		if n := strings.Count(got, want); n != times {
			t.Errorf("the page has %q %d times instead of %d:\n%s", want, n, times, got)
		}
	}
	if again := report.Merge(got, again); again != got {
		t.Errorf("merging twice changes the page to:\n%s", again)
	}
	if report.Merge("", whole) != page {
		t.Error("an empty page is not written anew")
	}
}

func TestTargets(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		target report.Target
		met    bool
	}{
		"at least: more is met":      {report.Target{Limit: 2, Value: 3}, true},
		"at least: less is not":      {report.Target{Limit: 2, Value: 1.9}, false},
		"at most: less is met":       {report.Target{Limit: 2, Value: 1, AtMost: true}, true},
		"at most: more is not":       {report.Target{Limit: 2, Value: 3, AtMost: true}, false},
		"what was not measured":      {report.Target{Limit: 2, Value: math.NaN()}, false},
		"at most, and not measured":  {report.Target{Limit: 2, Value: math.NaN(), AtMost: true}, false},
		"the limit itself is enough": {report.Target{Limit: 2, Value: 2}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := c.target.Met(); got != c.met {
				t.Errorf("met: %v", got)
			}
		})
	}
}

func TestMachineIsDescribed(t *testing.T) {
	t.Parallel()
	facts, err := report.Machine(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, fact := range facts {
		if fact.Name == "" || fact.Value == "" {
			t.Errorf("an empty fact: %+v", facts)
		}
	}
}
