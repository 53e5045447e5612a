// Package columns writes lists of columns into SQL statements, so that a store has each list in one file.
//
// A file of lists has a paragraph per list: the name of the list and a colon, then its columns, with or without
// types.
//
//	-- The comment of a list.
//	given: key text, payload bytea
//
// In a statement, {{given}} stands for the names of the columns, and {{j.given}} for the names after `j.`.
package columns

import (
	"regexp"
	"strings"
)

// Lists holds lists of columns by their names.
type Lists map[string]List

// List is a list of columns.
type List []Column

// Column is a column of a list. Type is empty if the file names none.
type Column struct{ Name, Type string }

var (
	heading     = regexp.MustCompile(`(?m)^(\w+):((?:[^\n]|\n[^\n])*)`)
	comment     = regexp.MustCompile(`(?m)^--.*\n`)
	placeholder = regexp.MustCompile(`\{\{(?:(\w+)\.)?(\w+)\}\}`)
)

// Read reads a file of lists.
func Read(file string) Lists {
	lists := make(Lists)
	for _, found := range heading.FindAllStringSubmatch(comment.ReplaceAllString(file, ""), -1) {
		var list List
		for column := range strings.SplitSeq(found[2], ",") {
			name, kind, _ := strings.Cut(strings.TrimSpace(column), " ")
			list = append(list, Column{Name: name, Type: kind})
		}
		lists[found[1]] = list
	}
	return lists
}

// In writes the lists into a statement. It leaves placeholders that name no list.
func (l Lists) In(statement string) string {
	return placeholder.ReplaceAllStringFunc(statement, func(found string) string {
		parts := placeholder.FindStringSubmatch(found)
		list, known := l[parts[2]]
		if !known {
			return found
		}
		of := ""
		if parts[1] != "" {
			of = parts[1] + "."
		}
		return list.Join(func(c Column) string { return of + c.Name })
	})
}

// Join writes each column of the list and puts commas between them.
func (l List) Join(write func(Column) string) string {
	parts := make([]string, len(l))
	for i, c := range l {
		parts[i] = write(c)
	}
	return strings.Join(parts, ", ")
}
