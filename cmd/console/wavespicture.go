package console

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/cmd/internal/draw"
)

// histogram is the picture of the jobs that fall due, as rectangles of an SVG.
type histogram struct {
	Bars []bar
	// Line are the points of the capacity. Empty: nothing limits it, or it is far above. Capacity says it in words.
	Line     string
	Capacity string
	Width    int
	Most     string
	Begin    time.Time
	End      time.Time
	Legend   []string
}

// bar is the jobs of a queue in a bucket.
type bar struct {
	X, Y, Width, Height float64
	Colour              int
	Text                string
}

// shownQueues is how many queues have a colour of their own; the others are taken together.
const shownQueues = 7

// fill makes the picture, its figures and the table of a forecast.
func (w *wavesPage) fill(v *visit, f forecastView) {
	slices.SortStableFunc(f.Queues, func(a, b queueForecast) int { return cmp.Compare(b.ahead(), a.ahead()) })
	w.Chart = chart{Name: "due", Title: "Jobs that fall due", Unit: "jobs"}
	columns := make(map[int64]int)
	for _, q := range f.Queues {
		for _, one := range q.Waves {
			if one.Span != "0s" && columns[one.At.Unix()] == 0 {
				columns[one.At.Unix()] = 1
				w.Chart.Times = append(w.Chart.Times, one.At.Unix())
			}
		}
		if q.CountedAt.Before(w.Counted) || w.Counted.IsZero() {
			w.Counted = q.CountedAt
		}
		if q.ahead()+q.Due.Jobs > 0 || w.Queue != "" {
			w.Facts = append(w.Facts, q)
		}
	}
	slices.Sort(w.Chart.Times)
	for i, at := range w.Chart.Times {
		columns[at] = i
	}
	capacity, sum := math.Inf(1), 0
	lines := w.linesOf(f.Queues)
	for _, q := range f.Queues {
		if w.Queue != "" {
			capacity = q.perSecond()
		}
		sum += q.ahead()
		for _, one := range q.Waves {
			if one.Jobs > 0 {
				w.Rows = append(w.Rows, waveRow{Queue: q.Queue, wave: one})
			}
			if one.Span == "0s" {
				continue
			}
			for name, jobs := range w.parts(q.Queue, one) {
				if line, drawn := lines[name]; drawn { // a wave without jobs has no line
					add(w.Chart.Lines[line].Values, columns[one.At.Unix()], float64(jobs))
				}
			}
		}
	}
	slices.SortStableFunc(w.Rows, func(a, b waveRow) int {
		switch {
		case a.Already() == b.Already():
			return a.At.Compare(b.At)
		case a.Already():
			return -1
		}
		return 1
	})
	w.addCapacity(f, capacity)
	w.Chart.Sentence = fmt.Sprintf("Due in the next %s: %s.", w.Ahead, plural(sum, "job"))
	if last, never := lastEnd(w.Rows); never {
		w.Chart.Sentence += " Some of them never start by the present limits."
	} else if !last.IsZero() {
		w.Chart.Sentence += " By the present limits they are done at " + last.UTC().Format("2006-01-02 15:04") + " UTC."
	}
	w.Chart = v.linked([]chart{w.Chart}, nil)[0]
	w.Picture = histogramOf(w.Chart, f)
}

// noTenant is the part of the jobs without a tenant, and restTenants of those of tenants that the count does not name.
const noTenant, restTenants = "no tenant", "tenants that are not counted apart"

// parts are the jobs of a wave by queue or by tenant.
func (w *wavesPage) parts(queue string, one wave) map[string]int {
	if !w.ByTenant {
		return map[string]int{queue: one.Jobs}
	}
	parts, rest := make(map[string]int), one.Jobs
	for name, jobs := range one.Tenants {
		rest -= jobs
		parts[or(name, noTenant)] += jobs
	}
	switch {
	case len(one.Tenants) == 0:
		parts[noTenant] += rest // without a named tenant, no count by tenant is kept
	case rest > 0:
		parts[restTenants] += rest
	}
	return parts
}

// linesOf makes a line for each of the largest parts, and one for the others. It returns the line of each part.
func (w *wavesPage) linesOf(queues []queueForecast) map[string]int {
	sums := make(map[string]int)
	for _, q := range queues {
		if !w.ByTenant {
			sums[q.Queue] += 0 // queues without jobs have a line too
		}
		for _, one := range q.Waves {
			if one.Span == "0s" {
				continue
			}
			for name, jobs := range w.parts(q.Queue, one) {
				if sums[name] += jobs; sums[name] == 0 && w.ByTenant {
					delete(sums, name)
				}
			}
		}
	}
	names := slices.SortedFunc(maps.Keys(sums), func(a, b string) int { return cmp.Or(cmp.Compare(sums[b], sums[a]), cmp.Compare(a, b)) })
	lines := make(map[string]int)
	for i, name := range names {
		lines[name] = min(i, shownQueues)
		if lines[name] < len(w.Chart.Lines) {
			continue
		}
		if i == shownQueues {
			name = map[bool]string{false: "other queues", true: "other tenants"}[w.ByTenant]
		}
		w.Chart.Lines = append(w.Chart.Lines, line{Name: name, Values: make([]*float64, len(w.Chart.Times))})
	}
	return lines
}

// ahead counts the jobs that are not due yet.
func (q queueForecast) ahead() (sum int) {
	for _, one := range q.Waves {
		if one.Span != "0s" {
			sum += one.Jobs
		}
	}
	return sum
}

func add(values []*float64, at int, more float64) {
	if values[at] == nil {
		values[at] = new(float64)
	}
	*values[at] += more
}

// addCapacity adds the line of how many jobs of a chosen queue may start in each bucket. Those of all queues have none: queues
// share limits and workers, so their capacities do not add up.
func (w *wavesPage) addCapacity(f forecastView, perSecond float64) {
	bucket, err := sluice.ParseDuration(f.Bucket)
	if err != nil || perSecond == 0 || math.IsInf(perSecond, 1) {
		return
	}
	flat := line{Name: "capacity by present limits", Dashed: true}
	for range w.Chart.Times {
		flat.Values = append(flat.Values, rounded(perSecond*bucket.Seconds()))
	}
	w.Chart.Lines = append(w.Chart.Lines, flat)
}

// histogramOf draws a chart as stacked bars of an SVG that is 100 high and a unit wide for each bucket.
func histogramOf(c chart, f forecastView) histogram {
	out := histogram{Width: max(1, len(c.Times)), Begin: f.Now, End: f.Until}
	most, capacity := 1.0, 0.0
	for i := range c.Times {
		sum := 0.0
		for _, l := range c.Lines {
			switch value := l.Values[i]; {
			case value == nil:
			case l.Dashed:
				capacity = *value
			default:
				sum += *value
			}
		}
		most = max(most, sum)
	}
	out.Most = draw.Count(int(most))
	if capacity > 0 && capacity < 2*most {
		most = max(most, 1.05*capacity)
		y := strconv.FormatFloat(100-100*capacity/most, 'f', 2, 64)
		out.Line = "0," + y + " " + strconv.Itoa(out.Width) + "," + y
	}
	if capacity > 0 {
		out.Capacity = "capacity by present limits: " + draw.Count(int(capacity))
		if out.Line == "" {
			out.Capacity += ", above the picture"
		}
	}
	for _, l := range c.Lines {
		if !l.Dashed {
			out.Legend = append(out.Legend, l.Name)
		}
	}
	for i, at := range c.Times {
		below := 0.0
		for n, l := range c.Lines {
			if l.Dashed || l.Values[i] == nil || *l.Values[i] == 0 {
				continue
			}
			height := 100 * *l.Values[i] / most
			below += height
			out.Bars = append(out.Bars, bar{X: float64(i) + 0.05, Y: 100 - below, Width: 0.9, Height: height, Colour: n + 1, Text: fmt.Sprintf("%s, %s: %s", time.Unix(at, 0).UTC().Format("Jan 2 15:04 UTC"), l.Name, plural(int(*l.Values[i]), "job"))})
		}
	}
	return out
}
