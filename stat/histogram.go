package stat

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"time"

	"github.com/sluice-queue/sluice/internal/feature"
)

// The buckets of a [Histogram]. Eight buckets cover each doubling of time, and each grows by the factor 2^(1/8).
// They are the buckets of Prometheus' native histograms with schema 3.
const (
	// HistogramFirst is the upper bound of bucket 0. A shorter time counts as this time.
	HistogramFirst = 100 * time.Microsecond
	// HistogramLast is the last bucket, with an upper bound of 159 days. A longer time counts as that time.
	HistogramLast = 37 * histogramParts
	// HistogramError is the greatest relative error of a time from [Histogram.Quantile].
	HistogramError = 0.044

	histogramParts = 8
)

// histogramBounds are the upper bounds of the buckets. Each bound belongs to its bucket.
var histogramBounds = func() (bounds [HistogramLast + 1]time.Duration) {
	for i := range bounds {
		bounds[i] = time.Duration(math.Round(float64(HistogramFirst) * math.Exp2(float64(i)/histogramParts)))
	}
	return bounds
}()

// HistogramBound returns the upper bound of a bucket from 0 to [HistogramLast]. The bound belongs to the bucket.
func HistogramBound(bucket int) time.Duration { return histogramBounds[bucket] }

// Histogram counts times in buckets, so that histograms of many processes and slots can be merged. The zero value
// is empty. A copy shares the buckets; merge into an empty Histogram for an independent copy.
type Histogram struct {
	low    int // the bucket of counts[0]
	counts []int64
}

// bucketOf returns the bucket of a time.
func bucketOf(d time.Duration) int {
	if d <= HistogramFirst {
		return 0
	}
	doublings := bits.Len64(uint64(d-1)/uint64(HistogramFirst)) - 1
	bucket := doublings * histogramParts
	if bucket >= HistogramLast {
		return HistogramLast
	}
	// The bound of this bucket is below d; the bound eight buckets later is not.
	for step := histogramParts / 2; step > 0; step /= 2 {
		if histogramBounds[bucket+step] < d {
			bucket += step
		}
	}
	return bucket + 1
}

// Add counts a time. A negative time counts as 0, because two clocks may differ.
func (h *Histogram) Add(d time.Duration) { h.add(bucketOf(d), 1) }

func (h *Histogram) add(bucket int, n int64) {
	at := bucket - h.low
	if uint(at) >= uint(len(h.counts)) {
		h.reach(bucket)
		at = bucket - h.low
	}
	h.counts[at] += n
}

// reach makes room for a bucket, and for its doubling.
func (h *Histogram) reach(bucket int) {
	low := bucket / histogramParts * histogramParts
	high := min(low+histogramParts, HistogramLast+1)
	if len(h.counts) > 0 {
		low, high = min(low, h.low), max(high, h.low+len(h.counts))
	}
	counts := make([]int64, high-low)
	copy(counts[max(h.low-low, 0):], h.counts)
	h.low, h.counts = low, counts
}

// Merge adds the counts of another Histogram.
func (h *Histogram) Merge(other Histogram) {
	for i, n := range other.counts {
		if n != 0 {
			h.add(other.low+i, n)
		}
	}
}

// Count returns how many times were counted.
func (h Histogram) Count() int64 {
	var n int64
	for _, count := range h.counts {
		n += count
	}
	return n
}

// Buckets yields each bucket with a count, in order.
func (h Histogram) Buckets(yield func(bucket int, n int64) bool) {
	for i, n := range h.counts {
		if n != 0 && !yield(h.low+i, n) {
			return
		}
	}
}

// Quantile returns the time that a share p of all times does not exceed: the time at place ceil(n·p)−1 of n sorted
// times. The error is at most [HistogramError]. An empty Histogram returns 0.
func (h Histogram) Quantile(p float64) time.Duration {
	n := h.Count()
	place := min(max(int64(math.Ceil(float64(n)*p))-1, 0), n-1)
	for bucket, count := range h.Buckets {
		if place -= count; place < 0 {
			return middleOf(bucket)
		}
	}
	return 0
}

// middleOf returns the time that stands for a bucket. It has the same relative distance to both bounds.
func middleOf(bucket int) time.Duration {
	if bucket == 0 || bucket == HistogramLast {
		return histogramBounds[bucket]
	}
	low, high := float64(histogramBounds[bucket-1]), float64(histogramBounds[bucket])
	return time.Duration(2 * low * high / (low + high))
}

// clone returns an independent copy, without empty buckets at the ends.
func (h Histogram) clone() Histogram {
	first, last := -1, -1
	for i, n := range h.counts {
		if n != 0 {
			if first < 0 {
				first = i
			}
			last = i
		}
	}
	if first < 0 {
		return Histogram{}
	}
	return Histogram{low: h.low + first, counts: slices.Clone(h.counts[first : last+1])}
}

// wideHistogram is how many buckets the next slot keeps: some six doublings.
const wideHistogram = 48

// empty removes all counts, and keeps the memory unless there is unusually much.
func (h *Histogram) empty() {
	if len(h.counts) > wideHistogram {
		*h = Histogram{}
		return
	}
	clear(h.counts)
}

// Equal reports whether both have the same counts.
func (h Histogram) Equal(other Histogram) bool {
	a, b := h.clone(), other.clone()
	return a.low == b.low && slices.Equal(a.counts, b.counts)
}

// MarshalJSON writes an object with the count of each bucket that is not empty, in order.
func (h Histogram) MarshalJSON() ([]byte, error) {
	text := []byte{'{'}
	for bucket, n := range h.Buckets {
		if len(text) > 1 {
			text = append(text, ',')
		}
		text = append(text, '"')
		text = strconv.AppendInt(text, int64(bucket), 10)
		text = append(text, '"', ':')
		text = strconv.AppendInt(text, n, 10)
	}
	return append(text, '}'), nil
}

// UnmarshalJSON reads the text of MarshalJSON. It refuses unknown buckets and negative counts.
func (h *Histogram) UnmarshalJSON(text []byte) error {
	*h = Histogram{}
	if bytes.Equal(text, []byte("{}")) {
		return nil
	}
	var counts map[int]int64
	if err := json.Unmarshal(text, &counts); err != nil {
		return fmt.Errorf("read a histogram: %w", err)
	}
	for bucket, n := range counts {
		if bucket < 0 || bucket > HistogramLast || n < 0 {
			return feature.Invalid("histogram", fmt.Sprintf("%d in bucket %d: buckets go from 0 to %d, counts from 0", n, bucket, HistogramLast))
		}
		h.add(bucket, n)
	}
	return nil
}
