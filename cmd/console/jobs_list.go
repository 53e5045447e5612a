package console

import (
	"context"
	"maps"
	"net/url"
	"slices"
)

// columns are the columns that a list of jobs can have.
var columns = []string{"queue", "tenant", "state", "priority", "due", "created", "finished", "attempts", "holder", "lease", "run", "key", "labels", "error"}

// usualColumns are shown if nobody chooses.
var usualColumns = []string{"queue", "tenant", "state", "due", "created", "attempts", "error"}

// columns are the chosen columns, in the order of the address.
func (v *visit) columns() (chosen []string) {
	for _, c := range v.query["cols"] {
		if slices.Contains(columns, c) && !slices.Contains(chosen, c) {
			chosen = append(chosen, c)
		}
	}
	if len(chosen) == 0 {
		return usualColumns
	}
	return chosen
}

// AllColumns are what the form of /jobs offers: the columns that the list shows, in their order, and the others.
func (s *screen) AllColumns() []string {
	others := slices.DeleteFunc(slices.Clone(columns), s.Shows)
	return slices.Concat(s.visit.columns(), others)
}

// Shows reports whether the list shows a column.
func (s *screen) Shows(column string) bool { return slices.Contains(s.visit.columns(), column) }

// Earlier is the address of the list with a column one place further in front. Empty: it is not shown, or is the first.
func (s *screen) Earlier(column string) string {
	shown := slices.Clone(s.visit.columns())
	i := slices.Index(shown, column)
	if i < 1 {
		return ""
	}
	shown[i-1], shown[i] = shown[i], shown[i-1]
	query := maps.Clone(s.visit.query)
	query["cols"] = shown
	return s.visit.console.options.Base + s.visit.path + "?" + query.Encode()
}

// mostBlamed is how many terms of a filter that finds nothing are left out, each in a list of its own.
const mostBlamed = 8

// blame counts what the list would have without each of its terms, as far as the first page goes. The term that keeps out the
// most comes first.
func (l *jobList) blame(ctx context.Context, v *visit) {
	if len(l.Chips) < 2 {
		return
	}
	for i := range l.Chips[:min(len(l.Chips), mostBlamed)] {
		where := l.Chips[i].Others
		if state := v.query.Get("state"); state != "" {
			where += " state:" + state
		}
		var read struct {
			Jobs []struct{} `json:"jobs"`
		}
		if v.readFor(ctx, seriesFor, "/jobs", url.Values{"where": {where}, "limit": {l.Size}}, &read) != nil {
			return
		}
		l.Chips[i].Finds = len(read.Jobs)
	}
}

// Blamed are the terms of a filter that finds nothing, the one without which there are the most jobs first.
func (l jobList) Blamed() []chip {
	all := slices.Clone(l.Chips)
	slices.SortStableFunc(all, func(a, b chip) int { return b.Finds - a.Finds })
	return all
}
