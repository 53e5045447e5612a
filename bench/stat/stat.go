// Package stat reduces what was measured to a few figures: medians, percentiles, and ratios that are
// taken pair by pair. A NaN stands for what was not measured, and is left out.
package stat

import (
	"math"
	"slices"
)

// Median is the middle of the values, or the mean of the two in the middle. None gives NaN.
func Median(values []float64) float64 {
	sorted := measured(values)
	n := len(sorted)
	if n == 0 {
		return math.NaN()
	}
	if n%2 == 1 {
		return sorted[n/2]
	}
	return (sorted[n/2-1] + sorted[n/2]) / 2
}

// Percentile is the smallest value that p of 100 values do not exceed (nearest rank). None gives
// NaN.
func Percentile(values []float64, p float64) float64 {
	sorted := measured(values)
	if len(sorted) == 0 {
		return math.NaN()
	}
	rank := int(math.Ceil(p / 100 * float64(len(sorted))))
	return sorted[min(max(rank, 1), len(sorted))-1]
}

// Ratios divides the values of the same round by each other. On a machine whose speed changes with
// time, the median of these is steadier than the ratio of two medians.
func Ratios(over, under []float64) []float64 {
	out := make([]float64, min(len(over), len(under)))
	for i := range out {
		out[i] = math.NaN()
		if under[i] != 0 {
			out[i] = over[i] / under[i]
		}
	}
	return out
}

// Best gives, for each round, the largest value of several series, or the smallest.
func Best(series [][]float64, smallest bool) []float64 {
	var out []float64
	for _, one := range series {
		for i, value := range one {
			if i == len(out) {
				out = append(out, math.NaN())
			}
			better := math.IsNaN(out[i]) || smallest && value < out[i] || !smallest && value > out[i]
			if better && !math.IsNaN(value) {
				out[i] = value
			}
		}
	}
	return out
}

// Range gives the smallest and the largest value. None gives NaN.
func Range(values []float64) (low, high float64) {
	sorted := measured(values)
	if len(sorted) == 0 {
		return math.NaN(), math.NaN()
	}
	return sorted[0], sorted[len(sorted)-1]
}

// measured gives the values that are none of NaN and infinite, in order.
func measured(values []float64) []float64 {
	out := make([]float64, 0, len(values))
	for _, value := range values {
		if !math.IsNaN(value) && !math.IsInf(value, 0) {
			out = append(out, value)
		}
	}
	slices.Sort(out)
	return out
}
