package postgres

import (
	"regexp"
	"strings"
)

// maxStatement is how many characters of a statement are shown.
const maxStatement = 100

var (
	// noise is what of a statement may hold values: comments, strings of each kind, also those that the server has cut
	// off, and numbers.
	noise = regexp.MustCompile(`(?s)/\*.*?(\*/|$)|--[^\n]*|[eEbBxXnN]?'(?:[^'\\]|''|\\.)*('|$)|\$(\w*)\$.*|\b\d[\w.]*`)
	// blanks are written as one.
	blanks = regexp.MustCompile(`\s+`)
)

// statement gives the beginning of a statement without the values in it, which may be secrets.
func statement(text string) string {
	text = noise.ReplaceAllStringFunc(text, func(found string) string {
		if strings.HasPrefix(found, "--") || strings.HasPrefix(found, "/*") {
			return " "
		}
		return "?"
	})
	return cutText(strings.TrimSpace(blanks.ReplaceAllString(text, " ")), maxStatement)
}

// brief gives a name that somebody chose, on one line.
func brief(text string) string {
	return cutText(blanks.ReplaceAllString(text, " "), 40)
}

func cutText(text string, most int) string {
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return text
}
