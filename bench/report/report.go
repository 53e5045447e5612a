// Package report writes results as a table for a terminal and as a Markdown page.
package report

import (
	"fmt"
	"math"
	"strings"
	"time"
	"unicode/utf8"
)

// Fact is a line such as "CPU: …".
type Fact struct{ Name, Value string }

// Column is a column of the tables.
type Column struct {
	// Key is the column's key in [Row].Figures.
	Key   string
	Title string
	// Decimals is the number of digits after the point.
	Decimals int
}

// Row holds the results of one system.
type Row struct {
	System string
	// Jobs is the number of given jobs; 0: the cell ran for a time, not for a number of jobs.
	Jobs    int
	Figures map[string]float64
	// Ratio is the ratio that [Section].Ratio explains; NaN: none.
	Ratio float64
}

// Target is a goal with its measured value.
type Target struct {
	Text string
	// Limit is the bound of Value: an upper bound with AtMost, else a lower bound.
	Limit  float64
	AtMost bool
	// Unit follows the figures, such as " ms".
	Unit string
	// Value is the median over the rounds, Low and High the range of the rounds.
	Value, Low, High float64
}

// Met reports whether the target was reached.
func (t Target) Met() bool {
	if t.AtMost {
		return t.Value <= t.Limit
	}
	return t.Value >= t.Limit
}

// Section holds the results of one scenario.
type Section struct {
	Name   string
	Title  string
	Method string
	// Ratio explains the ratios of the rows.
	Ratio  string
	Rounds int
	// Note is Markdown below the table; empty: none.
	Note    string
	Rows    []Row
	Targets []Target
}

// Report holds all results of a run.
type Report struct {
	Date     time.Time
	Machine  []Fact
	Versions []Fact
	Method   string
	Columns  []Column
	Sections []Section
}

// Text returns one table of all sections, the meaning of the ratios, and the targets.
func (r Report) Text() string {
	table := grid{right: []bool{false, false, true}}
	head := []string{"scenario", "system", "jobs"}
	columns := r.used(r.Sections)
	for _, c := range columns {
		head = append(head, c.Title)
		table.right = append(table.right, true)
	}
	table.right = append(table.right, true)
	table.add(append(head, "ratio")...)
	for _, s := range r.Sections {
		for i, row := range s.Rows {
			name := ""
			if i == 0 {
				name = s.Name
			}
			table.add(append([]string{name}, cells(row, columns)...)...)
		}
	}
	var out strings.Builder
	out.WriteString(table.text())
	out.WriteString("\n")
	for _, s := range r.Sections {
		fmt.Fprintf(&out, "ratio in %s: %s\n", s.Name, s.Ratio)
	}
	out.WriteString("\n")
	out.WriteString(r.targets(r.Sections).text())
	return out.String()
}

// Markdown returns the page.
func (r Report) Markdown() string {
	var out strings.Builder
	out.WriteString("# Benchmarks\n\n`bench` writes this page; do not edit it. Each scenario names its date and command.\n\n")
	writeFacts(&out, "Machine", r.Machine)
	writeFacts(&out, "Versions", r.Versions)
	fmt.Fprintf(&out, "## Method\n\n%s\n", strings.TrimSpace(r.Method))
	out.WriteString("\n## Targets\n\n" + r.targets(r.Sections).markdown())
	for _, s := range r.Sections {
		r.writeSection(&out, s)
	}
	return out.String()
}

func writeFacts(out *strings.Builder, title string, facts []Fact) {
	fmt.Fprintf(out, "## %s\n\n", title)
	table := grid{right: []bool{false, false}}
	table.add("", "")
	for _, f := range facts {
		table.add(f.Name, f.Value)
	}
	out.WriteString(table.markdown() + "\n")
}

func (r Report) writeSection(out *strings.Builder, s Section) {
	fmt.Fprintf(out, "\n## %s\n\n%s Rounds: %d.\n\n", s.Title, strings.TrimSpace(s.Method), s.Rounds)
	columns := r.used([]Section{s})
	table := grid{right: []bool{false, true}}
	head := []string{"system", "jobs"}
	for _, c := range columns {
		head = append(head, c.Title)
		table.right = append(table.right, true)
	}
	table.right = append(table.right, true)
	table.add(append(head, "ratio")...)
	for _, row := range s.Rows {
		table.add(cells(row, columns)...)
	}
	fmt.Fprintf(out, "%s\nRatio: %s\n", table.markdown(), s.Ratio)
	if s.Note != "" {
		fmt.Fprintf(out, "\n%s\n", strings.TrimSpace(s.Note))
	}
	fmt.Fprintf(out, "\nMeasured on %s: `cd bench && go run . -only %s`.\n", r.Date.UTC().Format("2006-01-02"), s.Name)
}

// used returns the columns that have a figure in the sections.
func (r Report) used(sections []Section) []Column {
	var out []Column
	for _, c := range r.Columns {
		if hasFigure(sections, c.Key) {
			out = append(out, c)
		}
	}
	return out
}

func hasFigure(sections []Section, key string) bool {
	for _, s := range sections {
		for _, row := range s.Rows {
			if _, has := row.Figures[key]; has {
				return true
			}
		}
	}
	return false
}

func cells(row Row, columns []Column) []string {
	jobs := number(float64(row.Jobs), 0)
	if row.Jobs == 0 {
		jobs = ""
	}
	out := []string{row.System, jobs}
	for _, c := range columns {
		value, has := row.Figures[c.Key]
		if !has {
			value = math.NaN()
		}
		out = append(out, number(value, c.Decimals))
	}
	return append(out, number(row.Ratio, 2))
}

func (r Report) targets(sections []Section) *grid {
	table := &grid{right: []bool{false, false, true, true, true, false}}
	table.add("scenario", "target", "wanted", "measured", "range", "met")
	for _, s := range sections {
		for _, t := range s.Targets {
			side, met := "at least ", "**no**"
			if t.AtMost {
				side = "at most "
			}
			if t.Met() {
				met = "yes"
			}
			table.add(s.Name, t.Text, side+number(t.Limit, limitDecimals(t.Limit))+t.Unit, number(t.Value, 2)+t.Unit,
				number(t.Low, 2)+" to "+number(t.High, 2), met)
		}
	}
	return table
}

// limitDecimals returns 2 for bounds such as 0.75, which one decimal would round; else 1.
func limitDecimals(limit float64) int {
	if 10*limit != math.Trunc(10*limit) {
		return 2
	}
	return 1
}

// number formats a figure with commas between the thousands; NaN gives "".
func number(value float64, decimals int) string {
	if math.IsNaN(value) {
		return ""
	}
	text := fmt.Sprintf("%.*f", decimals, value)
	whole, rest := text, ""
	if point := strings.IndexByte(text, '.'); point >= 0 {
		whole, rest = text[:point], text[point:]
	}
	sign := ""
	if strings.HasPrefix(whole, "-") {
		sign, whole = "-", whole[1:]
	}
	for at := len(whole) - 3; at > 0; at -= 3 {
		whole = whole[:at] + "," + whole[at:]
	}
	return sign + whole + rest
}

// grid is a table of text. Its first row is the head.
type grid struct {
	right []bool // right-aligned columns
	rows  [][]string
}

func (g *grid) add(cells ...string) { g.rows = append(g.rows, cells) }

// padded returns the rows, each cell padded to the width of its column.
func (g *grid) padded() [][]string {
	widths := make([]int, len(g.right))
	for _, row := range g.rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	out := make([][]string, len(g.rows))
	for k, row := range g.rows {
		for i, cell := range row {
			space := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if g.right[i] {
				cell = space + cell
			} else {
				cell += space
			}
			out[k] = append(out[k], cell)
		}
	}
	return out
}

func (g *grid) text() string {
	var out strings.Builder
	for _, row := range g.padded() {
		out.WriteString(strings.TrimRight(strings.Join(row, "  "), " ") + "\n")
	}
	return out.String()
}

func (g *grid) markdown() string {
	var out strings.Builder
	for k, row := range g.padded() {
		out.WriteString("| " + strings.Join(row, " | ") + " |\n")
		if k > 0 {
			continue
		}
		for i, cell := range row {
			rule := strings.Repeat("-", max(utf8.RuneCountInString(cell), 2)+1)
			if g.right[i] {
				out.WriteString("|" + rule + ":")
			} else {
				out.WriteString("|:" + rule)
			}
		}
		out.WriteString("|\n")
	}
	return out.String()
}
