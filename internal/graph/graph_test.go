package graph_test

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/sluice-queue/sluice/internal/graph"
)

func TestEachNodeComesBehindThoseThatItWaitsForOrIsInACircle(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 12).Draw(t, "nodes")
		waits := make([][]int, n)
		for i := range waits {
			waits[i] = rapid.SliceOfN(rapid.IntRange(0, n-1), 0, 3).Draw(t, "waits for")
		}
		order, circles := graph.Sort(waits)
		inCircle := make(map[int]bool)
		for _, circle := range circles {
			for k, i := range circle {
				inCircle[i] = true
				if next := circle[(k+1)%len(circle)]; !slices.Contains(waits[i], next) {
					t.Fatalf("%v is no circle of %v", circle, waits)
				}
			}
		}
		if len(order)+len(inCircle) != n {
			t.Fatalf("%v and %v leave out nodes of %v", order, circles, waits)
		}
		for at, i := range order {
			for _, before := range waits[i] {
				if !inCircle[before] && !slices.Contains(order[:at], before) {
					t.Fatalf("%d comes before %d in %v of %v", i, before, order, waits)
				}
			}
		}
	})
}
