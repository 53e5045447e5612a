package console

import (
	"context"
	"net/url"
	"strings"

	"github.com/sluice-queue/sluice/alert"
	"github.com/sluice-queue/sluice/operation"
)

// shell is what is around each page: the side bar, and the strip that says what is off.
type shell struct {
	Places []place
	Strip  []warning
}

// place is a page in the side bar.
type place struct {
	Title, Path, Letter string
	Here                bool
	// Badge counts what wants attention. Badged says that a badge has its place there also while it counts nothing: one that
	// appears must not move what people click.
	Badge  int
	Badged bool
}

// warning is something off in the whole system, with the page where to see or undo it.
type warning struct {
	Text, Path, Link string
}

// shownWarnings is how many alerts the strip names: it has one line, so that the page below never moves.
const shownWarnings = 1

// shell reads what is around a page. What cannot be read is left out: the page itself says so.
func (v *visit) shell(ctx context.Context) shell {
	var s shell
	var alerts struct {
		Alerts []alert.Alert `json:"alerts"`
	}
	var open struct {
		Operations []operation.Operation `json:"operations"`
	}
	if !v.viewer.bounded() && v.may("list-alerts") {
		_ = v.read(ctx, "/alerts", nil, &alerts)
		_ = v.read(ctx, "/operations", url.Values{"open": {"true"}}, &open)
	}
	badges := map[string]int{"alerts": 0, "operations": len(open.Operations)}
	for _, a := range alerts.Alerts {
		if a.State != alert.Firing {
			continue
		}
		if badges["alerts"]++; badges["alerts"] > shownWarnings {
			continue
		}
		s.Strip = append(s.Strip, warning{Text: strings.TrimSpace("Alert " + a.Name() + " " + a.Detail), Path: "/alerts", Link: "see the alert"})
	}
	if more := badges["alerts"] - shownWarnings; more > 0 {
		s.Strip = append(s.Strip, warning{Text: plural(more, "more alert"), Path: "/alerts", Link: "see all alerts"})
	}
	for _, p := range v.console.pages {
		if p.letter != "" {
			here := p.path == v.path || p.path != "/" && strings.HasPrefix(v.path, strings.TrimSuffix(p.path, "{$}")+"/")
			badge, badged := badges[p.name]
			s.Places = append(s.Places, place{Title: p.title, Path: strings.TrimSuffix(p.path, "{$}"), Letter: p.letter, Here: here || p.name == v.page.name, Badge: badge, Badged: badged})
		}
	}
	return s
}
