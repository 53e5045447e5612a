package changes

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sluice-queue/sluice/internal/feature"
)

// Window is a time of day, on all days or some, in a time zone.
type Window struct {
	// From and To are times of day, such as 16:00 and 18:00. If To is before From, the window goes on past
	// midnight. 24:00 is the end of the day.
	From string `json:"from"`
	To   string `json:"to"`
	// Zone is an IANA time zone, such as Europe/Berlin, or UTC. Required.
	Zone string `json:"zone"`
	// Days are the days on which the window begins: mon, tue, wed, thu, fri, sat and sun. Default: all.
	Days []string `json:"days,omitempty"`
}

// weekdays are the names of days, in the order of time.Weekday.
var weekdays = []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}

// String writes the window as people say it.
func (w Window) String() string {
	text := w.From + " to " + w.To + " " + w.Zone
	if len(w.Days) > 0 {
		text += " on " + strings.Join(w.Days, ", ")
	}
	return text
}

// Check returns the rule that the window breaks, as an ErrInvalid.
func (w Window) Check() error {
	_, err := w.hours()
	return err
}

// At reports whether the window is open at an instant, and until when that stays so.
//
// An edge is the first instant of its day at which the zone's clocks show its time or a later one. If clocks go
// forward over the edge, the window opens or closes at that moment. If clocks go back over it, the first time
// counts.
//
// A zone that this machine does not know is an ErrInvalid. A program that imports time/tzdata knows all zones.
func (w Window) At(now time.Time) (open bool, until time.Time, err error) {
	open, _, until, err = w.span(now)
	return open, until, err
}

// span is At, and also returns since when that is so. Zero: for more than maxDaysAhead days.
func (w Window) span(now time.Time) (open bool, since, until time.Time, err error) {
	h, err := w.hours()
	if err != nil {
		return false, since, until, err
	}
	local := now.In(h.zone)
	today := time.Date(local.Year(), local.Month(), local.Day(), 0, 0, 0, 0, time.UTC) // the date alone
	for ahead := -maxDaysAhead; ahead <= maxDaysAhead; ahead++ {
		begin, end := h.on(today.AddDate(0, 0, ahead))
		switch {
		case !begin.Before(end): // the window does not open on that day
		case !end.After(now):
			since = end
		case begin.After(now):
			return false, since, begin, nil
		default:
			return true, begin, end, nil
		}
	}
	return false, since, until, nil
}

// maxDaysAhead is the farthest that a weekly window may be away, before or after, even if it is skipped once.
const maxDaysAhead = 15

// hours is a parsed window.
type hours struct {
	from, to int // minutes after midnight; to may lie on the next day
	days     [7]bool
	zone     *time.Location
}

// hours parses the window.
func (w Window) hours() (h hours, err error) {
	if h.from, err = timeOfDay("from", w.From); err != nil {
		return h, err
	}
	if h.to, err = timeOfDay("to", w.To); err != nil {
		return h, err
	}
	switch {
	case h.from == h.to:
		return h, feature.Invalid("to", fmt.Sprintf("a window from %s to %s is never open; a whole day is from 00:00 to 24:00", w.From, w.To))
	case h.from == minutesOfDay:
		return h, feature.Invalid("from", "24:00 is the end of a day; write 00:00")
	case h.to < h.from:
		h.to += minutesOfDay
	}
	for _, name := range w.Days {
		at := slices.Index(weekdays, name)
		if at < 0 {
			return h, feature.Invalid("days", fmt.Sprintf("%.20q must be one of %s", name, strings.Join(weekdays, ", ")))
		}
		h.days[at] = true
	}
	if len(w.Days) == 0 {
		h.days = [7]bool{true, true, true, true, true, true, true}
	}
	if w.Zone == "" || w.Zone == "Local" {
		return h, feature.Invalid("zone", "name a time zone, such as Europe/Berlin or UTC, because machines differ")
	}
	if h.zone, err = time.LoadLocation(w.Zone); err != nil {
		return h, feature.Invalid("zone", fmt.Sprintf("%.60q is not a time zone that this machine knows, such as Europe/Berlin or UTC", w.Zone))
	}
	return h, nil
}

// minutesOfDay is the number of minutes in a day.
const minutesOfDay = 24 * 60

// timeOfDay reads hours and minutes, as minutes after midnight.
func timeOfDay(field, text string) (int, error) {
	if text == "24:00" {
		return minutesOfDay, nil
	}
	t, err := time.Parse("15:04", text)
	if err != nil {
		return 0, feature.Invalid(field, fmt.Sprintf("%.20q is not a time of day such as 16:00", text))
	}
	return 60*t.Hour() + t.Minute(), nil
}

// on returns when the window that begins on a date opens and closes. Both are equal if no window begins then.
func (h hours) on(date time.Time) (begin, end time.Time) {
	if !h.days[date.Weekday()] {
		return begin, begin
	}
	return h.first(date, h.from), h.first(date, h.to)
}

// first returns the first instant at which the clocks show this many minutes after a date's midnight, or more.
func (h hours) first(date time.Time, minutes int) time.Time {
	shown := time.Date(date.Year(), date.Month(), date.Day(), 0, minutes, 0, 0, time.UTC)
	// Clocks change at most once in two days, so one of these two offsets is in force.
	one, two := shown.Add(-offset(shown.Add(-24*time.Hour), h.zone)), shown.Add(-offset(shown.Add(24*time.Hour), h.zone))
	if two.Before(one) {
		one, two = two, one
	}
	for _, candidate := range []time.Time{one, two} {
		if candidate.Add(offset(candidate, h.zone)).Equal(shown) {
			return candidate
		}
	}
	_, change := one.In(h.zone).ZoneBounds() // the clocks go forward over it
	return change
}

// offset returns how far the clocks of a zone are ahead of UTC.
func offset(at time.Time, zone *time.Location) time.Duration {
	_, seconds := at.In(zone).Zone()
	return time.Duration(seconds) * time.Second
}
