package cron_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluice-queue/sluice/schedule/cron"
)

func TestClocksThatChange(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		expression, zone, after string
		want                    []string
	}{
		"a fixed time in the gap fires after it": {
			"30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z",
			[]string{"2026-03-29T03:00:00+02:00", "2026-03-30T02:30:00+02:00"},
		},
		"two fixed times in the gap fire once": {
			"0,30 2 * * *", "Europe/Berlin", "2026-03-28T12:00:00Z",
			[]string{"2026-03-29T03:00:00+02:00", "2026-03-30T02:00:00+02:00"},
		},
		"a fixed time in the overlap fires once": {
			"30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z",
			[]string{"2026-10-25T02:30:00+02:00", "2026-10-26T02:30:00+01:00"},
		},
		"each real hour fires, in the overlap too": {
			"0 * * * *", "Europe/Berlin", "2026-10-24T23:30:00Z",
			[]string{"2026-10-25T02:00:00+02:00", "2026-10-25T02:00:00+01:00", "2026-10-25T03:00:00+01:00"},
		},
		"each real hour fires over the gap": {
			"0 * * * *", "Europe/Berlin", "2026-03-29T00:30:00Z",
			[]string{"2026-03-29T03:00:00+02:00", "2026-03-29T04:00:00+02:00"},
		},
		"midnight that is skipped": {
			"@daily", "Africa/Cairo", "2026-04-23T12:00:00Z",
			[]string{"2026-04-24T01:00:00+03:00", "2026-04-25T00:00:00+03:00"},
		},
		"a day that is skipped": {
			"0 12 * * *", "Pacific/Apia", "2011-12-29T12:00:00Z",
			[]string{"2011-12-29T12:00:00-10:00", "2011-12-31T00:00:00+14:00", "2011-12-31T12:00:00+14:00"},
		},
		"seconds":                     {"*/20 59 23 31 12 *", "UTC", "2026-12-31T23:59:10Z", []string{"2026-12-31T23:59:20Z", "2026-12-31T23:59:40Z", "2027-12-31T23:59:00Z"}},
		"a leap day":                  {"0 0 29 2 *", "UTC", "2096-03-01T00:00:00Z", []string{"2104-02-29T00:00:00Z"}},
		"a day of the month or week":  {"0 0 13 * fri", "UTC", "2026-11-10T00:00:00Z", []string{"2026-11-13T00:00:00Z", "2026-11-20T00:00:00Z", "2026-11-27T00:00:00Z"}},
		"a step of days and a week":   {"0 0 */10 * mon", "UTC", "2026-06-01T12:00:00Z", []string{"2026-08-31T00:00:00Z", "2026-09-21T00:00:00Z"}},
		"names, 7 and a last value":   {"0 0 * feb-mar 7", "UTC", "2026-01-01T00:00:00Z", []string{"2026-02-01T00:00:00Z", "2026-02-08T00:00:00Z"}},
		"an instant between seconds":  {"@hourly", "UTC", "2026-01-01T00:59:59.5Z", []string{"2026-01-01T01:00:00Z"}},
		"the instant itself is after": {"@hourly", "UTC", "2026-01-01T01:00:00Z", []string{"2026-01-01T02:00:00Z"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec, err := cron.Parse(c.expression)
			if err != nil {
				t.Fatal(err)
			}
			zone, err := time.LoadLocation(c.zone)
			if err != nil {
				t.Fatal(err)
			}
			at, err := time.Parse(time.RFC3339Nano, c.after)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for range c.want {
				var found bool
				if at, found = spec.Next(at, zone); !found {
					t.Fatalf("no instant after %v", got)
				}
				got = append(got, at.Format(time.RFC3339))
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func TestErrorsNameThePartAndTheRule(t *testing.T) {
	t.Parallel()
	for expression, says := range map[string]string{
		"":              "have 5 or 6 fields, and has 0",
		"* * * *":       "have 5 or 6 fields, and has 4",
		"* * * * * * *": "have 5 or 6 fields, and has 7",
		"60 * * * *":    `minute: "60" must be`,
		"* 24 * * *":    `hour: "24" must be`,
		"* * 0 * *":     `day of month: "0" must be`,
		"* * * jam *":   `month: "jam" must be`,
		"* * * * 8":     `day of week: "8" must be`,
		"5-1 * * * *":   "from the lower value to the higher",
		"*/0 * * * *":   "have a step of 1 to 59",
		"*/x * * * *":   "have a step of 1 to 59",
		"1,,2 * * * *":  `minute: "1,,2" must be`,
		"-1 * * * *":    `minute: "-1" must be`,
		"+1 * * * *":    `minute: "+1" must be`,
		"0 0 30 2 *":    "be a day that one of the months has",
		"0 0 31 4,6 *":  "be a day that one of the months has",
		"@often":        "be one of @yearly",
		"@every 5m":     "be one of @yearly",
	} {
		_, err := cron.Parse(expression)
		var wrong *cron.Error
		if !errors.As(err, &wrong) || !strings.Contains(err.Error(), says) {
			t.Errorf("%q says %v, want %q in it", expression, err, says)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{"* * * * *", "*/5 1-3,7 ? jan mon", "@daily", "0 0 29 2 *", "0-59/7 * * * * *"} {
		f.Add(text)
	}
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, text string) {
		spec, err := cron.Parse(text)
		if err != nil {
			return
		}
		if next, found := spec.Next(at, time.UTC); found && !next.After(at) || !found && !strings.Contains(text, "29") {
			t.Errorf("%q: after %s comes %s, %v", text, at, next, found)
		}
	})
}

func BenchmarkNext(b *testing.B) {
	zone, err := time.LoadLocation("America/New_York")
	if err != nil {
		b.Fatal(err)
	}
	for name, expression := range map[string]string{"fixed": "30 2 * * *", "shown": "*/5 * * * *", "rare": "0 0 29 2 *"} {
		spec, err := cron.Parse(expression)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(name, func(b *testing.B) {
			at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
			for b.Loop() {
				at, _ = spec.Next(at, zone)
				if at.Year() > 2090 {
					at = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
				}
			}
		})
	}
}
