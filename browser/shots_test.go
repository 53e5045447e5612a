package browser_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

// shots is the folder for pictures of all pages, which `make screenshots` sets.
var shots = flag.String("shots", "", "write pictures of all pages into this folder")

// keep takes a picture of a page, if shots is set.
func (p *tab) keep(path, theme string) {
	p.Helper()
	if *shots == "" || theme == "contrast" {
		return
	}
	picture, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		p.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(*shots, "console-"+nameOf(path)+"-"+theme+".png"), picture, 0o600); err != nil {
		p.Fatal(err)
	}
}

// nameOf names a picture by the page's place in the menu, and by whether the page is one of many.
func nameOf(path string) string {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case parts[0] == "":
		return "overview"
	case len(parts) > 1:
		return parts[0] + "-one"
	}
	return parts[0]
}

// TestPicturesShowWorkOfTheShop: the charts of a queue have lines once the shop has worked for some minutes, and waves have
// the colours of tenants.
func TestPicturesShowWorkOfTheShop(t *testing.T) {
	t.Parallel()
	begun := time.Now().UTC().Add(-time.Minute).Format(time.RFC3339) // a window takes 10 s at least
	for name, picture := range map[string][2]string{
		"queue":           {"/queues/payments?from=" + begun, `[...document.querySelectorAll("figure[data-chart]")].slice(0, 3).every((f) => JSON.parse(f.dataset.chart).lines[0].values.filter((v) => v > 0).length >= 7)`},
		"waves-by-tenant": {"/waves?by=tenant", `new Set([...document.querySelectorAll(".histogram rect")].map((bar) => bar.className.baseVal)).size >= 5`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := open(t, shop, picture[0])
			p.choose("theme", "light")
			p.until(picture[1])
			if name == "queue" {
				p.js(`document.querySelector("nav.choices").scrollIntoView()`)
			}
			p.keep("/"+name, "light")
		})
	}
}
