package console

import (
	"context"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-queue/sluice/alert"
	"github.com/sluice-queue/sluice/cmd/internal/draw"
	"github.com/sluice-queue/sluice/internal/wire"
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
	// Cut says that the text may be cut off at its end, to leave room for the others.
	Cut bool
}

// stripOf is the strip of the alerts that fire: one entry for all, so that the page below never moves, with their number first,
// which a narrow window does not cut off.
func stripOf(firing []alert.Alert) []warning {
	switch len(firing) {
	case 0:
		return nil
	case 1:
		return []warning{{Text: strings.TrimSpace("Alert " + firing[0].Name() + " " + firing[0].Detail), Path: "/alerts", Link: "see the alert", Cut: true}}
	}
	var names []string
	for _, a := range firing {
		names = append(names, a.Name())
	}
	return []warning{{Text: draw.Plural(len(firing), "alert") + ": " + strings.Join(names, ", "), Path: "/alerts", Link: "see the alerts", Cut: true}}
}

// stopped warns of what people stopped: it stays so until somebody lets it go on, and is easily forgotten.
func (v *visit) stopped(ctx context.Context) []warning {
	var queues queueList
	var limits wire.LimitList
	_ = v.readFor(ctx, seriesFor, "/queues", firstNames(), &queues)
	_ = v.readFor(ctx, seriesFor, "/limits", nil, &limits)
	var paused, closed []string
	for _, q := range queues.Queues {
		if q.Paused() {
			paused = append(paused, q.Name)
		}
	}
	for _, l := range limits.Limits {
		if l.Closed {
			closed = append(closed, l.Name)
		}
	}
	return append(stoppedOf("queue", "paused", paused), stoppedOf("limit", "closed", closed)...)
}

// stoppedOf warns of things of one kind by name.
func stoppedOf(noun, how string, names []string) []warning {
	switch len(names) {
	case 0:
		return nil
	case 1:
		path := "/" + noun + "s"
		if noun == "queue" { // a limit has no page of its own
			path += "/" + names[0]
		}
		return []warning{{Text: "The " + noun + " " + names[0] + " is " + how, Path: path, Link: "see the " + noun}}
	}
	return []warning{{Text: draw.Plural(len(names), noun) + " are " + how + ": " + strings.Join(names, ", "), Path: "/" + noun + "s", Link: "see the " + noun + "s"}}
}

const (
	// badgeFor is how long the number of groups of dead letters is shared, and badgeLetters how many dead letters are compared
	// for it.
	badgeFor, badgeLetters = 15 * time.Second, "1000"
)

// openGroups counts the groups of the newest dead letters that nobody has resolved. To group reads each queue, so a store with
// more queues than a page lists has no count.
func (v *visit) openGroups(ctx context.Context) (open int) {
	var queues queueList
	if v.viewer.bounded() || v.readFor(ctx, seriesFor, "/queues", firstNames(), &queues) != nil || len(queues.Queues) == mostQueues {
		return 0
	}
	var found deadList
	_ = v.readFor(ctx, badgeFor, "/dead/groups", url.Values{"limit": {badgeLetters}}, &found)
	for _, g := range found.Groups {
		if g.State() != "resolved" {
			open++
		}
	}
	return open
}

// firstNames asks for the first queues without their counts.
func firstNames() url.Values {
	return url.Values{"limit": {strconv.Itoa(mostQueues)}, "counts": {"false"}}
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
	if !v.viewer.bounded() {
		s.Strip = append(s.Strip, v.stopped(ctx)...)
	}
	badges := map[string]int{"dead": v.openGroups(ctx), "alerts": len(firing), "operations": len(open.Operations)}
	for _, p := range v.console.pages {
		if p.letter != "" {
			here := p.path == v.path || p.path != "/" && strings.HasPrefix(v.path, strings.TrimSuffix(p.path, "{$}")+"/")
			badge, badged := badges[p.name]
			s.Places = append(s.Places, place{Title: p.title, Path: strings.TrimSuffix(p.path, "{$}"), Letter: p.letter, Here: here || p.name == v.page.name, Badge: badge, Badged: badged})
		}
	}
	return s
}
