package console

import (
	"context"
	"fmt"
	"math"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/cmd/internal/draw"
	"github.com/sluice-queue/sluice/stat"
)

// series is figures over time, of a queue or of all.
type series struct {
	From    time.Time `json:"from"`
	To      time.Time `json:"to"`
	Every   float64   `json:"every_seconds"`
	Counted bool      `json:"counted"`
	// Since is from when the figures are known. Zero: they are not.
	Since time.Time `json:"counted_from"`
	Slots []slot    `json:"slots"`
}

// slot is the figures of a slot of time.
type slot struct {
	At     time.Time   `json:"at"`
	Counts stat.Counts `json:"counts"`
	Wait   *quantiles  `json:"wait_seconds"`
	Run    *quantiles  `json:"run_seconds"`
	Level  *stat.Level `json:"level"`

	// Lasted is the part of the slot that has passed.
	lasted time.Duration
}

// moved reports whether a job moved in the slot.
func (s *slot) moved() bool { return s.Counts != (stat.Counts{}) }

// quantiles are times in seconds.
type quantiles struct {
	P50 float64 `json:"p50"`
	P95 float64 `json:"p95"`
	P99 float64 `json:"p99"`
}

// windows are the lengths of pictures, the shortest first.
var windows = []string{"15m", "1h", "6h", "24h", "7d"}

const (
	// seriesFor is how long figures over time are shared: they change every 10 s.
	seriesFor = 5 * time.Second
	// chartSlots is the most points of a chart, and sparkSlots those of a small one.
	chartSlots, sparkSlots = "180", "60"
	// seriesDelay is how late the figures of a slot are complete.
	seriesDelay = 20 * time.Second
	// newestAfter is how old the newest slot must be to be shown: figures that are late change it by a tenth at most.
	newestAfter = 10 * seriesDelay
)

// window is the part of time that the URL asks for.
func (v *visit) window() url.Values {
	query := url.Values{"slots": {chartSlots}}
	if v.query.Has("from") || v.query.Has("to") {
		for _, name := range []string{"from", "to"} {
			if text := v.query.Get(name); text != "" {
				query.Set(name, text)
			}
		}
		return query
	}
	query.Set("window", v.windowName())
	return query
}

// windowName is the chosen window. Default: 1 h.
func (v *visit) windowName() string {
	for _, name := range windows {
		if v.query.Get("window") == name {
			return name
		}
	}
	return "1h"
}

// choice is a value of a row of links.
type choice struct {
	Text, URL string
	Here      bool
	// Rel says where the link goes from here: prev is earlier, next is later. Empty: it is another length.
	Rel string
}

// windowChoices are links to the page with other windows: of other lengths, and the ones before and after.
func (v *visit) windowChoices() (all []choice) {
	for _, name := range windows {
		all = append(all, choice{Text: name, URL: v.windowURL("window", name), Here: name == v.windowName() && !v.query.Has("from")})
	}
	from, to := v.windowEnds()
	beside := func(text, rel string, by time.Duration) {
		at := v.windowURL("from", from.Add(by).Format(time.RFC3339), "to", to.Add(by).Format(time.RFC3339))
		all = append(all, choice{Text: text, URL: at, Rel: rel})
	}
	length := to.Sub(from)
	if length <= 0 {
		return all
	}
	beside("Earlier", "prev", -length)
	if to.Add(length / 2).Before(time.Now()) {
		beside("Later", "next", length)
	}
	return all
}

// windowEnds are the ends of the shown part of time. Equal ones: the URL does not say them.
func (v *visit) windowEnds() (from, to time.Time) {
	if v.query.Has("from") || v.query.Has("to") {
		from, _ = time.Parse(time.RFC3339, v.query.Get("from"))
		to, _ = time.Parse(time.RFC3339, v.query.Get("to"))
		if from.IsZero() {
			return to, to
		}
		return from.UTC(), to.UTC()
	}
	length, _ := sluice.ParseDuration(v.windowName()) // one of the windows
	to = time.Now().UTC()
	return to.Add(-length), to
}

// windowURL is the address of the page with another window.
func (v *visit) windowURL(pairs ...string) string {
	query := url.Values{}
	for key, values := range v.query {
		if !slices.Contains([]string{"from", "to", "csv", "window"}, key) {
			query[key] = values
		}
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		query.Set(pairs[i], pairs[i+1])
	}
	return v.console.options.Base + escaped(v.path) + "?" + query.Encode()
}

// escaped writes a path for a URL.
func escaped(path string) string { return (&url.URL{Path: path}).EscapedPath() }

// seriesOf reads figures over time. Path is below the API's root.
func (v *visit) seriesOf(ctx context.Context, path string, query url.Values) (s series, err error) {
	return s, v.getFor(ctx, seriesFor, path, query, &s)
}

// figureOf takes one value of a slot. A nil value is a gap.
type figureOf func(s *slot) *float64

// lineOf is a figure of a series as a line.
type lineOf struct {
	name  string
	value figureOf
}

// every is the length of a slot.
func (s series) every() time.Duration { return time.Duration(s.Every * float64(time.Second)) }

// lasted is how much of the slot that begins at an instant has passed. False: it is too early to show the slot.
func (s series) lasted(at time.Time) (time.Duration, bool) {
	every, passed := s.every(), s.To.Sub(at)
	whole := passed >= every+min(seriesDelay, every)
	return min(every, passed), every > 0 && (whole || passed >= newestAfter)
}

// chart draws lines of a series. Slots without a move are 0 from when processes counted on, else gaps.
func (s series) chart(name, title, unit string, lines ...lineOf) chart {
	c := chart{Name: name, Title: title, Unit: unit, Kind: "line", Lines: make([]line, len(lines))}
	for i, l := range lines {
		c.Lines[i].Name = l.name
	}
	every, next := s.every(), 0
	for at := s.From; ; at = at.Add(every) {
		lasted, shown := s.lasted(at)
		if !shown {
			return c
		}
		var here *slot
		for next < len(s.Slots) && s.Slots[next].At.Before(at.Add(every)) {
			here = &s.Slots[next]
			next++
		}
		switch counted := s.Counted && at.Add(every).After(s.Since); {
		case here == nil && counted:
			here = &slot{}
		case here != nil && !here.moved() && !counted: // upkeep looked, but nobody counted
			here = nil
		}
		if here != nil {
			here.lasted = lasted
		}
		c.Times = append(c.Times, at.Unix())
		for i, l := range lines {
			var value *float64
			if here != nil {
				value = l.value(here)
			}
			c.Lines[i].Values = append(c.Lines[i].Values, value)
		}
	}
}

// perSecond is a count as a rate.
func perSecond(count func(c stat.Counts) int64) figureOf {
	return func(one *slot) *float64 { return rounded(float64(count(one.Counts)) / one.lasted.Seconds()) }
}

// rounded keeps 4 digits, enough for a picture.
func rounded(value float64) *float64 {
	if value != 0 {
		scale := math.Pow(10, 3-math.Floor(math.Log10(math.Abs(value))))
		value = math.Round(value*scale) / scale
	}
	return &value
}

// quantileLines are the three lines of times.
func quantileLines(of func(*slot) *quantiles) []lineOf {
	take := func(pick func(q *quantiles) float64) figureOf {
		return func(s *slot) *float64 {
			if q := of(s); q != nil {
				return rounded(pick(q))
			}
			return nil
		}
	}
	return []lineOf{
		{"p50", take(func(q *quantiles) float64 { return q.P50 })},
		{"p95", take(func(q *quantiles) float64 { return q.P95 })},
		{"p99", take(func(q *quantiles) float64 { return q.P99 })},
	}
}

// flow draws what comes in and goes out.
func (s series) flow(limit float64) chart {
	c := s.chart("flow", "In and out", "jobs/s",
		lineOf{"enqueued", perSecond(func(c stat.Counts) int64 { return c.Enqueued + c.Requeued })},
		lineOf{"started", perSecond(func(c stat.Counts) int64 { return c.Claimed })},
		lineOf{"completed", perSecond(func(c stat.Counts) int64 { return c.Completed })},
		lineOf{"failed attempts", perSecond(func(c stat.Counts) int64 { return c.Failed })})
	if limit > 0 {
		flat := line{Name: "limit", Dashed: true}
		for range c.Times {
			flat.Values = append(flat.Values, rounded(limit))
		}
		c.Lines = append(c.Lines, flat)
	}
	var in, out, died int64
	for _, one := range s.Slots {
		in, out, died = in+one.Counts.Enqueued+one.Counts.Requeued, out+one.Counts.Completed, died+one.Counts.Dead
	}
	if c.Sentence = s.knownSince(); !s.Counted {
		return c
	}
	c.Sentence = strings.TrimSpace(fmt.Sprintf("%s came in, %s completed and %s died in this window.", draw.Count(int(in)), draw.Count(int(out)), draw.Count(int(died))) + " " + c.Sentence)
	return c
}

// times draws waits and run times.
func (s series) times() []chart {
	wait := s.chart("wait", "Wait, from due to start", "s", quantileLines(func(s *slot) *quantiles { return s.Wait })...)
	run := s.chart("run", "Run, from start to end", "s", quantileLines(func(s *slot) *quantiles { return s.Run })...)
	for _, c := range []*chart{&wait, &run} {
		c.Sentence = "No job was measured in this window."
		for i, v := range c.Lines[0].Values {
			if v != nil {
				c.Sentence = fmt.Sprintf("Last: half of the jobs took at most %s, 95 %% at most %s.", seconds(*v), seconds(*c.Lines[1].Values[i]))
			}
		}
	}
	return []chart{wait, run}
}

// levelFor is how long a look of upkeep holds: it looks each minute.
const levelFor = 90 * time.Second

// levels draws how many jobs waited, and how long the oldest. A gap: nothing waited when upkeep looked, or it did not look.
func (s series) levels() []chart {
	ready := chart{Name: "ready", Title: "Ready jobs, the most in each slot", Unit: "jobs", Kind: "area", Sentence: "Upkeep saw no ready job in this window."}
	oldest := chart{Name: "oldest", Title: "Oldest ready job, the longest in each slot", Unit: "s", Kind: "area", Sentence: ready.Sentence}
	ready.Lines, oldest.Lines = []line{{Name: "ready"}}, []line{{Name: "since it was due"}}
	var last, most *slot
	next, every := 0, s.every()
	for at := s.From; ; at = at.Add(every) {
		if _, shown := s.lasted(at); !shown {
			break
		}
		for ; next < len(s.Slots) && s.Slots[next].At.Before(at.Add(every)); next++ {
			if here := &s.Slots[next]; here.Level != nil {
				last = here
			}
		}
		var jobs, age *float64
		if last != nil && (at.Sub(last.At) < every || at.Sub(last.At) < levelFor) {
			jobs, age = rounded(float64(last.Level.Ready)), rounded(last.Level.OldestSeconds)
			if most == nil || last.Level.Ready > most.Level.Ready {
				most = last
			}
		}
		for c, value := range map[*chart]*float64{&ready: jobs, &oldest: age} {
			c.Times = append(c.Times, at.Unix())
			c.Lines[0].Values = append(c.Lines[0].Values, value)
		}
	}
	if most != nil {
		ready.Sentence = fmt.Sprintf("At most %s were ready, at %s UTC. Upkeep counts each minute. Where the line has a gap, no job was ready, or upkeep did not run.", draw.Plural(int(most.Level.Ready), "job"), most.At.UTC().Format("15:04"))
		oldest.Sentence = fmt.Sprintf("At the last look with jobs, the oldest had been due for %s. Upkeep counts each minute. Where the line has a gap, no job was ready, or upkeep did not run.", seconds(last.Level.OldestSeconds))
	}
	return []chart{ready, oldest}
}

// failures counts dead jobs and failed attempts, for the strip.
func (s series) failures() chart {
	c := s.chart("failures", "Failed attempts", "attempts", lineOf{"failed", func(one *slot) *float64 { return rounded(float64(one.Counts.Failed)) }})
	var sum int64
	for _, one := range s.Slots {
		sum += one.Counts.Failed
	}
	c.Sentence = draw.Plural(int(sum), "attempt") + " failed in this window."
	return c
}

// linked gives charts the address of their CSV, which has the filters of the page, and their marks.
func (v *visit) linked(charts []chart, marks []mark) []chart {
	to, err := time.Parse(time.RFC3339, v.query.Get("to"))
	if err != nil { // until now
		to = time.Now()
	}
	for i := range charts {
		query := url.Values{}
		for name, values := range v.query {
			query[name] = values
		}
		query.Set("csv", charts[i].Name)
		charts[i].CSV = "?" + query.Encode()
		charts[i].Marks = nil
		for _, m := range marks {
			if times := charts[i].Times; len(times) > 0 && m.At >= times[0] && m.At <= to.Unix() {
				charts[i].Marks = append(charts[i].Marks, m)
			}
		}
	}
	return charts
}

func or(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

// shownDifferences is how many values of a new thing a table shows.
const shownDifferences = 6

// Short are the values that an act replaced, without what a table has no room for.
func (e auditEntry) Short() []difference {
	found := e.Changes()
	if e.Object == "queue" && found != nil {
		return settingDifferences(found)
	}
	if len(e.Before) == 0 {
		found = slices.DeleteFunc(found, func(d difference) bool {
			return slices.Contains([]string{"", "0", "false"}, d.After) || d.Name == "name" || d.Name == "id"
		})
	}
	return found[:min(len(found), shownDifferences)]
}

// settingDifferences are those of the settings of a queue, as a line of a table has room for them.
func settingDifferences(all []difference) (found []difference) {
	for _, d := range all {
		switch d.Name {
		case "scheduled": // a list of objects, which the page shows by itself
			found = append(found, difference{Name: d.Name, After: "changed"})
		case "version":
		default:
			found = append(found, d)
		}
	}
	return found
}

// spark is a small picture of one figure, as the points of an SVG of 100 by 24.
type spark struct {
	// Lines are the parts of the line between gaps, and Limit the height of the limit; negative: none.
	Lines []string
	Limit float64
	Text  string
}

// spark draws a figure, with a limit of 0 or more.
func (s series) spark(text string, limit float64, value figureOf) spark {
	return sparkOf(s.chart("", "", "", lineOf{"", value}), text, limit)
}

// sparkOf draws the first line of a chart, with a limit of 0 or more.
func sparkOf(c chart, text string, limit float64) spark {
	values, most := c.Lines[0].Values, limit
	for _, v := range values {
		if v != nil {
			most = max(most, *v)
		}
	}
	out := spark{Text: text, Limit: -1}
	if most <= 0 {
		most = 1
	}
	if limit > 0 {
		out.Limit = 23 - 22*limit/most
	}
	var points []string
	for i, v := range values {
		if v != nil {
			x, y := 100*float64(i)/float64(max(1, len(values)-1)), 23-22**v/most
			if points = append(points, fmt.Sprintf("%.1f,%.1f", x, y)); alone(values, i) {
				points = []string{fmt.Sprintf("%.1f,%.1f", x-1, y), fmt.Sprintf("%.1f,%.1f", x+1, y)} // a line of one point has no length
			}
		}
		if len(points) > 0 && (v == nil || i == len(values)-1) {
			out.Lines, points = append(out.Lines, strings.Join(points, " ")), nil
		}
	}
	return out
}
