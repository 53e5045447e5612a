package stat_test

import (
	"math"
	"testing"

	"github.com/sluice-queue/sluice/bench/stat"
)

var nan = math.NaN()

// same treats NaN as equal to itself.
func same(a, b float64) bool { return a == b || math.IsNaN(a) && math.IsNaN(b) }

func sameAll(a, b []float64) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !same(a[i], b[i]) {
			return false
		}
	}
	return true
}

func TestMedian(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		values []float64
		want   float64
	}{
		"of nothing is NaN":                      {nil, nan},
		"of one is that one":                     {[]float64{7}, 7},
		"of an odd number is the middle":         {[]float64{9, 1, 5}, 5},
		"of an even number is the mean of two":   {[]float64{4, 1, 2, 9}, 3},
		"leaves out what was not measured":       {[]float64{nan, 3, nan}, 3},
		"of nothing but gaps is NaN":             {[]float64{nan, nan}, nan},
		"leaves out what was divided by nothing": {[]float64{math.Inf(1), 3, 5}, 4},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := stat.Median(c.values); !same(got, c.want) {
				t.Errorf("Median(%v) = %v, want %v", c.values, got, c.want)
			}
		})
	}
}

func TestMedianKeepsTheOrder(t *testing.T) {
	t.Parallel()
	values := []float64{3, 1, 2}
	stat.Median(values)
	if !sameAll(values, []float64{3, 1, 2}) {
		t.Errorf("the values were sorted in place: %v", values)
	}
}

func TestPercentile(t *testing.T) {
	t.Parallel()
	hundred := make([]float64, 100)
	for i := range hundred {
		hundred[i] = float64(100 - i)
	}
	for name, c := range map[string]struct {
		values  []float64
		p, want float64
	}{
		"of nothing is NaN":                    {nil, 50, nan},
		"of one is that one":                   {[]float64{7}, 99, 7},
		"50 of 1 to 100 is 50":                 {hundred, 50, 50},
		"99 of 1 to 100 is 99":                 {hundred, 99, 99},
		"100 is the largest":                   {hundred, 100, 100},
		"0 is the smallest":                    {hundred, 0, 1},
		"is a value that was measured":         {[]float64{1, 2}, 50, 1},
		"99 of a few is the largest of them":   {[]float64{1, 2, 3}, 99, 3},
		"leaves out what was not measured too": {[]float64{nan, 2, nan}, 50, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := stat.Percentile(c.values, c.p); !same(got, c.want) {
				t.Errorf("Percentile(%v) = %v, want %v", c.p, got, c.want)
			}
		})
	}
}

func TestRatios(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ over, under, want []float64 }{
		"are taken round by round":              {[]float64{10, 30}, []float64{5, 10}, []float64{2, 3}},
		"leave a gap where either is missing":   {[]float64{nan, 4, 4}, []float64{2, nan, 2}, []float64{nan, nan, 2}},
		"end with the shorter one":              {[]float64{4, 6}, []float64{2}, []float64{2}},
		"are not taken of what was not reached": {[]float64{4}, []float64{0}, []float64{nan}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := stat.Ratios(c.over, c.under); !sameAll(got, c.want) {
				t.Errorf("Ratios(%v, %v) = %v, want %v", c.over, c.under, got, c.want)
			}
		})
	}
}

func TestRatiosBeatRatioOfMedians(t *testing.T) {
	t.Parallel()
	// The machine is half as fast in the second round. Within each round the ratio is 2.
	over, under := []float64{200, 100, 198}, []float64{100, 50, 99}
	if got := stat.Median(stat.Ratios(over, under)); got != 2 {
		t.Errorf("got %v, want 2", got)
	}
}

func TestBest(t *testing.T) {
	t.Parallel()
	series := [][]float64{{1, 5, nan, nan}, {2, nan, 4, nan}, {0}}
	if got := stat.Best(series, false); !sameAll(got, []float64{2, 5, 4, nan}) {
		t.Errorf("the largest of each round: %v", got)
	}
	if got := stat.Best(series, true); !sameAll(got, []float64{0, 5, 4, nan}) {
		t.Errorf("the smallest of each round: %v", got)
	}
}

func TestRange(t *testing.T) {
	t.Parallel()
	if low, high := stat.Range([]float64{3, nan, 1, 2}); low != 1 || high != 3 {
		t.Errorf("got %v to %v", low, high)
	}
	if low, high := stat.Range(nil); !math.IsNaN(low) || !math.IsNaN(high) {
		t.Errorf("of nothing: got %v to %v", low, high)
	}
}
