package cron_test

import (
	"archive/zip"
	"flag"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluice-queue/sluice/schedule/cron"
)

var (
	seed = flag.Uint64("cron-seed", 0, "repeat a failed comparison")
	many = flag.Int("cron-many", 200, "how many expressions to compare with the oracle")
)

// expression is a cron expression as sets of numbers, which no parser has read.
type expression struct {
	text                             string
	minutes, hours, days, months     []int
	weekdays                         []int
	anyDay, anyWeekday, wildcardHour bool
}

// draw makes a random expression.
func draw(r *rand.Rand) expression {
	var e expression
	part := func(min, max int, wild float64) (string, []int, bool) {
		switch p := r.Float64(); {
		case p < wild:
			return "*", every(min, max, 1), true
		case p < wild+0.1:
			step := 2 + r.IntN(max/3)
			return fmt.Sprintf("*/%d", step), every(min, max, step), true
		case p < wild+0.3:
			from := min + r.IntN(max-min)
			to := from + 1 + r.IntN(max-from)
			return fmt.Sprintf("%d-%d", from, to), every(from, to, 1), false
		}
		set := []int{min + r.IntN(max-min+1), min + r.IntN(max-min+1)}
		return fmt.Sprintf("%d,%d", set[0], set[1]), set, false
	}
	var texts [5]string
	texts[0], e.minutes, _ = part(0, 59, 0.1)
	texts[1], e.hours, e.wildcardHour = part(0, 23, 0.3)
	texts[2], e.days, e.anyDay = part(1, 31, 0.7)
	texts[3], e.months, _ = part(1, 12, 0.9)
	texts[4], e.weekdays, e.anyWeekday = part(0, 6, 0.7)
	e.text = strings.Join(texts[:], " ")
	return e
}

func every(from, to, step int) (out []int) {
	for v := from; v <= to; v += step {
		out = append(out, v)
	}
	return out
}

// shows reports whether the expression matches a time of a local clock.
func (e expression) shows(year int, month time.Month, day, hour, minute int) bool {
	onDay := slices.Contains(e.days, day)
	onWeekday := slices.Contains(e.weekdays, int(time.Date(year, month, day, 12, 0, 0, 0, time.UTC).Weekday()))
	fits := onDay && onWeekday
	if !e.anyDay && !e.anyWeekday {
		fits = onDay || onWeekday
	}
	return fits && slices.Contains(e.months, int(month)) && slices.Contains(e.hours, hour) && slices.Contains(e.minutes, minute)
}

// fires goes through each minute of real time, and returns the minutes in which the expression fires.
func (e expression) fires(from, to time.Time, zone *time.Location) (at []time.Time) {
	shown := make(map[string]bool)
	const clock = "2006-01-02 15:04"
	var before time.Time // the local time a minute before, as if in UTC
	for t := from.Add(-26 * time.Hour); t.Before(to); t = t.Add(time.Minute) {
		local := t.In(zone)
		text := local.Format(clock)
		now, err := time.Parse(clock, text)
		if err != nil {
			panic(err)
		}
		due := e.shows(local.Year(), local.Month(), local.Day(), local.Hour(), local.Minute())
		if !e.wildcardHour {
			due = due && !shown[text]
			for skipped := before.Add(time.Minute); !before.IsZero() && skipped.Before(now); skipped = skipped.Add(time.Minute) {
				due = due || e.shows(skipped.Year(), skipped.Month(), skipped.Day(), skipped.Hour(), skipped.Minute())
			}
		}
		shown[text], before = true, now
		if due && !t.Before(from) {
			at = append(at, t)
		}
	}
	return at
}

// zones lists all time zones that Go knows.
func zones(t *testing.T) (names []string) {
	t.Helper()
	root, err := exec.CommandContext(t.Context(), "go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	archive, err := zip.OpenReader(filepath.Join(strings.TrimSpace(string(root)), "lib", "time", "zoneinfo.zip"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = archive.Close() }()
	for _, file := range archive.File {
		if !strings.HasSuffix(file.Name, "/") {
			names = append(names, file.Name)
		}
	}
	return names
}

// changes lists the clock changes of a time zone in 30 years.
func changes(zone *time.Location) (at []time.Time) {
	end := time.Date(2035, 1, 1, 0, 0, 0, 0, time.UTC)
	for t := time.Date(2005, 1, 1, 0, 0, 0, 0, time.UTC).In(zone); ; {
		_, change := t.ZoneBounds()
		if change.IsZero() || change.After(end) {
			return at
		}
		at = append(at, change)
		t = change.In(zone)
	}
}

func TestFiresAsASlowOracleSaysAroundAllChangesOfClocks(t *testing.T) {
	t.Parallel()
	start := *seed
	if start == 0 {
		start = uint64(time.Now().UnixNano())
	}
	names := zones(t)
	compare := func(n uint64) {
		r := rand.New(rand.NewPCG(n, 1))
		zone, err := time.LoadLocation(names[r.IntN(len(names))])
		if err != nil {
			t.Fatal(err)
		}
		around := time.Date(2005+r.IntN(30), 1, 1+r.IntN(365), 0, 0, 0, 0, time.UTC)
		if all := changes(zone); len(all) > 0 {
			around = all[r.IntN(len(all))]
		}
		from := around.Add(-time.Duration(r.IntN(40)) * time.Hour).Truncate(time.Minute)
		to := around.Add(30 * time.Hour)
		e := draw(r)
		spec, err := cron.Parse(e.text)
		if err != nil {
			if !strings.Contains(err.Error(), "be a day that one of the months has") {
				t.Fatalf("-cron-seed=%d: %q: %v", n, e.text, err)
			}
			return
		}
		want := e.fires(from, to, zone)
		var got []time.Time
		for at, found := spec.Next(from.Add(-time.Second), zone); found && at.Before(to); at, found = spec.Next(at, zone) {
			got = append(got, at)
		}
		if !slices.EqualFunc(got, want, time.Time.Equal) {
			t.Fatalf("-cron-seed=%d: %q in %s, from %s to %s:\ngot  %v\nwant %v", n, e.text, zone, from.In(zone), to.In(zone), got, want)
		}
	}
	if *seed != 0 {
		compare(start)
		return
	}
	for i := range uint64(*many) {
		compare(start + i)
	}
}
