package console

import (
	"slices"
	"strconv"
	"time"
)

// chart is figures over time: a picture, a table and CSV show the same.
type chart struct {
	Name  string `json:"name"`
	Title string `json:"title"`
	// Unit is that of the values, such as jobs/s. Kind is line, area or bar.
	Unit string `json:"unit"`
	Kind string `json:"kind"`
	// Sentence says the same in words.
	Sentence string `json:"-"`
	// Times are the instants, in seconds since 1970; Lines have a value for each. A nil value is a gap: nobody counted.
	Times []int64 `json:"times"`
	// Names stand for times in a chart that compares tenants.
	Names []string `json:"-"`
	Lines []line   `json:"lines"`
	Marks []mark   `json:"marks,omitempty"`
	// CSV is the address of the figures. Empty: of the page without filters.
	CSV string `json:"-"`
}

// line is a row of values with a name.
type line struct {
	Name   string     `json:"name"`
	Values []*float64 `json:"values"`
	// Dashed is for limits, which are no counts.
	Dashed bool `json:"dashed,omitempty"`
	// Waits is for jobs that are due and wait, which the same job is at several instants. Assumed is by assumed limits.
	Waits, Assumed bool `json:"-"`
}

// rows are the figures as a table, with a heading.
func (c chart) rows() [][]string {
	heads := c.Names
	head := []string{"tenant"}
	if heads == nil {
		head[0] = "time"
		for _, at := range c.Times {
			heads = append(heads, time.Unix(at, 0).UTC().Format(time.RFC3339))
		}
	}
	for _, l := range c.Lines {
		head = append(head, l.Name+" ("+c.Unit+")")
	}
	rows := [][]string{head}
	for i, name := range heads {
		row := []string{name}
		for _, l := range c.Lines {
			text := ""
			if i < len(l.Values) && l.Values[i] != nil {
				text = strconv.FormatFloat(*l.Values[i], 'g', 6, 64)
			}
			row = append(row, text)
		}
		rows = append(rows, row)
	}
	return rows
}

// Rows are the rows for a template.
func (c chart) Rows() [][]string { return c.rows() }

// alone reports whether a value is between gaps.
func alone(values []*float64, i int) bool {
	return values[i] != nil && (i == 0 || values[i-1] == nil) && (i == len(values)-1 || values[i+1] == nil)
}

// Dots reports whether the picture has a value between gaps, which is no line.
func (c chart) Dots() bool {
	return c.Kind != "bar" && slices.ContainsFunc(c.Lines, func(l line) bool {
		for i := range l.Values {
			if alone(l.Values, i) {
				return true
			}
		}
		return false
	})
}
