package postgres

import (
	"fmt"
	"regexp"
	"strings"
	"time"
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

// span writes a duration for a person.
func span(seconds float64) string {
	d := time.Duration(seconds * float64(time.Second))
	switch {
	case d >= 48*time.Hour:
		return fmt.Sprintf("%d days", d/(24*time.Hour))
	case d >= time.Hour:
		return strings.TrimSuffix(d.Round(time.Minute).String(), "0s")
	case d >= time.Minute && d.Round(time.Second)%time.Minute == 0:
		return strings.TrimSuffix(d.Round(time.Second).String(), "0s")
	case d >= time.Second:
		return d.Round(time.Second).String()
	}
	if d < time.Millisecond {
		return d.Round(time.Microsecond).String()
	}
	return d.Round(time.Millisecond).String()
}

// bytesText writes a size for a person.
func bytesText(value float64) string {
	for _, unit := range []string{"B", "KiB", "MiB", "GiB"} {
		if value < 1000 {
			return fmt.Sprintf("%.3g %s", value, unit)
		}
		value /= 1024
	}
	return fmt.Sprintf("%.3g TiB", value)
}
