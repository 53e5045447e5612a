package console

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/cmd/internal/draw"
)

// histogram is the picture of the jobs that fall due, as rectangles of an SVG.
type histogram struct {
	Bars   []bar
	Curves []curve
	Width  int
	Most   string
	Begin  time.Time
	End    time.Time
	Legend []string
}

// curve is what is drawn over the bars: the capacity, or the jobs that wait.
type curve struct {
	Name string
	// Points are those of the line. Empty: it is above the picture. Area is the place below it; empty: it is not shaded.
	Points, Area   string
	Waits, Assumed bool
}

// Class is how it is drawn.
func (c curve) Class() string {
	class := "capacity"
	if c.Waits {
		class = "waits"
	}
	if c.Assumed {
		class += " assumed"
	}
	return class
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
	w.Chart.Lines = append(w.Chart.Lines, backlogOf(f, columns, line{Name: "due jobs that wait, by the present limits", Waits: true}))
	w.addCapacity(f, capacity, line{Name: "capacity by present limits", Dashed: true})
	w.Chart.Sentence = fmt.Sprintf("Due in the next %s: %s.", w.Ahead, draw.Plural(sum, "job"))
	if last, never := lastEnd(w.Rows); never {
		w.Chart.Sentence += " Some of them never start by the present limits."
	} else if !last.IsZero() {
		w.Chart.Sentence += " By the present limits they are done at " + last.UTC().Format("2006-01-02 15:04") + " UTC."
	}
	w.Chart.Sentence += mostWaiting(w.Chart)
	w.Chart = v.linked([]chart{w.Chart}, nil)[0]
	w.Picture = histogramOf(w.Chart, f.Now, f.Until)
}

// fillAssumed adds the curves under assumed limits to the picture of a queue.
func (w *wavesPage) fillAssumed(other forecastView) {
	columns := make(map[int64]int)
	for i, at := range w.Chart.Times {
		columns[at] = i
	}
	w.Chart.Lines = append(w.Chart.Lines, backlogOf(other, columns, line{Name: "due jobs that wait, what if", Waits: true, Assumed: true}))
	for _, q := range other.Queues {
		w.addCapacity(other, q.perSecond(), line{Name: "capacity, what if", Dashed: true, Assumed: true})
	}
	w.Picture = histogramOf(w.Chart, w.Picture.Begin, w.Picture.End)
}

// backlogOf fills a line with the due jobs that wait at the end of each bucket.
func backlogOf(f forecastView, columns map[int64]int, l line) line {
	l.Values = make([]*float64, len(columns))
	for _, q := range f.Queues {
		for _, one := range q.Waves {
			if i, is := columns[one.At.Unix()]; is && one.Span != "0s" {
				add(l.Values, i, float64(one.Backlog))
			}
		}
	}
	return l
}

// mostWaiting says in a sentence when most jobs wait. Empty: none waits.
func mostWaiting(c chart) string {
	at, most := int64(0), 0.0
	for _, l := range c.Lines {
		for i, value := range l.Values {
			if l.Waits && value != nil && *value > most {
				at, most = c.Times[i], *value
			}
		}
	}
	if most == 0 {
		return ""
	}
	return fmt.Sprintf(" At most %s wait at once, from %s UTC on.", draw.Plural(int(most), "job"), time.Unix(at, 0).UTC().Format("2006-01-02 15:04"))
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
func (w *wavesPage) addCapacity(f forecastView, perSecond float64, flat line) {
	bucket, err := sluice.ParseDuration(f.Bucket)
	if err != nil || perSecond == 0 || math.IsInf(perSecond, 1) || len(w.Chart.Times) == 0 {
		return
	}
	for range w.Chart.Times {
		flat.Values = append(flat.Values, rounded(perSecond*bucket.Seconds()))
	}
	w.Chart.Lines = append(w.Chart.Lines, flat)
}

// histogramOf draws a chart as stacked bars of an SVG that is 100 high and a unit wide for each bucket, with curves over them.
func histogramOf(c chart, begin, end time.Time) histogram {
	out := histogram{Width: max(1, len(c.Times)), Begin: begin, End: end}
	due, waiting, capacity := tops(c)
	out.Most = draw.Count(int(due))
	most := max(1, due, waiting)
	if capacity > 0 && capacity < 2*most {
		most = max(most, 1.05*capacity)
	}
	for _, l := range c.Lines {
		switch {
		case l.Dashed:
			out.Curves = append(out.Curves, capacityCurve(l, most))
		case l.Waits:
			if waits, drawn := backlogCurve(l, most); drawn {
				out.Curves = append(out.Curves, waits)
			}
		default:
			out.Legend = append(out.Legend, l.Name)
		}
	}
	for i, at := range c.Times {
		below := 0.0
		for n, l := range c.Lines {
			if l.Dashed || l.Waits || l.Values[i] == nil || *l.Values[i] == 0 {
				continue
			}
			tall := 100 * *l.Values[i] / most
			below += tall
			out.Bars = append(out.Bars, bar{X: float64(i) + 0.05, Y: 100 - below, Width: 0.9, Height: tall, Colour: n + 1, Text: fmt.Sprintf("%s, %s: %s", time.Unix(at, 0).UTC().Format("Jan 2 15:04 UTC"), l.Name, draw.Plural(int(*l.Values[i]), "job"))})
		}
	}
	return out
}

// tops are the most jobs that fall due in a bucket, the most that wait, and the largest capacity.
func tops(c chart) (due, waiting, capacity float64) {
	for i := range c.Times {
		sum := 0.0
		for _, l := range c.Lines {
			switch value := l.Values[i]; {
			case value == nil:
			case l.Dashed:
				capacity = max(capacity, *value)
			case l.Waits:
				waiting = max(waiting, *value)
			default:
				sum += *value
			}
		}
		due = max(due, sum)
	}
	return due, waiting, capacity
}

// capacityCurve is a flat line.
func capacityCurve(l line, most float64) curve {
	capacity := *l.Values[0]
	out := curve{Name: l.Name + ": " + draw.Count(int(capacity)), Assumed: l.Assumed}
	if capacity > most {
		out.Name += ", above the picture"
		return out
	}
	y := height(capacity, most)
	out.Points = "0," + y + " " + strconv.Itoa(len(l.Values)) + "," + y
	return out
}

// backlogCurve shades the jobs that wait; under assumed limits it is a line alone. It is not drawn if none waits.
func backlogCurve(l line, most float64) (out curve, drawn bool) {
	out = curve{Name: l.Name, Waits: true, Assumed: l.Assumed}
	var points []string
	for i, value := range l.Values {
		if value != nil {
			points = append(points, strconv.FormatFloat(float64(i)+0.5, 'f', 1, 64)+","+height(*value, most))
			drawn = drawn || *value > 0
		}
	}
	out.Points = strings.Join(points, " ")
	if !l.Assumed && len(points) > 0 {
		first, _, _ := strings.Cut(points[0], ",")
		last, _, _ := strings.Cut(points[len(points)-1], ",")
		out.Area = first + ",100 " + out.Points + " " + last + ",100"
	}
	return out, drawn || l.Assumed
}

// height is the place of a value from above.
func height(value, most float64) string { return strconv.FormatFloat(100-100*value/most, 'f', 2, 64) }
