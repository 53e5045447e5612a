package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/health"
	"github.com/sluice-queue/sluice/limit"
)

// examineLimits checks that the limits which queues share are stored, and tells which are closed.
func examineLimits(ctx context.Context, store sluice.Store, queues []sluice.Queue) ([]finding, error) {
	by := make(map[string][]string)
	for _, q := range queues {
		for _, name := range limit.Names(q.Settings.Limits) {
			by[name] = append(by[name], q.Name)
		}
	}
	if len(by) == 0 {
		return nil, nil
	}
	stored, err := limit.List(ctx, store)
	if err != nil {
		return nil, err
	}
	var out []finding
	for _, l := range stored {
		if l.ClosedAt(time.Now()) {
			out = append(out, finding{
				Check: "limit", Severity: health.SeverityWarning, What: fmt.Sprintf("%s is %s, by %s: %s", l.Name, limitState(l, time.Now()), l.ChangedBy, orDash(oneLine(l.Reason))),
				Why: "its queues hand out nothing: " + strings.Join(by[l.Name], " "), Repair: fmt.Sprintf("sluice limits open %s --reason WHY", l.Name),
			})
		}
		delete(by, l.Name)
	}
	for _, name := range slices.Sorted(maps.Keys(by)) {
		out = append(out, finding{
			Check: "limit", Severity: health.SeverityWarning, What: fmt.Sprintf("%s is not stored; these queues name it: %s", name, strings.Join(by[name], " ")),
			Why: "it limits nothing", Repair: fmt.Sprintf("sluice limits set %s rate=N/s --reason WHY; or correct the setting `limits`", name),
		})
	}
	return out, nil
}

// noteUnknownLimits says which limits of a queue are not stored.
func (a *app) noteUnknownLimits(ctx context.Context, store sluice.Store, settings sluice.Settings) error {
	for _, name := range limit.Names(settings.Limits) {
		found, err := limit.Given(store).Limits(ctx, []string{name})
		if err != nil {
			return err
		}
		if len(found) == 0 {
			a.note("limit %s is not stored, and limits nothing; make it: sluice limits set %s rate=N/s --reason WHY", name, name)
		}
	}
	return nil
}
