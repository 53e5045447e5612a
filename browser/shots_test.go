package browser_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"

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
