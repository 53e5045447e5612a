package cli

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"charm.land/lipgloss/v2"
	"charm.land/lipgloss/v2/table"
)

// printTable prints items for people, fitted to a terminal's width. Ids are never cut, because people copy them.
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
	kept := fit(rows, titles, terminalWidth(a.stdout))
	titles = pick(titles, kept)
	for i := range rows {
		rows[i] = pick(rows[i], kept)
	}
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
			if columns[kept[col]].numeric {
				style = style.Align(lipgloss.Right)
			}
			return style
		})
	var text strings.Builder
	for _, line := range strings.Split(t.Render(), "\n") {
		text.WriteString(lineEnd.ReplaceAllStringFunc(line, func(end string) string { return strings.ReplaceAll(end, " ", "") }) + "\n")
	}
	_, err := lipgloss.Fprint(a.stdout, text.String())
	return err
}

// lineEnd matches blanks at the end of a line, also within a style.
var lineEnd = regexp.MustCompile(`( |\x1b\[[0-9;]*m)+$`)

// spare are the columns that a narrow terminal drops, first to last. `job ID` and -o json show them.
var spare = []string{"HOLDER", "PRIO", "ATTEMPTS", "CREATED", "TENANT", "DEFAULT", "DUE", "TOTAL P95", "EXPIRED", "RUN P50", "RUN P99", "OVER TIME", "WAIT P95"}

// narrowest is how far a cell may be cut.
const narrowest = 8

// fit chooses the columns that a width has room for, and cuts the widest cells in the middle until the rows fit. A
// width of 0 has room for all.
func fit(rows [][]string, titles []string, width int) (kept []int) {
	for i := range titles {
		kept = append(kept, i)
	}
	if width == 0 || len(rows) == 0 {
		return kept
	}
	wants, needs := make([]int, len(titles)), make([]int, len(titles))
	for i, title := range titles {
		wants[i] = lipgloss.Width(title)
		for _, row := range rows {
			wants[i] = max(wants[i], lipgloss.Width(row[i]))
		}
		needs[i] = max(lipgloss.Width(title), min(wants[i], narrowest))
		if title == "ID" {
			needs[i] = wants[i]
		}
	}
	kept = leaveOut(kept, silent(rows, titles), wants, width)
	kept = leaveOut(kept, spareOf(titles), needs, width)
	for total(wants, kept) > width {
		widest := -1
		for _, i := range kept {
			if wants[i] > needs[i] && (widest < 0 || wants[i] > wants[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			break
		}
		wants[widest]--
	}
	for _, row := range rows {
		for i := range row {
			row[i] = cut(row[i], wants[i])
		}
	}
	return kept
}

// silent lists the columns that are empty in every row, last first.
func silent(rows [][]string, titles []string) (columns []int) {
	for i := range slices.Backward(titles) {
		says := func(row []string) bool { return row[i] != "-" && row[i] != "0" }
		if !slices.ContainsFunc(rows, says) {
			columns = append(columns, i)
		}
	}
	return columns
}

func spareOf(titles []string) (columns []int) {
	for _, title := range spare {
		columns = append(columns, slices.Index(titles, title))
	}
	return columns
}

// leaveOut drops columns until the others fit.
func leaveOut(columns, order, widths []int, width int) []int {
	for _, drop := range order {
		if total(widths, columns) <= width {
			break
		}
		columns = slices.DeleteFunc(columns, func(i int) bool { return i == drop })
	}
	return columns
}

// total is the width of columns with the blanks between them.
func total(widths, columns []int) int {
	sum := -columnGap
	for _, i := range columns {
		sum += widths[i] + columnGap
	}
	return sum
}

const columnGap = 2

func pick(cells []string, columns []int) []string {
	out := make([]string, len(columns))
	for k, i := range columns {
		out[k] = cells[i]
	}
	return out
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
