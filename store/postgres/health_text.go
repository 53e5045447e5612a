package postgres

import (
	"regexp"
	"strings"
)

// maxStatement is how many characters of a statement are shown.
const maxStatement = 100

var (
	// noise matches the parts of a statement that may hold values: comments, numbers and strings. A string may be
	// of any kind, and the server may have cut it off.
	noise = regexp.MustCompile(`(?s)/\*.*?(\*/|$)|--[^\n]*|[eEbBxXnN]?'(?:[^'\\]|''|\\.)*('|$)|\$(\w*)\$.*|\b\d[\w.]*`)
	// blanks become one blank.
	blanks = regexp.MustCompile(`\s+`)
)

// statement returns the beginning of a statement without its values, which may be secret.
func statement(text string) string {
	text = noise.ReplaceAllStringFunc(text, func(found string) string {
		if strings.HasPrefix(found, "--") || strings.HasPrefix(found, "/*") {
			return " "
		}
		return "?"
	})
	return cutText(strings.TrimSpace(blanks.ReplaceAllString(text, " ")), maxStatement)
}

// brief returns a user's name for something on one line, cut to 40 characters.
func brief(text string) string {
	return cutText(blanks.ReplaceAllString(text, " "), 40)
}

func cutText(text string, most int) string {
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return text
}
