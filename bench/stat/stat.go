// Package stat computes medians, percentiles and pairwise ratios. NaN means "not measured" and is left out.
package stat

import (
	"math"
	"slices"
)

// Median returns the middle value, or the mean of the two middle values. No values give NaN.
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

// Percentile returns the smallest value that p percent of the values do not exceed (nearest rank). No values give NaN.
func Percentile(values []float64, p float64) float64 {
	sorted := measured(values)
	if len(sorted) == 0 {
		return math.NaN()
	}
	rank := int(math.Ceil(p / 100 * float64(len(sorted))))
	return sorted[min(max(rank, 1), len(sorted))-1]
}

// Ratios divides values of the same round. Their median is steadier than the ratio of two medians, because the
// machine's speed drifts.
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

// Best returns the largest value of several series for each round, or the smallest.
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

// Range returns the smallest and the largest value. No values give NaN.
func Range(values []float64) (low, high float64) {
	sorted := measured(values)
	if len(sorted) == 0 {
		return math.NaN(), math.NaN()
	}
	return sorted[0], sorted[len(sorted)-1]
}

// measured returns the finite values, sorted.
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
