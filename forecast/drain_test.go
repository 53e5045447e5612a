package forecast

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestDrainAgreesWithSmallSteps compares the arithmetic with a simulation in small steps, which is simple but slow.
func TestDrainAgreesWithSmallSteps(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		limits := drawLimits(t, 3)
		opens := float64(rapid.SampledFrom([]int{0, 0, 30}).Draw(t, "opens"))
		lines := make([]flowLine, rapid.SampledFrom([]int{1, 1, 2, 3}).Draw(t, "lines"))
		for i := range lines {
			lines[i] = flowLine{arrivals: drawArrivals(t), weight: 1, opens: opens}
			if len(lines) > 1 {
				lines[i].limits = drawLimits(t, 2)
				lines[i].weight = float64(rapid.IntRange(1, 3).Draw(t, "weight"))
				lines[i].opens = math.Max(opens, float64(rapid.SampledFrom([]int{0, 0, 45}).Draw(t, "opens later")))
			}
		}
		marks := []float64{10, 60, 60, 300}
		later := drawLater(t, lines)
		got := drain(copyLines(lines), slices.Clone(limits), marks, later...)
		want := drainInSteps(copyLines(lines), slices.Clone(limits), marks, later)
		if len(got.last) != len(lines) || len(got.by) != len(marks) {
			t.Fatalf("%d of %d lines, %d of %d marks", len(got.last), len(lines), len(got.by), len(marks))
		}
		// The simulation shares tokens up to one step late. So it may be off by a fifth of a job, and at each change by half a job.
		slowest := slowestOf(limits, lines)
		for _, l := range later {
			slowest = math.Min(slowest, slowestOf(l.limits, flowLinesOf(l.lines)))
		}
		tolerated := 0.2 + (0.2+0.5*float64(len(later)))/slowest
		for n, line := range lines {
			if len(got.last[n]) != len(line.arrivals) {
				t.Fatalf("%d of %d arrivals", len(got.last[n]), len(line.arrivals))
			}
			for i := range got.last[n] {
				if math.Abs(got.last[n][i]-want.last[n][i]) > tolerated {
					t.Errorf("the last of arrival %d of line %d starts at %.2f, want %.2f", i, n, got.last[n][i], want.last[n][i])
				}
			}
		}
		for i := range got.by {
			if math.Abs(got.by[i]-want.by[i]) > 1 {
				t.Errorf("%.2f have started by %v, want %.2f", got.by[i], marks[i], want.by[i])
			}
		}
	})
}

// slowestOf returns the lowest rate of all limits.
func slowestOf(limits []flowLimit, lines []flowLine) float64 {
	rate := math.Inf(1)
	for _, l := range lines {
		limits = append(slices.Clip(limits), l.limits...)
	}
	for _, l := range limits {
		rate = math.Min(rate, l.rate)
	}
	return rate
}

func drawLimits(t *rapid.T, most int) []flowLimit {
	var limits []flowLimit
	for n := range rapid.IntRange(0, most).Draw(t, "limits") {
		burst := float64(rapid.IntRange(1, 50).Draw(t, "burst"))
		limits = append(limits, flowLimit{
			tokens: burst * rapid.SampledFrom([]float64{0, 0.5, 1}).Draw(t, "full"), burst: burst,
			rate: rapid.SampledFrom([]float64{0.5, 1, 3, 10, 33}).Draw(t, "rate"), name: fmt.Sprint(n), places: n == 1,
		})
	}
	return limits
}

// drawLater draws limits that replace the first ones later.
func drawLater(t *rapid.T, lines []flowLine) []laterFlow {
	var out []laterFlow
	for _, at := range rapid.SampledFrom([][]float64{nil, nil, {10}, {7, 60}}).Draw(t, "later") {
		next := laterFlow{at: at, limits: drawLimits(t, 3)}
		for _, l := range lines {
			if len(lines) > 1 {
				l.limits = drawLimits(t, 2)
			}
			next.lines = append(next.lines, tenantLine{flowLine: l})
		}
		out = append(out, next)
	}
	return out
}

func flowLinesOf(lines []tenantLine) (out []flowLine) {
	for _, l := range lines {
		out = append(out, l.flowLine)
	}
	return out
}

func drawArrivals(t *rapid.T) []arrival {
	var arrivals []arrival
	at := 0
	for range rapid.IntRange(0, 6).Draw(t, "arrivals") {
		arrivals = append(arrivals, arrival{at: float64(at), jobs: rapid.IntRange(1, 200).Draw(t, "jobs")})
		at += rapid.IntRange(0, 60).Draw(t, "until the next")
	}
	return arrivals
}

// copyLines copies the slices that drain changes.
func copyLines(lines []flowLine) []flowLine {
	out := slices.Clone(lines)
	for i := range out {
		out[i].limits = slices.Clone(out[i].limits)
	}
	return out
}

// step is the length of a step in seconds.
const step = 0.01

// walk is the state of one line in the simulation.
type walk struct {
	flowLine
	waiting, started float64
	targets          []float64
}

func drainInSteps(lines []flowLine, limits []flowLimit, marks []float64, later []laterFlow) startsAt {
	out := startsAt{last: make([][]float64, len(lines))}
	walks := make([]walk, len(lines))
	missing, started := 0, 0.0
	share := sharing{jobs: make([]float64, len(lines)), wants: make([]float64, len(lines)), order: make([]int, len(lines))}
	for i, l := range lines {
		walks[i].flowLine = l
		missing += len(l.arrivals)
	}
	for n := 0; len(out.by) < len(marks) || missing > 0; n++ {
		now := float64(n) * step
		for len(out.by) < len(marks) && now >= marks[len(out.by)] {
			out.by = append(out.by, started)
		}
		for len(later) > 0 && now >= later[0].at {
			limits = carried(limits, later[0].limits)
			for i := range walks {
				walks[i].limits = carried(walks[i].limits, later[0].lines[i].limits)
			}
			later = later[1:]
		}
		for i := range walks {
			walks[i].arrive(now)
		}
		jobs := share.of(walks, leastTokens(limits, math.Inf(1)), now)
		sum := 0.0
		for i := range walks {
			w := &walks[i]
			w.waiting, w.started, sum = w.waiting-jobs[i], w.started+jobs[i], sum+jobs[i]
			pass(w.limits, jobs[i])
			for len(out.last[i]) < len(w.targets) && w.started >= w.targets[len(out.last[i])]-0.001 {
				out.last[i] = append(out.last[i], now)
				missing--
			}
		}
		pass(limits, sum)
		started += sum
	}
	return out
}

func (w *walk) arrive(now float64) {
	for len(w.targets) < len(w.arrivals) && now >= w.arrivals[len(w.targets)].at {
		w.waiting += float64(w.arrivals[len(w.targets)].jobs)
		w.targets = append(w.targets, w.started+w.waiting)
	}
}

// sharing keeps the slices that each step computes anew.
type sharing struct {
	jobs, wants []float64
	order       []int
}

// of returns how many jobs each line starts in a step. The line that wants the fewest jobs for its weight comes first,
// and leaves the rest of its share to the others.
func (s sharing) of(walks []walk, left, now float64) []float64 {
	got, wants, order, any := s.jobs, s.wants, s.order, false
	for i := range walks {
		w := &walks[i]
		order[i], got[i], wants[i] = i, 0, 0
		if now >= w.opens && w.waiting > 0 {
			wants[i] = leastTokens(w.limits, w.waiting)
			any = any || wants[i] != 0
		}
	}
	if !any {
		return got
	}
	if len(walks) > 1 {
		slices.SortFunc(order, func(a, b int) int {
			return int(math.Copysign(1, wants[a]/walks[a].weight-wants[b]/walks[b].weight))
		})
	}
	for place, i := range order {
		weights := 0.0
		for _, k := range order[place:] {
			weights += walks[k].weight
		}
		got[i] = math.Min(wants[i], left*walks[i].weight/weights)
		left -= got[i]
	}
	return got
}

func pass(limits []flowLimit, jobs float64) {
	for i := range limits {
		limits[i].tokens = math.Min(limits[i].burst, limits[i].tokens-jobs+limits[i].rate*step)
	}
}

// TestLineThatOpensAsJobsArriveSharesWithThem opens a line at the instant at which jobs of another line arrive. The
// instant is also a mark.
func TestLineThatOpensAsJobsArriveSharesWithThem(t *testing.T) {
	t.Parallel()
	lines := []flowLine{
		{arrivals: []arrival{{at: 0, jobs: 10}}, weight: 1, opens: 45},
		{arrivals: []arrival{{at: 45, jobs: 10}}, weight: 1},
		{arrivals: []arrival{{at: 0, jobs: 100}}, weight: 1, limits: []flowLimit{{burst: 1, rate: 0.1}}}, // always waits
	}
	got := drain(lines, []flowLimit{{tokens: 10, burst: 10, rate: 0.5}}, []float64{45, 60})
	for n, last := range got.last[:2] {
		if math.Abs(last[0]-70) > 0.01 {
			t.Errorf("the last of line %d starts at %.2f, want 70: both get half of ten tokens, and of two each 5 s", n, last[0])
		}
	}
	if math.Abs(got.by[0]-4.5) > 0.01 || math.Abs(got.by[1]-22) > 0.01 {
		t.Errorf("%v have started before 45 and by 60, want 4.5 and 22", got.by)
	}
}

func TestDrainThatNeverOpens(t *testing.T) {
	t.Parallel()
	for _, limits := range [][]flowLimit{nil, {{tokens: 1, burst: 1, rate: 1}}} {
		shut := flowLine{arrivals: []arrival{{at: 1, jobs: 5}}, weight: 1, opens: math.Inf(1)}
		open := flowLine{arrivals: []arrival{{at: 2, jobs: 1}}, weight: 1}
		got := drain([]flowLine{shut, open}, limits, []float64{10})
		if !math.IsInf(got.last[0][0], 1) || got.last[1][0] != 2 || got.by[0] != 1 {
			t.Errorf("drained %+v, want the shut line never to start, the open one at 2 s, and 1 start by 10 s", got)
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
	limits := []flowLimit{{tokens: 1, burst: 1, rate: 1e-3}, {tokens: 1e6, burst: 1e6, rate: 1e5}}
	got := drain([]flowLine{{arrivals: arrivals, weight: 1}}, limits, marks)
	if last := got.last[0]; len(last) != len(arrivals) || last[len(last)-1] < 1e12 {
		t.Errorf("%d arrivals, the last at %v", len(last), last[len(last)-1])
	}
}

// BenchmarkDrain drains a day of many tenants, each of whose minutes ends at another instant.
func BenchmarkDrain(b *testing.B) {
	var marks []float64
	for n := range 24 * 60 {
		marks = append(marks, float64(60*(n+1)))
	}
	for b.Loop() {
		lines := make([]flowLine, MaxTenants+1)
		for i := range lines {
			lines[i] = flowLine{weight: 1, limits: []flowLimit{{tokens: 1, burst: 1, rate: 1 + float64(i)/10}}}
			for n := range marks {
				lines[i].arrivals = append(lines[i].arrivals, arrival{at: float64(60 * n), jobs: 10 + i})
			}
		}
		drain(lines, []flowLimit{{tokens: 30, burst: 30, rate: 30}}, marks)
	}
}
