package cli

import (
	"math"
	"time"

	"github.com/sluice-queue/sluice/cmd/internal/draw"
	"github.com/sluice-queue/sluice/stat"
)

// countsPicture draws how many jobs made a move, over the window.
func countsPicture(s stat.Summary, width int, jobs func(stat.Counts) int64) string {
	figures := make([]float64, columnsOf(s, width))
	for _, slot := range s.Slots {
		figures[columnAt(s, slot.At, len(figures))] += float64(jobs(slot.Counts))
	}
	return draw.Sparkline(figures)
}

// timesPicture draws the 95th percentile of times, over the window.
func timesPicture(s stat.Summary, width int, of func(stat.Stat) stat.Histogram) string {
	times := make([]stat.Histogram, columnsOf(s, width))
	for _, slot := range s.Slots {
		times[columnAt(s, slot.At, len(times))].Merge(of(slot))
	}
	figures := make([]float64, len(times))
	for i, h := range times {
		figures[i] = h.Quantile(0.95).Seconds()
		if h.Count() == 0 {
			figures[i] = math.NaN()
		}
	}
	return draw.Sparkline(figures)
}

// columnsOf is the number of columns: at most one per bucket.
func columnsOf(s stat.Summary, width int) int {
	slots := int((s.To.Sub(s.From) + s.Every - 1) / s.Every)
	return max(min(width, slots), 1)
}

// columnAt is the column of an instant.
func columnAt(s stat.Summary, at time.Time, columns int) int {
	slots := int((s.To.Sub(s.From) + s.Every - 1) / s.Every)
	slot := int(at.Sub(s.From) / s.Every)
	return min(max(slot*columns/max(slots, 1), 0), columns-1)
}
