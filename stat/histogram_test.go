package stat_test

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/sluice-queue/sluice/stat"
)

func TestBucketsGrowByTheSameFactorUpToHalfAYear(t *testing.T) {
	t.Parallel()
	for bucket := 1; bucket <= stat.HistogramLast; bucket++ {
		low, high := stat.HistogramBound(bucket-1), stat.HistogramBound(bucket)
		if factor := float64(high) / float64(low); math.Abs(factor-math.Exp2(1.0/8)) > 1e-4 {
			t.Errorf("bucket %d grows by %v", bucket, factor)
		}
		for d, want := range map[time.Duration]int{low: bucket - 1, low + 1: bucket, high: bucket} {
			var h stat.Histogram
			h.Add(d)
			for got := range h.Buckets {
				if got != want {
					t.Errorf("%s is in bucket %d, want %d", d, got, want)
				}
			}
		}
	}
	if last := stat.HistogramBound(stat.HistogramLast); last < 150*24*time.Hour {
		t.Errorf("the last bucket ends at %s", last)
	}
}

func TestQuantilesAreThoseOfASortedListWithinTheStatedError(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	for range 50 {
		var h stat.Histogram
		times := make([]time.Duration, 1+random.IntN(200))
		for i := range times {
			times[i] = stat.HistogramFirst + time.Duration(random.Int64N(int64(1)<<(10+random.IntN(40))))
			h.Add(times[i])
		}
		slices.Sort(times)
		for _, p := range []float64{0, 0.01, 0.5, 0.95, 0.99, 1} {
			want := times[max(int(math.Ceil(float64(len(times))*p))-1, 0)] // the smallest time that a share p of all times does not exceed
			if off := math.Abs(float64(h.Quantile(p)-want)) / float64(want); off > stat.HistogramError {
				t.Fatalf("p%v of %d is %s, want %s: %.1f %% off", p*100, len(times), h.Quantile(p), want, off*100)
			}
		}
	}
}

func TestQuantilesAtTheEdges(t *testing.T) {
	t.Parallel()
	var h stat.Histogram
	if got := h.Quantile(0.95); got != 0 || h.Count() != 0 {
		t.Errorf("of nothing: %s of %d", got, h.Count())
	}
	for range 19 {
		h.Add(-time.Second)
	}
	h.Add(100 * 365 * 24 * time.Hour)
	if got := h.Quantile(0.95); got != stat.HistogramFirst { // the 19th of 20 times
		t.Errorf("p95 is %s", got)
	}
	if got := h.Quantile(0.951); got != stat.HistogramBound(stat.HistogramLast) {
		t.Errorf("the longest is %s", got)
	}
}

func TestHistogramsMergeAndAreRead(t *testing.T) {
	t.Parallel()
	var a, b, both stat.Histogram
	for i, d := range []time.Duration{time.Millisecond, time.Second, time.Second, time.Hour, 0} {
		both.Add(d)
		if i%2 == 0 {
			a.Add(d)
		} else {
			b.Add(d)
		}
	}
	var merged stat.Histogram
	merged.Merge(a)
	merged.Merge(b)
	if !merged.Equal(both) || merged.Equal(a) || merged.Count() != 5 {
		t.Errorf("merged %v, want %v", merged, both)
	}
	if !a.Equal(a) || a.Count() != 3 {
		t.Error("merging changed what was merged")
	}
	text, err := json.Marshal(merged)
	if err != nil || string(text) != `{"0":1,"27":1,"107":2,"201":1}` {
		t.Fatalf("%s, %v", text, err)
	}
	var read stat.Histogram
	if err := json.Unmarshal(text, &read); err != nil || !read.Equal(both) {
		t.Errorf("read %v, %v", read, err)
	}
	if err := json.Unmarshal([]byte(`{}`), &read); err != nil || read.Count() != 0 {
		t.Errorf("read %v, %v", read, err)
	}
	for _, wrong := range []string{`{"-1":1}`, `{"297":1}`, `{"3":-1}`, `{"x":1}`, `[]`, `7`} {
		if err := json.Unmarshal([]byte(wrong), &read); err == nil {
			t.Errorf("%s was read", wrong)
		}
	}
}
