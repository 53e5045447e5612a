// Package measure holds what was measured against what it may take.
package measure

import (
	"fmt"
	"io"
	"math"
	"slices"
	"time"
)

// Budget is what something took, each time, and what 95 of 100 may take, or another Share.
type Budget struct {
	Name  string
	Limit time.Duration
	Took  []time.Duration
	// Share is of how many the limit is. Default: 0.95.
	Share float64
}

func (b Budget) share() float64 {
	if b.Share == 0 {
		return 0.95
	}
	return b.Share
}

// Percentile gives the value that a share of all does not exceed, at ceil(n·p)−1 in order; 0 of none.
func (b Budget) Percentile(share float64) time.Duration {
	if len(b.Took) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(b.Took))
	return sorted[max(0, int(math.Ceil(float64(len(sorted))*share))-1)]
}

// Kept reports whether the budget was kept. One of which nothing was measured was not.
func (b Budget) Kept() bool { return len(b.Took) > 0 && b.Percentile(b.share()) < b.Limit }

// Print prints a table, and reports whether all budgets were kept.
func Print(out io.Writer, budgets []Budget) bool {
	kept := true
	fmt.Fprintf(out, "  %-5s  %-30s %7s %10s %10s %10s   %s\n", "", "", "n", "p50", "p95", "p99", "budget")
	for _, b := range budgets {
		mark := "ok"
		if !b.Kept() {
			mark, kept = "OVER", false
		}
		fmt.Fprintf(out, "  %-5s  %-30s %7d %10s %10s %10s   %s of p%.0f\n", mark, b.Name, len(b.Took), short(b.Percentile(0.5)), short(b.Percentile(0.95)), short(b.Percentile(0.99)), b.Limit, 100*b.share())
	}
	return kept
}

func short(d time.Duration) string { return fmt.Sprintf("%.2f ms", float64(d.Microseconds())/1000) }
