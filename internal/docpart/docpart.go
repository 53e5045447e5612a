// Package docpart compares the parts of pages that are made from code with what the code says.
package docpart

import (
	"os"
	"strings"
	"testing"
)

// Part is a part of a page between `<!-- begin NAME: made from the code -->` and `<!-- end NAME -->`.
type Part struct {
	// Path is the page, from the folder of the test.
	Path string
	// Name is the part's name, and Text what the code says.
	Name, Text string
}

// Check fails if a page says something else than the code. With update, it writes the part instead.
func Check(t *testing.T, update bool, parts ...Part) {
	t.Helper()
	for _, part := range parts {
		if err := part.check(update); err != "" {
			t.Errorf("%s: the part %q %s", part.Path, part.Name, err)
		}
	}
}

func (p Part) check(update bool) (fault string) {
	text, err := os.ReadFile(p.Path)
	if err != nil {
		return "cannot be read: " + err.Error()
	}
	begin, end := "<!-- begin "+p.Name+": made from the code -->\n", "<!-- end "+p.Name+" -->"
	before, rest, found := strings.Cut(string(text), begin)
	_, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		return "is missing"
	}
	whole := before + begin + "\n" + p.Text + "\n" + end + after
	switch {
	case whole == string(text):
		return ""
	case !update:
		return "differs from the code; run `make docs`"
	}
	if err := os.WriteFile(p.Path, []byte(whole), 0o644); err != nil {
		return "cannot be written: " + err.Error()
	}
	return ""
}
