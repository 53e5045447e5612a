package schedule

import (
	"slices"
	"strings"
	"sync"
	"time"
	_ "time/tzdata" // time zones, on machines that have none

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/internal/feature"
	"github.com/sluice-queue/sluice/schedule/cron"
)

// timing finds the instants of a definition.
type timing struct {
	cron       *cron.Expression // nil: every or at says when
	zone       *time.Location
	every      time.Duration
	at         []time.Time
	start, end time.Time
}

// everyPrefix begins a cron expression that is an interval.
const everyPrefix = "@every "

// timing reads when a definition fires.
func (d Definition) timing() (timing, error) {
	t := timing{every: d.Every, at: instants(d.At), start: feature.Instant(d.Start), end: feature.Instant(d.End)}
	if d.Cron == "" && d.Every == 0 && len(d.At) == 0 {
		return t, feature.Invalid("cron", "the schedule must say when it fires: give cron, every or at")
	}
	if given(d.Cron != "")+given(d.Every != 0)+given(len(d.At) > 0) > 1 {
		return t, feature.Invalid("cron", "cron, every and at say the same thing; give one of them")
	}
	var err error
	if t.zone, err = loadZone(d.Zone); err != nil || d.Zone == "Local" {
		return t, feature.Invalid("zone", "it must be the name of an IANA time zone, such as Europe/Berlin")
	}
	if interval, found := strings.CutPrefix(d.Cron, everyPrefix); found {
		if t.every, err = sluice.ParseDuration(strings.TrimSpace(interval)); err != nil {
			return t, feature.Invalid("cron", "@every must be followed by a duration, such as 10m")
		}
	} else if d.Cron != "" {
		spec, err := cron.Parse(d.Cron)
		if err != nil {
			return t, feature.Invalid("cron", err.Error())
		}
		t.cron = &spec
	}
	if (d.Every != 0 || t.every != 0) && t.every < time.Second {
		return t, feature.Invalid("every", "the interval must be 1s or more")
	}
	t.every = t.every.Truncate(time.Microsecond) // a store would cut an instant, and find it again as the next
	return t, nil
}

// zones keeps the time zones that were read, by name: each reading opens a file, for each schedule that fires.
var zones sync.Map

func loadZone(name string) (*time.Location, error) {
	if zone, found := zones.Load(name); found {
		return zone.(*time.Location), nil
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, err
	}
	zones.Store(name, zone)
	return zone, nil
}

func given(set bool) int {
	if set {
		return 1
	}
	return 0
}

// next returns the first instant after another. False: there is none.
func (t timing) next(after time.Time) (time.Time, bool) {
	if !t.start.IsZero() && after.Before(t.start) {
		after = t.start.Add(-time.Microsecond) // the start itself may be the first
	}
	at, found := t.unbounded(after)
	if !found || !t.end.IsZero() && at.After(t.end) {
		return time.Time{}, false
	}
	return feature.Instant(at), true
}

// unbounded is next without regard to start and end.
func (t timing) unbounded(after time.Time) (time.Time, bool) {
	switch {
	case t.cron != nil:
		return t.cron.Next(after, t.zone)
	case t.every > 0:
		from := t.start
		if from.IsZero() {
			from = time.Unix(0, 0)
		}
		passed := after.Sub(from)
		if passed < 0 {
			return from, true
		}
		return after.Add(t.every - passed%t.every), true
	}
	place := slices.IndexFunc(t.at, func(at time.Time) bool { return at.After(after) })
	if place < 0 {
		return time.Time{}, false
	}
	return t.at[place], true
}

// Next returns the next n fires after an instant, fewer if the schedule ends before. A pause changes nothing of it.
func (s Schedule) Next(after time.Time, n int) ([]time.Time, error) {
	t, err := s.timing()
	if err != nil {
		return nil, err
	}
	if s.MaxFires > 0 {
		n = min(n, s.MaxFires-s.Progress.Fired)
	}
	var all []time.Time
	for len(all) < n {
		at, found := t.next(after)
		if !found {
			break
		}
		all, after = append(all, at), at
	}
	return all, nil
}
