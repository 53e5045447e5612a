package report

import "strings"

// Merge puts a report of some scenarios into the page of an earlier report. Sections of other scenarios stay. An empty
// page gives a new page.
func Merge(page string, r Report) string {
	fresh := r.Markdown()
	if strings.TrimSpace(page) == "" {
		return fresh
	}
	now, then := split(fresh), split(page)
	for i, part := range then {
		switch part.title {
		case "Versions", "Targets":
			then[i].text = mergeTables(part.text, now.text(part.title))
		default:
			if text := now.text(part.title); text != "" {
				then[i].text = text
			}
		}
	}
	for _, part := range now {
		if then.text(part.title) == "" {
			then = append(then, part)
		}
	}
	return then.join()
}

// part is the text below one heading. The first part has no title: it is the text above all headings.
type part struct{ title, text string }

type parts []part

const heading = "\n## "

func split(page string) parts {
	var out parts
	for i, text := range strings.Split(page, heading) {
		title := ""
		if i > 0 {
			title, text, _ = strings.Cut(text, "\n")
		}
		out = append(out, part{title, strings.TrimSpace(text)})
	}
	return out
}

func (p parts) text(title string) string {
	for _, one := range p {
		if one.title == title {
			return one.text
		}
	}
	return ""
}

func (p parts) join() string {
	var out strings.Builder
	for i, one := range p {
		if i > 0 {
			out.WriteString(heading + one.title + "\n\n")
		}
		out.WriteString(one.text + "\n")
	}
	return out.String()
}

// mergeTables drops the rows of table then whose first cell occurs in table now, and appends the rows of now. So the
// targets that a scenario no longer has go too.
func mergeTables(then, now string) string {
	old, fresh := parseTable(then), parseTable(now)
	replaced := make(map[string]bool)
	for _, row := range fresh.rows[1:] {
		replaced[row[0]] = true
	}
	out := grid{right: fresh.right}
	out.rows = append(out.rows, fresh.rows[0])
	for _, row := range old.rows[1:] {
		if !replaced[row[0]] {
			out.rows = append(out.rows, row)
		}
	}
	out.rows = append(out.rows, fresh.rows[1:]...)
	return strings.TrimSpace(out.markdown())
}

// parseTable reads a Markdown table.
func parseTable(text string) grid {
	var out grid
	for k, line := range strings.Split(strings.TrimSpace(text), "\n") {
		cells := strings.Split(strings.Trim(line, "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if k != 1 {
			out.rows = append(out.rows, cells)
			continue
		}
		for _, cell := range cells {
			out.right = append(out.right, strings.HasSuffix(cell, ":"))
		}
	}
	return out
}
