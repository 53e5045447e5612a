package console

import (
	"context"
	"net/url"
	"slices"
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

// stripOf is the strip of the alerts that fire: one line for all, so that the page below never moves, with their number first,
// which a narrow window does not cut off.
func stripOf(firing []alert.Alert) []warning {
	switch len(firing) {
	case 0:
		return nil
	case 1:
		return []warning{{Text: strings.TrimSpace("Alert " + firing[0].Name() + " " + firing[0].Detail), Path: "/alerts", Link: "see the alert"}}
	}
	var names []string
	for _, a := range firing {
		names = append(names, a.Name())
	}
	return []warning{{Text: plural(len(firing), "alert") + ": " + strings.Join(names, ", "), Path: "/alerts", Link: "see the alerts"}}
}

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
	firing := slices.DeleteFunc(alerts.Alerts, func(a alert.Alert) bool { return a.State != alert.Firing })
	s.Strip = stripOf(firing)
	badges := map[string]int{"alerts": len(firing), "operations": len(open.Operations)}
	for _, p := range v.console.pages {
		if p.letter != "" {
			here := p.path == v.path || p.path != "/" && strings.HasPrefix(v.path, strings.TrimSuffix(p.path, "{$}")+"/")
			badge, badged := badges[p.name]
			s.Places = append(s.Places, place{Title: p.title, Path: strings.TrimSuffix(p.path, "{$}"), Letter: p.letter, Here: here || p.name == v.page.name, Badge: badge, Badged: badged})
		}
	}
	return s
}
