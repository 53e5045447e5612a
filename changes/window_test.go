package changes_test

import (
	"errors"
	"testing"
	"time"
	_ "time/tzdata" // the zones that the tests speak of

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/changes"
)

func at(t *testing.T, text string) time.Time {
	t.Helper()
	instant, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return instant
}

func TestWindowOpensAndClosesByTheClocksOfItsZone(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		window      changes.Window
		after       string // the window is closed then
		begin, end  string
		beginsAgain string
	}{
		"in winter":                           {changes.Window{From: "16:00", To: "18:00", Zone: "Europe/Berlin"}, "2026-01-10T12:00:00Z", "2026-01-10T15:00:00Z", "2026-01-10T17:00:00Z", "2026-01-11T15:00:00Z"},
		"in summer":                           {changes.Window{From: "16:00", To: "18:00", Zone: "Europe/Berlin"}, "2026-07-10T12:00:00Z", "2026-07-10T14:00:00Z", "2026-07-10T16:00:00Z", "2026-07-11T14:00:00Z"},
		"past midnight":                       {changes.Window{From: "22:00", To: "02:00", Zone: "America/New_York"}, "2026-01-10T12:00:00Z", "2026-01-11T03:00:00Z", "2026-01-11T07:00:00Z", "2026-01-12T03:00:00Z"},
		"the day before the clocks go ahead":  {changes.Window{From: "16:00", To: "18:00", Zone: "Europe/Berlin"}, "2026-03-28T12:00:00Z", "2026-03-28T15:00:00Z", "2026-03-28T17:00:00Z", "2026-03-29T14:00:00Z"},
		"over the hour that is left out":      {changes.Window{From: "01:00", To: "04:00", Zone: "Europe/Berlin"}, "2026-03-28T12:00:00Z", "2026-03-29T00:00:00Z", "2026-03-29T02:00:00Z", "2026-03-29T23:00:00Z"},
		"from within the hour left out":       {changes.Window{From: "02:30", To: "04:00", Zone: "Europe/Berlin"}, "2026-03-28T12:00:00Z", "2026-03-29T01:00:00Z", "2026-03-29T02:00:00Z", "2026-03-30T00:30:00Z"},
		"to within the hour left out":         {changes.Window{From: "01:30", To: "02:30", Zone: "Europe/Berlin"}, "2026-03-28T12:00:00Z", "2026-03-29T00:30:00Z", "2026-03-29T01:00:00Z", "2026-03-29T23:30:00Z"},
		"all within the hour left out":        {changes.Window{From: "02:15", To: "02:45", Zone: "Europe/Berlin"}, "2026-03-28T12:00:00Z", "2026-03-30T00:15:00Z", "2026-03-30T00:45:00Z", "2026-03-31T00:15:00Z"},
		"over the hour that comes twice":      {changes.Window{From: "01:00", To: "04:00", Zone: "Europe/Berlin"}, "2026-10-24T12:00:00Z", "2026-10-24T23:00:00Z", "2026-10-25T03:00:00Z", "2026-10-26T00:00:00Z"},
		"from within the hour twice":          {changes.Window{From: "02:30", To: "04:00", Zone: "Europe/Berlin"}, "2026-10-24T12:00:00Z", "2026-10-25T00:30:00Z", "2026-10-25T03:00:00Z", "2026-10-26T01:30:00Z"},
		"all within the hour twice":           {changes.Window{From: "02:15", To: "02:45", Zone: "Europe/Berlin"}, "2026-10-24T12:00:00Z", "2026-10-25T00:15:00Z", "2026-10-25T00:45:00Z", "2026-10-26T01:15:00Z"},
		"from a midnight that is left out":    {changes.Window{From: "00:00", To: "06:00", Zone: "America/Santiago"}, "2026-09-05T12:00:00Z", "2026-09-06T04:00:00Z", "2026-09-06T09:00:00Z", "2026-09-07T03:00:00Z"},
		"half an hour's change":               {changes.Window{From: "01:45", To: "02:15", Zone: "Australia/Lord_Howe"}, "2026-04-04T12:00:00Z", "2026-04-04T14:45:00Z", "2026-04-04T15:45:00Z", "2026-04-05T15:15:00Z"},
		"on some days":                        {changes.Window{From: "09:00", To: "17:00", Zone: "UTC", Days: []string{"mon", "fri"}}, "2026-01-10T12:00:00Z", "2026-01-12T09:00:00Z", "2026-01-12T17:00:00Z", "2026-01-16T09:00:00Z"},
		"a whole day":                         {changes.Window{From: "00:00", To: "24:00", Zone: "UTC", Days: []string{"sun"}}, "2026-01-10T12:00:00Z", "2026-01-11T00:00:00Z", "2026-01-12T00:00:00Z", "2026-01-18T00:00:00Z"},
		"once a week, but for the week of it": {changes.Window{From: "02:15", To: "02:45", Zone: "Europe/Berlin", Days: []string{"sun"}}, "2026-03-23T12:00:00Z", "2026-04-05T00:15:00Z", "2026-04-05T00:45:00Z", "2026-04-12T00:15:00Z"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			begin, end := at(t, c.begin), at(t, c.end)
			for _, look := range []struct {
				when, until time.Time
				open        bool
			}{
				{at(t, c.after), begin, false},
				{begin.Add(-time.Microsecond), begin, false},
				{begin, end, true},
				{end.Add(-time.Microsecond), end, true},
				{end, at(t, c.beginsAgain), false},
			} {
				open, until, err := c.window.At(look.when)
				if err != nil || open != look.open || !until.Equal(look.until) {
					t.Errorf("at %s it is open: %v, until %s, %v; want %v until %s", look.when, open, until.UTC(), err, look.open, look.until)
				}
			}
		})
	}
}

func TestWindowThatMakesNoSenseIsRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		window changes.Window
		field  string
	}{
		{changes.Window{From: "16:00", To: "18:00"}, "zone"},
		{changes.Window{From: "16:00", To: "18:00", Zone: "Local"}, "zone"},
		{changes.Window{From: "16:00", To: "18:00", Zone: "Mars/Olympus"}, "zone"},
		{changes.Window{From: "16:00", To: "18:00", Zone: "../etc/passwd"}, "zone"},
		{changes.Window{From: "4 pm", To: "18:00", Zone: "UTC"}, "from"},
		{changes.Window{From: "24:00", To: "18:00", Zone: "UTC"}, "from"},
		{changes.Window{From: "16:00", To: "25:00", Zone: "UTC"}, "to"},
		{changes.Window{From: "16:00", To: "16:00", Zone: "UTC"}, "to"},
		{changes.Window{From: "16:00", To: "18:00", Zone: "UTC", Days: []string{"monday"}}, "days"},
	} {
		var invalid *sluice.InvalidError
		if err := c.window.Check(); !errors.As(err, &invalid) || invalid.Field != c.field {
			t.Errorf("%+v: %v, want one of %s", c.window, err, c.field)
		}
	}
}

// TestScheduledChangeThatIsLateTellsSinceWhen covers windows that upkeep has not opened or closed yet, and a window
// that was made while it was open.
func TestScheduledChangeThatIsLateTellsSinceWhen(t *testing.T) {
	t.Parallel()
	weekly := &changes.Window{From: "16:00", To: "18:00", Zone: "Europe/Berlin", Days: []string{"mon"}}
	long, now := at(t, "2026-01-01T00:00:00Z"), at(t, "2026-03-02T16:30:00Z") // a Monday
	for name, c := range map[string]struct {
		change changes.Change
		now    time.Time
		want   string
	}{
		"not opened":              {changes.Change{Window: weekly, MadeAt: long}, now, "2026-03-02T15:00:00Z"},
		"made while it was open":  {changes.Change{Window: weekly, MadeAt: at(t, "2026-03-02T16:10:00Z")}, now, "2026-03-02T16:10:00Z"},
		"open, as it should be":   {changes.Change{Window: weekly, MadeAt: long, Open: true}, now, "2026-03-02T17:00:00Z"},
		"not closed":              {changes.Change{Window: weekly, MadeAt: long, Open: true}, now.Add(50 * time.Hour), "2026-03-02T17:00:00Z"},
		"not closed for six days": {changes.Change{Window: weekly, MadeAt: long, Open: true}, now.Add(6 * 24 * time.Hour), "2026-03-02T17:00:00Z"},
		"closed, as it should be": {changes.Change{Window: weekly, MadeAt: long}, now.Add(50 * time.Hour), "2026-03-09T15:00:00Z"},
		"not reverted":            {changes.Change{RevertAt: long, MadeAt: long}, now, "2026-01-01T00:00:00Z"},
	} {
		if next, err := c.change.Next(c.now); err != nil || !next.Equal(at(t, c.want)) {
			t.Errorf("%s: %s, %v; want %s", name, next, err, c.want)
		}
	}
}
