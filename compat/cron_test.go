package compat

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	robfig "github.com/robfig/cron/v3"

	"github.com/sluice-queue/sluice/schedule/cron"
)

var (
	cronSeed = flag.Uint64("cron-seed", 0, "repeat a failed comparison of cron expressions")
	cronMany = flag.Int("cron-many", 1000, "how many cron expressions to compare")
)

// cronZones change their clocks by an hour, by half an hour, at midnight, seldom, or never. Pacific/Apia is missing. It
// left out the 30th of December 2011, and robfig/cron searches that day's midnight for ever.
var cronZones = []string{
	"UTC", "Europe/Berlin", "Europe/Dublin", "America/New_York", "America/St_Johns", "America/Sao_Paulo", "America/Santiago", "Africa/Cairo",
	"Africa/Casablanca", "Asia/Tehran", "Asia/Kathmandu", "Asia/Kolkata", "Asia/Gaza", "Australia/Lord_Howe", "Pacific/Chatham",
	"Antarctica/Troll",
}

// drawCron makes a random expression of 5 or 6 fields that both libraries read alike. They differ in one rule: for us,
// `*/2` does not restrict the day, as in Vixie's cron. So an expression never combines such a step in the day of the
// month with a day of the week.
func drawCron(r *rand.Rand) (text string, seconds bool) {
	value := func(low, high int) int { return low + r.IntN(high-low+1) }
	part := func(low, high int) string {
		from := value(low, high-1)
		switch r.IntN(5) {
		case 0:
			return fmt.Sprint(value(low, high))
		case 1:
			return fmt.Sprintf("%d-%d", from, value(from, high))
		case 2:
			return fmt.Sprintf("*/%d", value(2, max(2, high/3)))
		case 3:
			return fmt.Sprintf("%d-%d/%d", from, value(from, high), value(1, 5))
		}
		return fmt.Sprintf("%d,%d,%d", value(low, high), value(low, high), value(low, high))
	}
	usually := func(chance float64, low, high int) string {
		if r.Float64() < chance {
			return "*"
		}
		return part(low, high)
	}
	fields := []string{usually(0.1, 0, 59), usually(0.3, 0, 23), usually(0.6, 1, 28), usually(0.8, 1, 12), usually(0.6, 0, 6)}
	if strings.HasPrefix(fields[2], "*/") {
		fields[4] = "*"
	}
	if strings.HasPrefix(fields[4], "*/") {
		fields[2] = "*"
	}
	if r.IntN(5) == 0 {
		fields[3] = []string{"jan", "feb-apr", "DEC", "mar,sep"}[r.IntN(4)]
	}
	if r.IntN(5) == 0 {
		fields[4] = []string{"mon-fri", "SUN", "tue,thu"}[r.IntN(3)]
		if strings.HasPrefix(fields[2], "*/") {
			fields[2] = "?"
		}
	}
	if seconds = r.IntN(4) == 0; seconds {
		fields = append([]string{part(0, 59)}, fields...)
	}
	return strings.Join(fields, " "), seconds
}

// steadyTime returns the longest time from an instant on, at most 40 days, in which both libraries must agree. It
// begins at least a month after a change of the clock, and ends at least a day before the next one. The month is for
// robfig/cron, which counts from the first midnight of the month. If the clock skipped that midnight, robfig/cron
// misses the first hour of later months.
func steadyTime(from time.Time, zone *time.Location) (begin, end time.Time) {
	const (
		day   = 24 * time.Hour
		month = 32 * day
	)
	for begin = from; ; {
		began, changes := begin.In(zone).ZoneBounds()
		if !began.IsZero() && begin.Sub(began) < month {
			begin = began.Add(month)
			continue
		}
		end = begin.Add(40 * day)
		if !changes.IsZero() && changes.Add(-day).Before(end) {
			end = changes.Add(-day)
		}
		if end.After(begin) {
			return begin, end
		}
		begin = changes.Add(day)
	}
}

// nth returns the instant of a fire, or the zero time if there is no such fire.
func nth(fires []time.Time, i int) time.Time {
	if i >= len(fires) {
		return time.Time{}
	}
	return fires[i]
}

// People bring expressions for robfig/cron, the usual library. On days without a change of clocks, both libraries must
// fire at the same instants. Package schedule/cron has the rules for other days.
func TestCronFiresAtTheInstantsOfRobfigCronWhileNoClockChanges(t *testing.T) {
	t.Parallel()
	start := *cronSeed
	if start == 0 {
		start = uint64(time.Now().UnixNano())
	}
	compared := 0
	compare := func(seed uint64) {
		r := rand.New(rand.NewPCG(seed, 1))
		zone, err := time.LoadLocation(cronZones[r.IntN(len(cronZones))])
		if err != nil {
			t.Fatal(err)
		}
		text, seconds := drawCron(r)
		ours, err := cron.Parse(text)
		if err != nil {
			t.Fatalf("-cron-seed=%d: %q: %v", seed, text, err)
		}
		parse := robfig.ParseStandard
		if seconds {
			parse = robfig.NewParser(robfig.Second | robfig.Minute | robfig.Hour | robfig.Dom | robfig.Month | robfig.Dow).Parse
		}
		theirs, err := parse(text)
		if err != nil {
			t.Fatalf("-cron-seed=%d: %q: robfig/cron: %v", seed, text, err)
		}
		begin, end := steadyTime(time.Unix(1e9+r.Int64N(1e9), 0).UTC(), zone)
		var got, want []time.Time
		for at, found := ours.Next(begin, zone); found && at.Before(end) && len(got) < 500; at, found = ours.Next(at, zone) {
			got = append(got, at)
		}
		for at := theirs.Next(begin.In(zone)); !at.IsZero() && at.Before(end) && len(want) < 500; at = theirs.Next(at) {
			want = append(want, at)
		}
		for i := range max(len(got), len(want)) {
			if g, w := nth(got, i), nth(want, i); !g.Equal(w) {
				t.Fatalf("-cron-seed=%d: %q in %s, from %s to %s: fire %d is at %v, want %v", seed, text, zone, begin.In(zone), end.In(zone), i+1, g, w)
			}
		}
		compared += len(want)
	}
	if *cronSeed != 0 {
		compare(start)
		return
	}
	for i := range uint64(*cronMany) {
		compare(start + i)
	}
	if compared < *cronMany {
		t.Errorf("%d instants of %d expressions were compared, want more", compared, *cronMany)
	}
}
