package stat

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/feature"
	"github.com/sluice-queue/sluice/presence"
)

// Series is figures over time: those of one queue, or of several together.
type Series struct {
	// From and To are the window, in whole slots of the length Every. The slot at To may still grow.
	From, To time.Time
	Every    time.Duration
	// Counted says that the figures are known; see [Known]. Then nothing happened in a slot that is missing.
	Counted bool
	// Since is from when they are known: the first slot of the window, or the start of the first living process that serves the
	// queues and counts. A slot before it was counted by nobody. Zero: they are not known.
	Since time.Time
	// Slots are the slots, the oldest first, with the sums over the queues. A slot without any move is missing, unless it has a
	// level.
	Slots []Stat
}

// seriesRows is how many slots of single queues Over reads at most. If there are more, it takes longer slots.
const seriesRows = 100_000

// Over sums the slots of queues over a window, for a picture; see [Filter] for the defaults. Tenant chooses the slots of
// one tenant. Over takes longer slots than [Every] where stores do not keep shorter ones so long, or where there would
// be too many. It ignores Tenants and Limit.
//
// A filter that breaks a rule is a [sluice.ErrInvalid].
func Over(ctx context.Context, store sluice.Store, filter Filter) (Series, error) {
	now, err := sluice.GivenStore(store).Now(ctx)
	if err != nil {
		return Series{}, err
	}
	filter.Tenants, filter.Levels, filter.Limit = false, true, maxBuckets
	if filter = filter.until(now); filter.To.After(now) {
		filter.To = now
	}
	if window := filter.To.Sub(filter.From); window < Fine || filter.From.Before(now.Add(-HourKept-Hour)) {
		return Series{}, feature.Invalid("from", fmt.Sprintf("it must be at least %s before to, and at most %s ago", Fine, sluice.FormatDuration(HourKept)))
	}
	out := Series{}
	for _, length := range lengths(filter, now) {
		if filter.Every = length; filter.check() != nil {
			return Series{}, filter.check()
		}
		filter.From = filter.From.Truncate(length)
		out = Series{From: filter.From, To: filter.To, Every: length}
		if out.Slots, err = sums(ctx, store, filter); !errors.Is(err, errMany) {
			break
		}
	}
	if err != nil {
		return Series{}, err
	}
	holders, err := presence.Given(store).Holders(ctx)
	if out.Counted = knownOf(filter.Queues, slices.ContainsFunc(out.Slots, moved), holders, now); out.Counted {
		out.Since = out.since(filter.Queues, holders, now)
	}
	return out, err
}

// moved reports whether a job moved in a slot.
func moved(s Stat) bool { return s.Counts != (Counts{}) }

// since is the first instant of the window at which somebody counted.
func (s Series) since(queues []string, holders []presence.Holder, now time.Time) time.Time {
	first := s.To
	if i := slices.IndexFunc(s.Slots, moved); i >= 0 {
		first = s.Slots[i].At
	}
	for _, h := range holders {
		if serves(h, queues, now) && h.Counts && h.Started.Before(first) {
			first = h.Started
		}
	}
	if first.Before(s.From) {
		return s.From
	}
	return first
}

// errMany says that there are more slots than a picture reads.
var errMany = feature.Invalid("from", "too many queues moved jobs in the window; choose a queue, or a shorter window")

// lengths are the lengths of slots to try: those that are kept long enough, the best for a picture first.
func lengths(f Filter, now time.Time) (out []time.Duration) {
	if f.Every != 0 {
		return []time.Duration{f.Every}
	}
	usual := Every(f.To.Sub(f.From))
	for _, kind := range Slots() {
		if kind.Every >= usual && (now.Sub(f.From) <= kind.Kept || kind.Every == Hour) {
			out = append(out, kind.Every)
		}
	}
	return out
}

// sums reads the slots of a window, a page at a time, and adds up those of each instant.
func sums(ctx context.Context, store sluice.Store, filter Filter) (out []Stat, err error) {
	for rows := 0; ; {
		page, err := Given(store).Stats(ctx, filter)
		if err != nil {
			return nil, err
		}
		if rows += len(page); rows > seriesRows {
			return nil, errMany
		}
		whole := len(page)
		if len(page) == filter.Limit { // the last instant may go on, so the next page reads it again
			last := page[len(page)-1].At
			whole = slices.IndexFunc(page, func(s Stat) bool { return s.At.Equal(last) })
			filter.From = last
		}
		for _, s := range page[:whole] {
			if n := len(out); n == 0 || !out[n-1].At.Equal(s.At) {
				out = append(out, Stat{At: s.At, Every: s.Every, Tenant: filter.Tenant})
			}
			sum := &out[len(out)-1]
			level := sum.Level.beside(s.Level)
			sum.Merge(s)
			sum.Level = level
		}
		switch {
		case len(page) < filter.Limit:
			return out, nil
		case whole == 0: // an instant has more queues than a page
			filter.Limit *= 2
		}
	}
}

// knownOf is Known for several queues; none: for all.
func knownOf(queues []string, counted bool, holders []presence.Holder, now time.Time) bool {
	for _, h := range holders {
		if !serves(h, queues, now) {
			continue
		}
		if !h.Counts {
			return false
		}
		counted = true
	}
	return counted
}

// serves reports whether a process lives and takes jobs of one of the queues; none: of any.
func serves(h presence.Holder, queues []string, now time.Time) bool {
	if now.Sub(h.Seen) > presence.Silence || len(h.Queues) == 0 {
		return false
	}
	return len(queues) == 0 || slices.ContainsFunc(queues, func(q string) bool { return slices.Contains(h.Queues, q) })
}
