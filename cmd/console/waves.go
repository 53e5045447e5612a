package console

import (
	"context"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/forecast"
)

func wavePages() []page {
	return []page{{name: "waves", path: "/waves", title: "Waves", letter: "w", load: loadWaves}}
}

// forecastView is a forecast, as the API writes it.
type forecastView struct {
	Now    time.Time       `json:"now"`
	Bucket string          `json:"bucket"`
	Until  time.Time       `json:"until"`
	Queues []queueForecast `json:"queues"`
}

// queueForecast is that of one queue.
type queueForecast struct {
	Queue       string                `json:"queue"`
	CountedAt   time.Time             `json:"counted_at"`
	Stale       bool                  `json:"stale"`
	Unserved    bool                  `json:"unserved"`
	Limits      []forecast.Limit      `json:"limits"`
	HeldTenants []forecast.HeldTenant `json:"held_tenants"`
	Notes       []string              `json:"notes"`
	RunTime     string                `json:"run_time"`
	Due         forecast.Tally        `json:"due"`
	InFlight    forecast.Tally        `json:"in_flight"`
	Later       forecast.Tally        `json:"later"`
	Waves       []wave                `json:"waves"`
}

// wave is the jobs that fall due in a bucket of time.
type wave struct {
	At        time.Time `json:"at"`
	Span      string    `json:"span"`
	Jobs      int       `json:"jobs"`
	Starts    int       `json:"starts"`
	Backlog   int       `json:"backlog"`
	Used      float64   `json:"used"`
	LastStart time.Time `json:"last_start"`
	Finished  time.Time `json:"finished"`
	Late      string    `json:"late"`
	NeverJobs int       `json:"never_start"`
	// Tenants are the jobs by tenant, if they were asked for.
	Tenants map[string]int `json:"tenants"`
}

// end is when the jobs of a wave are done; without a known run time, when the last one starts.
func (w wave) end() time.Time {
	if w.Finished.IsZero() {
		return w.LastStart
	}
	return w.Finished
}

// Held describes what holds a queue back.
func (q queueForecast) Held() string {
	return forecast.Queue{Limits: q.Limits, HeldTenants: q.HeldTenants}.Held()
}

// perSecond is how many jobs may start per second in the long run. +Inf: nothing limits it.
func (q queueForecast) perSecond() float64 {
	most := math.Inf(1)
	for _, l := range q.Limits {
		most = min(most, l.PerSecond)
	}
	return most
}

// wavesPage is the view of /waves.
type wavesPage struct {
	Queues  []string
	Queue   string
	Ahead   string
	Choices []choice
	// ByTenant says that the picture has a colour for each tenant, not for each queue.
	ByTenant bool
	// Bucket is the chosen length of a bucket. Empty: what fits. Buckets are the lengths that one can choose.
	Bucket  string
	Buckets []string
	Chart   chart
	Picture histogram
	Rows    []waveRow
	Facts   []queueForecast
	// WhatIf is the drawer; nil without a queue.
	WhatIf *whatIf
	// Counted is when the oldest count was made. Zero: some queue was never counted.
	Counted time.Time
}

func (w wavesPage) charts() []chart { return []chart{w.Chart} }

// waveRow is a wave of a queue in the table.
type waveRow struct {
	Queue string
	wave
	// Other is when it ends under the assumed limits. Zero: nothing is assumed, or never.
	Other      time.Time
	OtherNever bool
	Sooner     string
}

// Already reports whether the jobs of a row are due already.
func (w waveRow) Already() bool { return w.Span == "0s" }

// Where is the filter of the jobs of a wave that is not due yet, for acts on all of them.
func (w waveRow) Where() string {
	span, err := sluice.ParseDuration(w.Span)
	if err != nil || w.Already() {
		return ""
	}
	return "queue:" + w.Queue + " due:" + w.At.UTC().Format(time.RFC3339) + ".." + w.At.Add(span-time.Second).UTC().Format(time.RFC3339)
}

// End is when the jobs are done.
func (w waveRow) End() time.Time { return w.end() }

// LateWords is by how much the last of its jobs is late. Empty: none is.
func (w waveRow) LateWords() string {
	late, err := sluice.ParseDuration(w.Late)
	if err != nil || late < time.Second {
		return ""
	}
	return seconds(late.Round(time.Second))
}

// Never reports whether no job of it starts.
func (w waveRow) Never() bool { return w.Jobs > 0 && w.LastStart.IsZero() }

// whatIf is the form that assumes other limits.
type whatIf struct {
	Rate, Concurrency, Most       float64
	MostConcurrency               float64
	RunTime, Batch                string
	NowRate, NowConcurrency       string
	Present, Other                time.Time
	Asked, PresentNever, NewNever bool
	Held                          string
	// From and To are the hours of the waves, from the first one to the end under these limits. Empty: they are no part of a day.
	From, To string
}

// aheads are the lengths of the picture.
var aheads = []string{"2h", "6h", "24h", "3d", "7d"}

func loadWaves(ctx context.Context, v *visit) (any, error) {
	view := wavesPage{Queue: v.query.Get("queue"), Ahead: "2h"}
	for _, name := range aheads {
		if v.query.Get("ahead") == name {
			view.Ahead = name
		}
	}
	view.ByTenant = v.query.Get("by") == "tenant"
	view.Buckets = bucketsOf(view.Ahead)
	if bucket := v.query.Get("bucket"); slices.Contains(view.Buckets, bucket) {
		view.Bucket = bucket
	}
	for _, name := range aheads {
		view.Choices = append(view.Choices, choice{Text: name, URL: v.with("ahead", name), Here: name == view.Ahead})
	}
	queues, err := v.firstQueues(ctx)
	if err != nil {
		return nil, err
	}
	for _, q := range queues {
		view.Queues = append(view.Queues, q.Name)
	}
	if view.Queue != "" && !slices.Contains(view.Queues, view.Queue) {
		view.Queues = append(view.Queues, view.Queue)
	}
	path, query := "/forecast", url.Values{"ahead": {view.Ahead}}
	if view.Queue != "" {
		path = "/queues/" + url.PathEscape(view.Queue) + "/forecast"
	}
	command := strings.TrimSpace("sluice forecast "+quotedOr(view.Queue)) + " --ahead " + view.Ahead
	if view.Bucket != "" {
		query.Set("bucket", view.Bucket)
		command += " --bucket " + view.Bucket
	}
	if view.ByTenant {
		query.Set("tenants", "true")
		command += " --by tenant"
	}
	v.cli(command)
	var present forecastView
	if err := v.getFor(ctx, seriesFor, path, query, &present); err != nil {
		return nil, err
	}
	view.fill(v, present)
	if view.Queue == "" {
		return view, nil
	}
	return view, v.assume(ctx, &view, path, query, command)
}

// bucketsOf are the lengths of buckets that one can choose: jobs that fall due later than in a day are counted by the hour.
func bucketsOf(ahead string) []string {
	if length, err := sluice.ParseDuration(ahead); err == nil && length > forecast.MinuteHorizon {
		return []string{"1h"}
	}
	return []string{"1m", "5m", "1h"}
}

func quotedOr(text string) string {
	if text == "" {
		return ""
	}
	return quoted(text)
}

// assume fills in the drawer, and the times under the assumed limits. The command shows the present ones.
func (v *visit) assume(ctx context.Context, view *wavesPage, path string, query url.Values, command string) error {
	var queue queueRow
	if err := v.get(ctx, "/queues/"+url.PathEscape(view.Queue), nil, &queue); err != nil {
		return err
	}
	w := &whatIf{NowRate: queue.Settings["rate"], NowConcurrency: queue.Settings["concurrency"], RunTime: v.query.Get("run_time"), Batch: v.query.Get("batch")}
	view.WhatIf = w
	if rate, err := sluice.ParseRate(w.NowRate); err == nil {
		w.Rate = math.Ceil(rate.PerSecond())
	}
	w.Concurrency, _ = strconv.ParseFloat(w.NowConcurrency, 64)
	w.Most, w.MostConcurrency = niceAbove(10*w.Rate), niceAbove(10*w.Concurrency)
	flags := ""
	for name, into := range map[string]*float64{"rate": &w.Rate, "concurrency": &w.Concurrency} {
		if n, err := strconv.ParseFloat(strings.TrimSuffix(v.query.Get(name), "/s"), 64); err == nil && n > 0 {
			*into = n
			w.Asked = true
			text := strconv.FormatFloat(n, 'f', -1, 64)
			if name == "rate" {
				text += "/s"
			}
			query.Set(name, text)
		}
	}
	for name, text := range map[string]string{"run_time": w.RunTime, "batch": w.Batch} {
		if text != "" {
			w.Asked = true
			query.Set(name, text)
		}
	}
	w.Present, w.PresentNever = lastEnd(view.Rows)
	if !w.Asked {
		return nil
	}
	for _, one := range [][2]string{{"rate", "--rate"}, {"batch", "--batch"}, {"concurrency", "--concurrency"}, {"run_time", "--duration"}} {
		if text := query.Get(one[0]); text != "" {
			flags += " " + one[1] + " " + quoted(text)
		}
	}
	v.cli(command + flags)
	var other forecastView
	if err := v.getFor(ctx, seriesFor, path, query, &other); err != nil {
		return err
	}
	for _, q := range other.Queues {
		w.Held = q.Held()
		view.compare(q)
	}
	view.fillAssumed(other)
	return nil
}

// compare puts the times under the assumed limits beside the present ones.
func (w *wavesPage) compare(other queueForecast) {
	var rows []waveRow
	for i := range w.Rows {
		row := &w.Rows[i]
		for _, one := range other.Waves {
			if one.At.Equal(row.At) && one.Span == row.Span {
				row.Other, row.OtherNever = one.end(), one.Jobs > 0 && one.LastStart.IsZero()
				if a, b := row.end(), one.end(); !a.IsZero() && !b.IsZero() {
					row.Sooner = earlier(a.Sub(b))
				}
				rows = append(rows, waveRow{wave: one})
			}
		}
	}
	w.WhatIf.Other, w.WhatIf.NewNever = lastEnd(rows)
	w.WhatIf.From, w.WhatIf.To = hoursOf(w.Rows, w.WhatIf.Other)
}

// hoursOf are the times of day from the first wave to come until an end, in UTC, in whole minutes. Empty: there is no wave, or
// they take a day.
func hoursOf(rows []waveRow, end time.Time) (from, to string) {
	for _, r := range rows {
		first, last := r.At.UTC(), end.UTC().Truncate(time.Minute).Add(time.Minute)
		if r.Already() || r.Jobs == 0 {
			continue
		}
		if last.After(first) && last.Sub(first) < 24*time.Hour {
			return first.Format("15:04"), last.Format("15:04")
		}
		return "", ""
	}
	return "", ""
}

// earlier says how much sooner something is.
func earlier(sooner time.Duration) string {
	switch sooner = sooner.Round(time.Second); {
	case sooner > 0:
		return seconds(sooner) + " sooner"
	case sooner < 0:
		return seconds(-sooner) + " later"
	}
	return "the same"
}

// Change says how the end moves.
func (w whatIf) Change() string {
	if w.Present.IsZero() || w.Other.IsZero() {
		return ""
	}
	return earlier(w.Present.Sub(w.Other))
}

// lastEnd is when the last of all waves is done, and whether some never start.
func lastEnd(rows []waveRow) (last time.Time, never bool) {
	for _, r := range rows {
		never = never || r.NeverJobs > 0
		if r.end().After(last) {
			last = r.end()
		}
	}
	return last, never
}

// niceAbove is the end of a scale: 100 at least, and a round number.
func niceAbove(value float64) float64 {
	scale := 100.0
	for scale < value {
		scale *= 10
	}
	return scale
}
