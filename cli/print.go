package cli

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"charm.land/lipgloss/v2"
	"charm.land/lipgloss/v2/table"
)

// column is one of a printed table.
type column[T any] struct {
	title   string
	text    func(T) string
	numeric bool // right-aligned
}

// printList prints items as the output flag asks. Names is what «ids» prints of each.
func printList[T any](a *app, items []T, name func(T) string, columns []column[T]) error {
	switch a.output {
	case "table":
		return printTable(a, items, columns)
	case "json":
		if items == nil {
			items = []T{}
		}
		return printJSON(a, items)
	case "jsonl":
		encoder := json.NewEncoder(a.stdout)
		encoder.SetEscapeHTML(false)
		for _, item := range items {
			if err := encoder.Encode(item); err != nil {
				return err
			}
		}
		return nil
	case "ids":
		for _, item := range items {
			if _, err := fmt.Fprintln(a.stdout, name(item)); err != nil {
				return err
			}
		}
		return nil
	}
	return usagef("--output %q is none of table, json, jsonl, ids", a.output)
}

// printOne prints one thing: as JSON where a machine reads, else with the given function.
func (a *app) printOne(item any, forPeople func() error) error {
	switch a.output {
	case "table":
		return forPeople()
	case "json":
		return printJSON(a, item)
	case "jsonl":
		encoder := json.NewEncoder(a.stdout)
		encoder.SetEscapeHTML(false)
		return encoder.Encode(item)
	case "ids":
		return forPeople()
	}
	return usagef("--output %q is none of table, json, jsonl, ids", a.output)
}

func printJSON(a *app, value any) error {
	encoder := json.NewEncoder(a.stdout)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
}

func printTable[T any](a *app, items []T, columns []column[T]) error {
	titles := make([]string, len(columns))
	for i, c := range columns {
		titles[i] = c.title
	}
	rows := make([][]string, len(items))
	for i, item := range items {
		rows[i] = make([]string, len(columns))
		for k, c := range columns {
			rows[i][k] = oneLine(c.text(item))
		}
	}
	fit(rows, titles, terminalWidth(a.stdout))
	head := lipgloss.NewStyle().PaddingRight(2).Bold(true)
	cell := lipgloss.NewStyle().PaddingRight(2)
	t := table.New().Headers(titles...).Rows(rows...).Wrap(false).
		Border(lipgloss.HiddenBorder()).BorderTop(false).BorderBottom(false).BorderLeft(false).BorderRight(false).
		BorderHeader(false).BorderColumn(false).BorderRow(false).
		StyleFunc(func(row, col int) lipgloss.Style {
			style := cell
			if row == table.HeaderRow {
				style = head
			}
			if columns[col].numeric {
				style = style.Align(lipgloss.Right)
			}
			return style
		})
	var text strings.Builder
	for _, line := range strings.Split(t.Render(), "\n") {
		text.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	_, err := lipgloss.Fprint(a.stdout, text.String())
	return err
}

// fit cuts the widest cells in the middle until the rows fit the terminal.
func fit(rows [][]string, titles []string, width int) {
	if width == 0 {
		return
	}
	widths := make([]int, len(titles))
	for i, title := range titles {
		widths[i] = lipgloss.Width(title)
		for _, row := range rows {
			widths[i] = max(widths[i], lipgloss.Width(row[i]))
		}
	}
	for {
		total, widest := 0, 0
		for i, w := range widths {
			total += w + 2
			if w > widths[widest] {
				widest = i
			}
		}
		if total <= width || widths[widest] <= 12 {
			break
		}
		widths[widest]--
	}
	for _, row := range rows {
		for i := range row {
			row[i] = cut(row[i], widths[i])
		}
	}
}

// cut shortens a text in the middle.
func cut(text string, width int) string {
	if utf8.RuneCountInString(text) <= width || width < 3 {
		return text
	}
	runes := []rune(text)
	head := (width - 1) / 2
	tail := width - 1 - head
	return string(runes[:head]) + "…" + string(runes[len(runes)-tail:])
}

func oneLine(text string) string {
	return strings.Join(strings.Fields(strings.Map(printable, text)), " ")
}

// printable keeps what a job's texts hold from steering the terminal.
func printable(r rune) rune {
	if r == '\n' || r == '\t' {
		return ' '
	}
	if !strconv.IsPrint(r) {
		return '·'
	}
	return r
}

// ago tells an instant relative to now, as «in 5m» or «3h ago»; a zero one as a dash.
func ago(at time.Time) string {
	if at.IsZero() {
		return "-"
	}
	d := time.Until(at)
	if d > 0 {
		return "in " + short(d)
	}
	return short(-d) + " ago"
}

// short writes a duration with one unit, or two.
func short(d time.Duration) string {
	switch {
	case d < time.Second:
		return strconv.FormatInt(d.Milliseconds(), 10) + "ms"
	case d < time.Minute:
		return strconv.FormatInt(int64(d.Seconds()), 10) + "s"
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return strconv.Itoa(int(d.Hours()/24)) + "d"
}

// count writes a figure with blanks between the thousands.
func count(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + " " + text[i:]
	}
	return text
}

// orDash stands in for an empty text.
func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}
