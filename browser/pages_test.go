package browser_test

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// paths finds the pages: those of the side bar, and of each the first of the pages that it links to.
func paths(t *testing.T) (all []string) {
	t.Helper()
	p := open(t, shop, "/")
	p.forgives("404") // of what ended meanwhile
	var places []string
	decode(t, p.js(`[...document.querySelectorAll("#places a")].map((a) => new URL(a.href).pathname)`), &places)
	all = slices.Clone(places)
	shape := regexp.MustCompile(`[^/]+`)
	for _, place := range places {
		p.goTo(place)
		var links []string
		decode(t, p.js(`[...document.querySelectorAll("#live a[href]")].map((a) => new URL(a.href)).filter((u) => u.origin === location.origin && !u.search).map((u) => u.pathname)`), &links)
		known := map[string]bool{}
		for _, link := range links {
			first, rest, deep := strings.Cut(strings.TrimPrefix(link, "/"), "/")
			kind := first + "/" + shape.ReplaceAllString(rest, "*")
			if deep && !known[kind] && !slices.Contains(all, link) && string(p.js(`fetch(`+quote(link)+`).then((r) => r.status)`)) == "200" {
				known[kind] = true
				all = append(all, link)
			}
		}
	}
	if len(places) < 5 || len(all) <= len(places) {
		t.Fatalf("only these pages were found: %q", all)
	}
	return unique(all)
}

// unique keeps one page of each kind, such as of each queue.
func unique(paths []string) (kept []string) {
	seen := map[string]bool{}
	for _, path := range paths {
		parts := strings.Split(path, "/")
		if len(parts) > 2 {
			parts[2] = "*"
		}
		if kind := strings.Join(parts, "/"); !seen[kind] {
			seen[kind] = true
			kept = append(kept, path)
		}
	}
	return kept
}

func decode(t *testing.T, text json.RawMessage, into any) {
	t.Helper()
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
}

// wear chooses a theme, as the select box does.
func (p *tab) wear(theme string) {
	p.Helper()
	p.js(`(() => { const box = document.getElementById("theme"); box.value = ` + quote(theme) + `; box.dispatchEvent(new Event("change", { bubbles: true })); return 1 })()`)
}

func TestEachPageIsAccessibleAtEachWidthInEachTheme(t *testing.T) {
	t.Parallel()
	for _, path := range paths(t) {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			p := open(t, shop, path)
			p.js(axe + "; 1")
			for _, theme := range []string{"light", "dark", "contrast"} {
				p.wear(theme)
				p.keep(path, theme)
				var found []struct {
					ID    string `json:"id"`
					Nodes []struct {
						HTML    string `json:"html"`
						Summary string `json:"failureSummary"`
					} `json:"nodes"`
				}
				decode(t, p.js(`axe.run(document, { resultTypes: ["violations"] }).then((r) => r.violations)`), &found)
				for _, violation := range found {
					for _, node := range violation.Nodes[:min(3, len(violation.Nodes))] {
						t.Errorf("%s: %s: %.300s\n%s", theme, violation.ID, node.HTML, node.Summary)
					}
				}
			}
			for _, width := range []int64{320, 768, 1440} {
				p.does(chromedp.EmulateViewport(width, 900))
				if wide := p.text(tooWide); wide != "" {
					t.Errorf("at %d px the page is wider: %s", width, wide)
				}
			}
			if p.is(`document.querySelectorAll("h1").length !== 1`) {
				t.Error("the page has not one h1")
			}
		})
	}
}

// tooWide names the elements that make a page wider than the window. Empty: none.
const tooWide = `(() => {
  const width = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth <= width) return "";
  return [...document.querySelectorAll("body *")].filter((e) => e.getBoundingClientRect().right > width + 1 && !e.parentElement.closest(".scroll, .unseen, pre"))
    .slice(0, 5).map((e) => e.outerHTML.slice(0, 120)).join("\n") || "nothing that can be named";
})()`
