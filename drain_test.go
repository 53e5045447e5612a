package sluice

import (
	"math"
	"testing"

	"pgregory.net/rapid"
)

// TestDrainAgreesWithSmallSteps compares the arithmetic with a walk in small steps, which is plain but
// slow.
func TestDrainAgreesWithSmallSteps(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var limits []flowLimit
		for range rapid.IntRange(0, 3).Draw(t, "limits") {
			burst := float64(rapid.IntRange(1, 50).Draw(t, "burst"))
			limits = append(limits, flowLimit{
				tokens: burst * rapid.SampledFrom([]float64{0, 0.5, 1}).Draw(t, "full"), burst: burst,
				rate: rapid.SampledFrom([]float64{0.5, 1, 3, 10, 33}).Draw(t, "rate"),
			})
		}
		var arrivals []arrival
		at := 0
		for range rapid.IntRange(0, 6).Draw(t, "arrivals") {
			arrivals = append(arrivals, arrival{at: float64(at), jobs: rapid.IntRange(1, 200).Draw(t, "jobs")})
			at += rapid.IntRange(0, 60).Draw(t, "until the next")
		}
		opens := float64(rapid.SampledFrom([]int{0, 0, 30}).Draw(t, "opens"))
		marks := []float64{10, 60, 60, 300}
		got := drain(arrivals, append([]flowLimit{}, limits...), opens, marks)
		want := drainInSteps(arrivals, append([]flowLimit{}, limits...), opens, marks)
		if len(got.last) != len(arrivals) || len(got.by) != len(marks) {
			t.Fatalf("%d of %d arrivals, %d of %d marks", len(got.last), len(arrivals), len(got.by), len(marks))
		}
		for i := range got.last {
			if math.Abs(got.last[i]-want.last[i]) > 0.2 {
				t.Errorf("the last of arrival %d starts at %.2f, want %.2f", i, got.last[i], want.last[i])
			}
		}
		for i := range got.by {
			if math.Abs(got.by[i]-want.by[i]) > 1 {
				t.Errorf("%.2f have started by %v, want %.2f", got.by[i], marks[i], want.by[i])
			}
		}
	})
}

// step is how long one is, in seconds.
const step = 0.01

func drainInSteps(arrivals []arrival, limits []flowLimit, opens float64, marks []float64) startsAt {
	var out startsAt
	var waiting, started, arrived float64
	var targets []float64
	for n := 0; len(out.by) < len(marks) || len(out.last) < len(arrivals); n++ {
		now := float64(n) * step
		for len(out.by) < len(marks) && now >= marks[len(out.by)] {
			out.by = append(out.by, started)
		}
		for len(targets) < len(arrivals) && now >= arrivals[len(targets)].at {
			jobs := float64(arrivals[len(targets)].jobs)
			waiting, arrived = waiting+jobs, arrived+jobs
			targets = append(targets, arrived)
		}
		jobs := waiting
		for i := range limits {
			jobs = math.Min(jobs, limits[i].tokens)
		}
		if now < opens {
			jobs = 0
		}
		started, waiting = started+jobs, waiting-jobs
		for i := range limits {
			limits[i].tokens = math.Min(limits[i].burst, limits[i].tokens-jobs+limits[i].rate*step)
		}
		for len(out.last) < len(targets) && started >= targets[len(out.last)]-0.001 {
			out.last = append(out.last, now)
		}
	}
	return out
}

func TestDrainThatNeverOpens(t *testing.T) {
	t.Parallel()
	for _, limits := range [][]flowLimit{nil, {{tokens: 1, burst: 1, rate: 1}}} {
		got := drain([]arrival{{at: 1, jobs: 5}}, limits, math.Inf(1), []float64{10})
		if !math.IsInf(got.last[0], 1) || got.by[0] != 0 {
			t.Errorf("%+v", got)
		}
	}
}

func TestDrainOfManyArrivalsIsQuick(t *testing.T) {
	t.Parallel()
	var arrivals []arrival
	var marks []float64
	for n := range 7 * 24 * 60 {
		arrivals = append(arrivals, arrival{at: float64(60 * n), jobs: 1_000_000})
		marks = append(marks, float64(60*(n+1)))
	}
	got := drain(arrivals, []flowLimit{{tokens: 1, burst: 1, rate: 1e-3}, {tokens: 1e6, burst: 1e6, rate: 1e5}}, 0, marks)
	if len(got.last) != len(arrivals) || got.last[len(got.last)-1] < 1e12 {
		t.Errorf("%d arrivals, the last at %v", len(got.last), got.last[len(got.last)-1])
	}
}
