package browser_test

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
)

// paths returns the pages of the shop's side bar, and the first page of each kind that they link to.
func paths(t *testing.T) []string {
	t.Helper()
	p := open(t, shop, "/")
	p.forgives("404") // some things end meanwhile
	return pathsOf(t, p)
}

// pathsOf is paths for the server of a tab.
func pathsOf(t *testing.T, p *tab) (all []string) {
	t.Helper()
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

// unique keeps one page of each kind, such as one page of a queue.
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

// choose selects a value in a select box of the top bar.
func (p *tab) choose(box, value string) {
	p.Helper()
	p.js(`(() => { const box = document.getElementById(` + quote(box) + `); box.value = ` + quote(value) + `; box.dispatchEvent(new Event("change", { bubbles: true })); return 1 })()`)
}

func TestEachPageIsAccessibleAtEachWidthInEachTheme(t *testing.T) {
	t.Parallel()
	for _, path := range paths(t) {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			p := open(t, shop, path)
			for _, theme := range []string{"light", "dark", "contrast"} {
				p.choose("theme", theme)
				p.keep(path, theme)
				p.accessible(theme)
			}
			for _, width := range []int64{320, 768, 1440} {
				p.fits(width)
			}
			p.does(chromedp.EmulateViewport(1280, 900))
			if hidden := p.text(cutActs); hidden != "" {
				t.Errorf("at 1280 px, a table hides acts: %s", hidden)
			}
			if p.is(`document.querySelectorAll("h1").length !== 1`) {
				t.Error("the page has not one h1")
			}
		})
	}
}

// accessible checks the page with axe-core.
func (p *tab) accessible(theme string) {
	p.Helper()
	var found []struct {
		ID    string `json:"id"`
		Nodes []struct {
			HTML    string `json:"html"`
			Summary string `json:"failureSummary"`
		} `json:"nodes"`
	}
	p.js(axe + "; 1")
	decode(p.T, p.js(`axe.run(document, { resultTypes: ["violations"] }).then((r) => r.violations)`), &found)
	for _, violation := range found {
		for _, node := range violation.Nodes[:min(3, len(violation.Nodes))] {
			p.Errorf("%s: %s: %s: %.300s\n%s", p.text("location.pathname"), theme, violation.ID, node.HTML, node.Summary)
		}
	}
}

// TestAJobIsAccessibleAndFitsASmallScreenInEachState: the reasons of a waiting job are the longest text of all pages. A
// failed job has parts that no other job has.
func TestAJobIsAccessibleAndFitsASmallScreenInEachState(t *testing.T) {
	t.Parallel()
	p := open(t, shop, "/jobs")
	p.forgives("404") // some jobs end meanwhile
	seen := 0
	for _, state := range []string{"scheduled", "ready", "retrying", "blocked", "held", "claimed", "dispatched", "completed", "dead", "cancelled"} {
		p.goTo("/jobs?q=state:" + state)
		if p.is(`document.querySelector("#live tbody a")`) {
			p.goTo(p.text(`new URL(document.querySelector("#live tbody a").href).pathname`))
			p.fits(320)
			p.accessible("light")
			seen++
		}
	}
	if seen < 5 {
		t.Errorf("the shop has jobs in %d states only", seen)
	}
	p.goTo("/jobs?sort=oldest&q=state:ready+queue:payments+tenant:acme") // the tenant's limit holds some of these jobs back
	p.goTo(p.text(`new URL(document.querySelector("#live tbody a").href).pathname`))
	p.fits(1440)
	p.choose("zone", "ago")
	p.choose("theme", "dark")
	p.keep("/waiting", "dark")
}

// fits checks that no part of a page is wider than the window, with the longest format of times.
func (p *tab) fits(width int64) {
	p.Helper()
	p.does(chromedp.EmulateViewport(width, 900))
	p.choose("zone", "utc")
	if wide := p.text(tooWide); wide != "" {
		p.Errorf("at %d px %s is wider: %s", width, p.text("location.pathname"), wide)
	}
}

// tooWide names the elements that reach beyond the window, unless a box around them cuts them off. Empty: none.
const tooWide = `(() => {
  const root = document.documentElement;
  if (root.scrollWidth <= root.clientWidth) return "";
  const around = (e) => ({ absolute: e.offsetParent, fixed: null })[getComputedStyle(e).position] ?? e.parentElement;
  const cut = (e) => e && e !== document.body && (getComputedStyle(e).overflowX !== "visible" || cut(around(e)));
  const wide = [];
  for (const walk = document.createNodeIterator(document.body, NodeFilter.SHOW_ELEMENT | NodeFilter.SHOW_TEXT); walk.nextNode();) {
    const node = walk.referenceNode, range = document.createRange();
    range.selectNode(node);
    const box = (node.getBoundingClientRect ? node : range).getBoundingClientRect();
    const e = node.parentElement === null || node.getBoundingClientRect ? node : node.parentElement;
    if (box.right > root.clientWidth && !cut(node === e ? around(e) : e)) wide.push(Math.ceil(box.right) + " px: " + e.outerHTML.slice(0, 160));
  }
  return root.scrollWidth + " px of " + root.clientWidth + ":\n" + (wide.slice(0, 5).join("\n") || document.body.outerHTML);
})()`

// cutActs lists the buttons of rows that are not in sight, as their table is wider than its box.
const cutActs = `[...document.querySelectorAll("#live .scroll td .act")].filter((act) => act.checkVisibility() && act.getBoundingClientRect().right > act.closest(".scroll").getBoundingClientRect().right + 1).map((act) => act.closest("tr").id + ": " + act.textContent).join()`
