package cron

import (
	"math/bits"
	"time"
)

// horizon is how far Next looks: 29 February may be 8 years away, and on a certain day of the week 40.
const horizon = 41

// Next returns the first instant after another at which the expression fires in a time zone. It returns false if there is
// none within 41 years.
func (s Expression) Next(after time.Time, zone *time.Location) (time.Time, bool) {
	if s.everyHour {
		return s.nextShown(after, zone)
	}
	return s.nextFixed(after, zone)
}

// nextShown finds the first instant at which the local clock shows a matching time. Between two changes of the clock, it
// runs evenly.
func (s Expression) nextShown(after time.Time, zone *time.Location) (time.Time, bool) {
	from := after.Truncate(time.Second).Add(time.Second).In(zone)
	for end := after.AddDate(horizon, 0, 0); from.Before(end); {
		_, change := from.ZoneBounds()
		local, found := s.nextLocal(wall(from))
		if !found {
			return time.Time{}, false
		}
		at := from.Add(local.Sub(wall(from)))
		if change.IsZero() || at.Before(change) {
			return at, true
		}
		from = change.In(zone)
	}
	return time.Time{}, false
}

// nextFixed finds the first instant of a matching local time. Later local times never have an earlier instant.
func (s Expression) nextFixed(after time.Time, zone *time.Location) (time.Time, bool) {
	local := wall(after.In(zone).Truncate(time.Second))
	for {
		var found bool
		if local, found = s.nextLocal(local); !found {
			return time.Time{}, false
		}
		if at := first(local, zone); at.After(after) {
			return at, true
		}
		local = local.Add(time.Second)
	}
}

// wall returns what the local clock shows, as if it were UTC.
func wall(t time.Time) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), 0, time.UTC)
}

// first returns the first instant at which a zone's clock shows a local time, or the end of the gap that skips it.
func first(local time.Time, zone *time.Location) time.Time {
	// No zone is further from UTC than a day, so the clock's changes around the local time are within two.
	at := local.Add(-26 * time.Hour).In(zone)
	for {
		_, change := at.ZoneBounds()
		_, offset := at.Zone()
		shows := local.Add(-time.Duration(offset) * time.Second)
		if change.IsZero() || shows.Before(change) {
			if begin, _ := at.ZoneBounds(); shows.Before(begin) {
				return begin.In(zone) // the clock skipped it
			}
			return shows.In(zone)
		}
		at = change.In(zone)
	}
}

// nextLocal returns the first matching time that is not before another, without regard to zones.
func (s Expression) nextLocal(from time.Time) (time.Time, bool) {
	year, month, day := from.Date()
	hour, minute, second := from.Clock()
	for last := year + horizon; year <= last; {
		if s.month&(1<<month) == 0 || !s.matchesDay(year, month, day) {
			next := time.Date(year, month, day+1, 0, 0, 0, 0, time.UTC)
			if s.month&(1<<month) == 0 {
				next = time.Date(year, month+1, 1, 0, 0, 0, 0, time.UTC)
			}
			year, month, day = next.Date()
			hour, minute, second = 0, 0, 0
			continue
		}
		if h, m, sec, found := s.clock(hour, minute, second); found {
			return time.Date(year, month, day, h, m, sec, 0, time.UTC), true
		}
		year, month, day = time.Date(year, month, day+1, 0, 0, 0, 0, time.UTC).Date()
		hour, minute, second = 0, 0, 0
	}
	return time.Time{}, false
}

// matchesDay reports whether the expression fires on a day. Two restricted fields are alternatives.
func (s Expression) matchesDay(year int, month time.Month, day int) bool {
	byDay := s.day&(1<<day) != 0
	byWeekday := s.weekday&(1<<time.Date(year, month, day, 0, 0, 0, 0, time.UTC).Weekday()) != 0
	if s.anyDay || s.anyWeekday {
		return byDay && byWeekday
	}
	return byDay || byWeekday
}

// clock returns the first matching time of day that is not before another.
func (s Expression) clock(hour, minute, second int) (h, m, sec int, found bool) {
	for h := atLeast(s.hour, hour); h < 24; h = atLeast(s.hour, h+1) {
		if h > hour {
			minute, second = 0, 0
		}
		for m := atLeast(s.minute, minute); m < 60; m = atLeast(s.minute, m+1) {
			if m > minute || h > hour {
				second = 0
			}
			if sec := atLeast(s.second, second); sec < 60 {
				return h, m, sec, true
			}
			second = 0
		}
	}
	return 0, 0, 0, false
}

// atLeast returns the lowest value of a set that is not below another; 64: there is none.
func atLeast(set uint64, value int) int {
	return bits.TrailingZeros64(set &^ (1<<value - 1))
}
