package draw_test

import (
	"math"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/cmd/internal/draw"
)

func TestSparklineShowsTheLargestAtFullHeightAndNoneFlat(t *testing.T) {
	t.Parallel()
	for want, values := range map[string][]float64{
		"":       nil,
		"▁▁":     {0, 0},
		"▁▅█":    {0, 50, 100},
		"▁▂█":    {0, 0.001, 100},
		"·█·":    {math.NaN(), 1, math.NaN()},
		"▁▁▁▁▁█": {0, 0, 0, 0, 0, 1},
	} {
		if got := draw.Sparkline(values); got != want {
			t.Errorf("%v: %q, want %q", values, got, want)
		}
	}
}

func TestNumbersAreGroupedAndShortened(t *testing.T) {
	t.Parallel()
	for n, want := range map[int][2]string{
		0: {"0", "0"}, 999: {"999", "999"}, 1000: {"1 000", "1 000"}, 1234: {"1 234", "1 234"}, -123: {"-123", "-123"}, -1234567: {"-1 234 567", "-1 234 567"},
		99_999: {"99 999", "99 999"}, 123_456: {"123 456", "123k"}, 12_345_678: {"12 345 678", "12M"},
	} {
		if long, short := draw.Count(n), draw.ShortCount(n); long != want[0] || short != want[1] {
			t.Errorf("%d: %q and %q, want %q", n, long, short, want)
		}
	}
}

func TestDurationsHaveOneOrTwoUnits(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration][2]string{
		0:                       {"0ms", "0µs"},
		800 * time.Microsecond:  {"0ms", "800µs"},
		12 * time.Millisecond:   {"12ms", "12ms"},
		2500 * time.Millisecond: {"2s", "2.5s"},
		125 * time.Second:       {"2m05s", "2m05s"},
		59 * time.Second:        {"59s", "59.0s"},
		25 * time.Hour:          {"25h00m", "25h00m"},
		61 * time.Minute:        {"1h01m", "1h01m"},
		49 * time.Hour:          {"2d", "2d"},
		math.MaxInt64:           {"over 292y", "over 292y"},
	} {
		if plain, fine := draw.Duration(d), draw.FineDuration(d); plain != want[0] || fine != want[1] {
			t.Errorf("%s: %q and %q, want %q", d, plain, fine, want)
		}
	}
}

func TestBarsGoToAnEighthOfACell(t *testing.T) {
	t.Parallel()
	for length, want := range map[float64]string{0: "", 0.25: "▎", 2: "██", 1.5: "█▌"} {
		if got := draw.Blocks(length); got != want {
			t.Errorf("%v: %q, want %q", length, got, want)
		}
	}
}

func TestOneOfANounIsNoPlural(t *testing.T) {
	t.Parallel()
	for want, of := range map[string]struct {
		n    int
		noun string
	}{
		"1 job": {1, "job"}, "0 jobs": {0, "job"}, "12 345 jobs": {12345, "job"}, "1 entry": {1, "entry"}, "2 entries": {2, "entry"},
		"2 keys": {2, "key"}, "2 days": {2, "day"}, "2 processes": {2, "process"}, "1 batch": {1, "batch"}, "3 batches": {3, "batch"},
	} {
		if got := draw.Plural(of.n, of.noun); got != want {
			t.Errorf("%d %s: %q, want %q", of.n, of.noun, got, want)
		}
	}
}

func TestShareOfNothingIsADash(t *testing.T) {
	t.Parallel()
	if got := draw.Share(1, 1, 0); got != "-" {
		t.Errorf("of nothing: %q", got)
	}
	if got := draw.Share(2, 0.1234, 5); got != "12.34 %" {
		t.Errorf("of something: %q", got)
	}
}

func TestAShareIsAllOrNothingOnlyIfItIs(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		digits int
		share  float64
		want   string
	}{
		{0, 0, "0"},
		{0, 1e-9, "1"},
		{0, 0.004, "1"},
		{0, 0.294, "29"},
		{0, 0.996, "99"},
		{0, 1 - 1e-9, "99"},
		{0, 1, "100"},
		{0, 1.2, "120"},
		{1, 0.0001, "0.1"},
		{1, 0.5, "50.0"},
		{1, 0.9996, "99.9"},
		{1, 1, "100.0"},
		{1, 1 - 1e-15, "100.0"},
		{2, 0.99999, "99.99"},
	} {
		if got := draw.Percent(c.digits, c.share); got != c.want {
			t.Errorf("%g with %d digits: %s, want %s", c.share, c.digits, got, c.want)
		}
	}
}

func TestStatesAreNamedWhenThereAreSeveralOrJobsAreInFlight(t *testing.T) {
	t.Parallel()
	for want, jobs := range map[string]map[sluice.State]int{
		"":                                      {sluice.StateDead: 4},
		"17 claimed":                            {sluice.StateClaimed: 17},
		draw.Count(1300) + " queued, 2 claimed": {sluice.StateClaimed: 2, sluice.StateQueued: 1300},
	} {
		if got := draw.States(jobs); got != want {
			t.Errorf("%v: %q, want %q", jobs, got, want)
		}
	}
}
