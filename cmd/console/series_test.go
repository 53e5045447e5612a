package console_test

import (
	"slices"
	"testing"

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
