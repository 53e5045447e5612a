package console_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/sluice-queue/sluice/cmd/console"
)

// TestASmallPictureHasAGapWhereNobodyCounted: a line over a gap would show figures that nobody knows.
func TestASmallPictureHasAGapWhereNobodyCounted(t *testing.T) {
	t.Parallel()
	zero, full := 0.0, 1.0
	got := console.SparkOf(&zero, &full, nil, nil, &full, nil, &zero)
	want := []string{"0.0,23.0 16.7,1.0", "65.7,1.0 67.7,1.0", "99.0,23.0 101.0,23.0"}
	if !slices.Equal(got, want) {
		t.Errorf("the lines are %q, want %q", got, want)
	}
	if got := console.SparkOfDeaths(0, 2, 0); !slices.Equal(got, []string{"0.0,23.0 50.0,1.0 100.0,23.0"}) {
		t.Errorf("hours without deaths: the lines are %q, want one through all hours", got)
	}
}

// TestTheNewestSlotIsShownAsFarAsItGoes: the picture of a week would else show nothing of its last hour.
func TestTheNewestSlotIsShownAsFarAsItGoes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		every, passed time.Duration
		want          string
	}{
		{time.Hour, 30 * time.Minute, "1 jobs/s"},
		{time.Hour, time.Hour + 20*time.Second, "0.5 jobs/s"},
		{time.Hour, time.Minute, "nothing"},
		{10 * time.Second, 15 * time.Second, "nothing"},
		{10 * time.Second, 20 * time.Second, "180 jobs/s"},
	} {
		got := "nothing"
		if value := console.NewestRate(c.every, c.passed, 1800); value != nil {
			got = fmt.Sprintf("%g jobs/s", *value)
		}
		if got != c.want {
			t.Errorf("1,800 jobs in a slot of %s, %s after its start: %s, want %s", c.every, c.passed, got, c.want)
		}
	}
}
