package forecast

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/feature"
	"github.com/sluice-queue/sluice/limit"
)

// sharedBy reads the named limits that queues share now or later, if any does.
func sharedBy(ctx context.Context, store sluice.Store, queues []sluice.Queue, later map[string]ahead) (map[string]limit.Use, error) {
	var names []string
	for _, q := range queues {
		for _, version := range append([]sluice.Queue{q}, later[q.Name].versions...) {
			names = append(names, limit.Names(version.Settings.Limits)...)
		}
	}
	if len(names) == 0 {
		return nil, nil
	}
	slices.Sort(names)
	uses, err := limit.Uses(ctx, store, slices.Compact(names)...)
	if err != nil {
		return nil, err
	}
	of := make(map[string]limit.Use, len(uses))
	for _, use := range uses {
		of[use.Limit.Name] = use
	}
	return of, nil
}

// addShared adds the limits that the queue shares with others. How much others will take is not known, so the queue gets all that
// they do not hold now. What a limit counts of keys and costs is left out: the count of waiting jobs does not have them.
func (f *queueFlow) addShared(q sluice.Queue, counted QueueCounts, shared map[string]limit.Use, now time.Time) {
	var leftOut []string
	for _, name := range limit.Names(q.Settings.Limits) {
		use, stored := shared[name]
		if !stored { // it limits nothing
			continue
		}
		f.addClosed(use.Limit, counted, now)
		if use.Limit.PerKey || use.Limit.ByCost {
			leftOut = append(leftOut, name)
			continue
		}
		f.addNamed(use, counted)
		if others := slices.DeleteFunc(slices.Clone(use.Queues), func(queue string) bool { return queue == q.Name }); len(others) > 0 {
			f.notes = append(f.notes, fmt.Sprintf("it shares the limit %s with %s; the forecast supposes that it gets all of it from now on", name, strings.Join(others, ", ")))
		}
	}
	if len(leftOut) > 0 {
		f.notes = append(f.notes, "the forecast leaves out limits that count keys or costs: "+strings.Join(leftOut, ", "))
	}
}

// addNamed adds the rate and the concurrency of a limit that counts each job as one.
func (f *queueFlow) addNamed(use limit.Use, counted QueueCounts) {
	if rate := use.Limit.Rate; !rate.IsZero() {
		f.add(rateLimit("rate of "+use.Limit.Name, rate, use.Limit.Burst, 1), counted.Due.Jobs > 0 || use.Wait > 0, "rate", fmt.Sprintf("%s by limit %s", rate, use.Limit.Name))
	}
	says := fmt.Sprintf("concurrency %d by limit %s", use.Limit.Concurrency, use.Limit.Name)
	switch {
	case use.Limit.Concurrency == 0 || counted.CountedAt.IsZero():
	case f.runTime <= 0:
		f.noteNoRunTime(says)
	default:
		f.addPlaces("places of "+use.Limit.Name, use.Limit.Concurrency, use.InFlight, says)
	}
}

// addClosed makes jobs wait until a closed limit opens.
func (f *queueFlow) addClosed(l limit.Limit, counted QueueCounts, now time.Time) {
	switch {
	case !l.ClosedAt(now):
	case l.ClosedUntil.IsZero():
		f.opens = math.Inf(1)
		f.notes = append(f.notes, "its limit "+l.Name+" is closed, so that nothing starts before somebody opens it")
	default:
		f.opens = math.Max(f.opens, l.ClosedUntil.Sub(counted.CountedAt).Seconds())
		f.notes = append(f.notes, "its limit "+l.Name+" is closed until "+feature.InstantText(l.ClosedUntil))
	}
}
