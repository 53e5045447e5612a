package schedule_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/schedule"
	"github.com/sluice-queue/sluice/store/memory"
)

var (
	act   = sluice.Act{By: "ada", Reason: "test"}
	start = time.Date(2026, 3, 28, 12, 0, 0, 0, time.UTC)
)

// clock is a store with a clock that a test sets.
type clock struct {
	*memory.Store
	now time.Time
}

func newClock() *clock {
	c := &clock{now: start}
	c.Store = memory.New(memory.Options{Now: func() time.Time { return c.now }})
	return c
}

func (c *clock) set(t *testing.T, name string, d schedule.Definition) schedule.Schedule {
	t.Helper()
	d.Queue = "q"
	s, err := schedule.Set(t.Context(), c, name, d, act)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (c *clock) fire(t *testing.T) schedule.Fired {
	t.Helper()
	fired, err := c.FireSchedules(t.Context(), 100, nil)
	if err != nil {
		t.Fatal(err)
	}
	return fired
}

func TestNextFollowsTheZoneOnDaysThatClocksChange(t *testing.T) {
	t.Parallel()
	s := newClock().set(t, "nightly", schedule.Definition{Cron: "30 2 * * *", Zone: "Europe/Berlin"})
	next, err := s.Next(start, 2)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(next), "[2026-03-29 01:00:00 +0000 UTC 2026-03-30 00:30:00 +0000 UTC]"; got != want {
		t.Errorf("next %s, want %s: the clock skips 2:30 on the first day", got, want)
	}
}

func TestInstantsAreAtWholeIntervalsAndWithinTheBounds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		d    schedule.Definition
		want string
	}{
		"an interval":             {schedule.Definition{Every: 45 * time.Minute}, "12:45 13:30 14:15"},
		"@every":                  {schedule.Definition{Cron: "@every  45m"}, "12:45 13:30 14:15"},
		"an interval from a past": {schedule.Definition{Every: time.Hour, Start: start.Add(-50 * time.Minute)}, "12:10 13:10 14:10"},
		"a start ahead":           {schedule.Definition{Every: time.Hour, Start: start.Add(5 * time.Minute)}, "12:05 13:05 14:05"},
		"a cron from a start":     {schedule.Definition{Cron: "0 * * * *", Start: start.Add(2 * time.Hour)}, "14:00 15:00 16:00"},
		"an end":                  {schedule.Definition{Every: time.Hour, End: start.Add(2 * time.Hour)}, "13:00 14:00"},
		"a number":                {schedule.Definition{Every: time.Hour, MaxFires: 1}, "13:00"},
		"a list":                  {schedule.Definition{At: []time.Time{start.Add(time.Hour), start, start.Add(time.Minute), start.Add(time.Hour)}}, "12:01 13:00"},
	} {
		next, err := newClock().set(t, "s", c.d).Next(start, 3)
		if err != nil {
			t.Fatal(err)
		}
		var all []string
		for _, at := range next {
			all = append(all, at.Format("15:04"))
		}
		if got := strings.Join(all, " "); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

func TestCheckNamesTheFieldAndTheRule(t *testing.T) {
	t.Parallel()
	hour := schedule.Definition{Queue: "q", Every: time.Hour}
	with := func(change func(*schedule.Definition)) schedule.Definition {
		d := hour
		change(&d)
		return d
	}
	for says, d := range map[string]schedule.Definition{
		"give cron, every or at":         with(func(d *schedule.Definition) { d.Every = 0 }),
		"give one of them":               with(func(d *schedule.Definition) { d.Cron = "@daily" }),
		"hour: \"25\" must be":           with(func(d *schedule.Definition) { d.Every, d.Cron = 0, "0 25 * * *" }),
		"such as 10m":                    with(func(d *schedule.Definition) { d.Every, d.Cron = 0, "@every often" }),
		"1s or more":                     with(func(d *schedule.Definition) { d.Every = time.Millisecond }),
		"IANA time zone":                 with(func(d *schedule.Definition) { d.Zone = "Mars/Olympus" }),
		"it must be JSON":                with(func(d *schedule.Definition) { d.Payload = json.RawMessage(`{{fire}}`) }),
		"has the name of the schedule":   with(func(d *schedule.Definition) { d.Labels = map[string]string{"schedule": "x"} }),
		"from 1 (first) to 10 (last)":    with(func(d *schedule.Definition) { d.Priority = 11 }),
		"must be one of skip":            with(func(d *schedule.Definition) { d.Overlap = "both" }),
		"must be one of last, all, none": with(func(d *schedule.Definition) { d.CatchUp = "some" }),
		"from 0 to 20":                   with(func(d *schedule.Definition) { d.PauseAfter = 21 }),
		"it is before the start":         with(func(d *schedule.Definition) { d.Start, d.End = start, start.Add(-1) }),
		"reserved for Sluice":            with(func(d *schedule.Definition) { d.Queue = "sluice.alerts" }),
	} {
		_, err := schedule.Set(t.Context(), newClock(), "s", d, act)
		if !errors.Is(err, sluice.ErrInvalid) || !strings.Contains(err.Error(), says) {
			t.Errorf("the error is %v, want an ErrInvalid with %q", err, says)
		}
	}
}

func TestAClockThatIsSetBackRepeatsNoFire(t *testing.T) {
	t.Parallel()
	c := newClock()
	c.set(t, "hourly", schedule.Definition{Every: time.Hour, Overlap: schedule.QueueAll})
	c.now = start.Add(time.Hour)
	if fired := c.fire(t); fired.Jobs != 1 {
		t.Fatalf("fired %+v, want one job", fired)
	}
	c.now = start.Add(30 * time.Minute)
	c.set(t, "hourly", schedule.Definition{Every: time.Hour, Overlap: schedule.QueueAll, Priority: 1})
	c.now = start.Add(61 * time.Minute)
	if fired := c.fire(t); fired.Jobs != 0 {
		t.Errorf("fired %+v, want none: the instant has been", fired)
	}
	c.now = start.Add(2 * time.Hour)
	if fired := c.fire(t); fired.Jobs != 1 {
		t.Errorf("fired %+v, want one job", fired)
	}
}

func TestALongOutageIsMadeUpForInSteps(t *testing.T) {
	t.Parallel()
	c := newClock()
	c.set(t, "often", schedule.Definition{Every: time.Second, Overlap: schedule.QueueAll})
	c.now = start.Add(2 * time.Hour)
	var all schedule.Fired
	for range 20 {
		fired := c.fire(t)
		all.Jobs, all.Missed = all.Jobs+fired.Jobs, all.Missed+fired.Missed
		if fired.Wait > 0 {
			break
		}
	}
	if all.Jobs+all.Missed != 7200 || all.Jobs != 61 {
		t.Errorf("%d jobs and %d missed fires, want the last minute's 61, and 7139", all.Jobs, all.Missed)
	}
}

func TestAKeyOfAnotherJobSkipsTheFire(t *testing.T) {
	t.Parallel()
	c := newClock()
	client := sluice.NewClient(c, sluice.ClientOptions{})
	_, err := client.Enqueue(t.Context(), sluice.NewJob{Queue: "q", Payload: json.RawMessage(`1`), EnqueueOptions: sluice.EnqueueOptions{Key: "k"}})
	if err != nil {
		t.Fatal(err)
	}
	c.set(t, "hourly", schedule.Definition{Every: time.Hour, Key: "k"})
	c.now = start.Add(time.Hour)
	if fired := c.fire(t); fired.Jobs != 0 || fired.Skipped != 1 {
		t.Errorf("fired %+v, want one skipped fire", fired)
	}
	s, err := schedule.Read(t.Context(), c, "hourly")
	if err != nil || s.Progress.Recent[0].Result != schedule.Duplicate {
		t.Errorf("recent %+v, %v, want a duplicate", s.Progress.Recent, err)
	}
}

func TestTheLastFiresAreKeptAndOthersForgotten(t *testing.T) {
	t.Parallel()
	c := newClock()
	c.set(t, "often", schedule.Definition{Every: time.Second, Overlap: schedule.CancelOther})
	c.now = start.Add(45 * time.Second)
	c.fire(t)
	s, err := schedule.Read(t.Context(), c, "often")
	if err != nil {
		t.Fatal(err)
	}
	results, err := schedule.Results(t.Context(), c, s)
	if err != nil || len(results) != schedule.RecentFires {
		t.Fatalf("%d results, %v, want %d", len(results), err, schedule.RecentFires)
	}
	if results[0].State != sluice.StateQueued || results[1].Result != schedule.Skipped || s.Progress.Fired != 1 {
		t.Errorf("results %+v, want one job at last: it would cancel all before", results[:2])
	}
}

func TestInstantsThatAStoreCutsFireOnce(t *testing.T) {
	t.Parallel()
	for name, d := range map[string]schedule.Definition{
		"list":     {At: []time.Time{start.Add(time.Second + 5)}, Overlap: schedule.QueueAll},
		"interval": {Every: time.Minute + 5, Start: start.Add(-time.Minute), Overlap: schedule.QueueAll},
	} {
		c := newClock()
		d.Queue, d.CatchUp, d.CatchUpWindow, d.Payload = "q", schedule.Last, time.Hour, json.RawMessage(`1`)
		if _, err := c.SaveSchedule(t.Context(), schedule.Schedule{Name: "s", Definition: d}, act); err != nil {
			t.Fatal(err)
		}
		c.now = start.Add(70 * time.Second)
		for range 2 {
			c.fire(t)
		}
		s, err := schedule.Read(t.Context(), c, "s")
		if err != nil || s.Progress.Fired != 1 || s.Progress.Skipped > 0 {
			t.Errorf("%s: %+v, %v, want one fire", name, s.Progress, err)
		}
	}
}
