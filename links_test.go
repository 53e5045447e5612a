package sluice_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	target  = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#{1,6} +(.*?) *$`)
	dropped = regexp.MustCompile(`[^\p{L}\p{N}\- _]`)
)

// slug returns the anchor of a heading.
func slug(title string) string {
	title = link.ReplaceAllString(strings.ReplaceAll(title, "`", ""), "$1")
	return strings.ReplaceAll(dropped.ReplaceAllString(strings.ToLower(title), ""), " ", "-")
}

// anchors returns the anchors of a page.
func anchors(t *testing.T, path string) map[string]bool {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]bool)
	for _, found := range heading.FindAllStringSubmatch(codeBlock.ReplaceAllString(string(text), ""), -1) {
		all[slug(found[1])] = true
	}
	return all
}

func TestLinksOfPagesLeadToFilesAndHeadings(t *testing.T) {
	t.Parallel()
	pages := sourceFiles(t, ".md")
	readmes, err := filepath.Glob("apps/*/README.md")
	if err != nil || len(readmes) == 0 {
		t.Fatalf("no application has a README: %v", err)
	}
	followed, known := 0, make(map[string]map[string]bool)
	for _, page := range append(pages, readmes...) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range target.FindAllStringSubmatch(codeBlock.ReplaceAllString(string(text), ""), -1) {
			to, anchor, _ := strings.Cut(found[1], "#")
			if strings.Contains(to, "://") || strings.HasPrefix(to, "mailto:") {
				continue
			}
			followed++
			path := page
			if to != "" {
				path = filepath.Join(filepath.Dir(page), to)
			}
			if _, err := os.Stat(path); err != nil {
				t.Errorf("%s links to %s, which is not there", page, found[1])
				continue
			}
			if anchor == "" || !strings.HasSuffix(path, ".md") {
				continue
			}
			if known[path] == nil {
				known[path] = anchors(t, path)
			}
			if !known[path][anchor] {
				t.Errorf("%s links to %s, and %s has no such heading", page, found[1], path)
			}
		}
	}
	if followed < 300 {
		t.Errorf("only %d links were followed", followed)
	}
}
