package console

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/alert"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/cmd/internal/draw"
	"github.com/sluice-queue/sluice/stat"
)

// counted are the metrics that the statistics have, from the counts of a span of time.
var counted = map[string]func(c stat.Counts, span time.Duration) float64{
	alert.MetricDeadRate:      func(c stat.Counts, span time.Duration) float64 { return float64(c.Dead) / span.Seconds() },
	alert.MetricRecoveredRate: func(c stat.Counts, span time.Duration) float64 { return float64(c.Recovered) / span.Seconds() },
	alert.MetricStartFailures: func(c stat.Counts, span time.Duration) float64 { return float64(c.StartFailed) / span.Seconds() },
	alert.MetricSuccessRate: func(c stat.Counts, _ time.Duration) float64 {
		return stat.NewSummary([]stat.Stat{{Counts: c}}, time.Time{}, time.Time{}).SuccessRate
	},
	alert.MetricLeaseExpiry: func(c stat.Counts, _ time.Duration) float64 {
		return stat.NewSummary([]stat.Stat{{Counts: c}}, time.Time{}, time.Time{}).LeaseExpiryRate
	},
}

// draw gives the page the value of a rule against its threshold over time, in the queue of the page, else in the first with an
// alert.
func (view *ruleView) draw(ctx context.Context, v *visit) error {
	metric, err := alert.MetricNamed(view.Rule.Metric)
	if err != nil {
		return nil //nolint:nilerr // a newer server knows more
	}
	queue := v.query.Get("queue")
	for _, a := range view.Alerts {
		queue = or(queue, a.Queue)
	}
	if metric.OfQueue && queue == "" {
		view.Choices, err = v.queueChoices(ctx)
		return err
	}
	threshold, err := view.threshold(ctx, v, queue)
	if err != nil {
		return err
	}
	var c chart
	if counted[metric.Name] != nil || slices.Contains([]string{alert.MetricReady, alert.MetricOldestAge, alert.MetricRunP95}, metric.Name) {
		view.Windows = v.windowChoices()
		c, err = v.countedChart(ctx, queue, view.Rule)
	} else {
		c, err = v.noticedChart(ctx, queue, *view)
	}
	if err != nil {
		return err
	}
	c.Name, c.Title, c.Unit = "value", metric.Name+" against the threshold", metric.Unit
	if queue != "" {
		c.Title += ", queue " + queue
	}
	if metric.Unit == "bytes" { // the axis has no room for all digits
		c.Unit, threshold = "MiB", threshold/mebibyte
		for i, value := range c.Lines[0].Values {
			c.Lines[0].Values[i] = rounded(*value / mebibyte) // the audit has no gaps
		}
	}
	if len(c.Times) == 0 { // a picture needs a time
		now := time.Now().Unix()
		c.Times, c.Lines = []int64{now - 3600, now}, []line{{Name: "value", Values: make([]*float64, 2)}}
	}
	limit := line{Name: "threshold", Dashed: true}
	for range c.Times {
		limit.Values = append(limit.Values, rounded(threshold))
	}
	c.Sentence = view.Rule.past(c, threshold) + " " + c.Sentence
	c.Lines = append(c.Lines, limit)
	view.Charts = v.linked([]chart{c}, nil)
	return nil
}

const mebibyte = 1 << 20

// queueChoices are links to the page with one of the first queues.
func (v *visit) queueChoices(ctx context.Context) (all []choice, err error) {
	var read queueList
	err = v.readFor(ctx, seriesFor, "/queues", firstNames(), &read)
	for _, q := range read.Queues {
		if !sluice.IsInternalQueue(q.Name) && len(all) < queueLinks {
			all = append(all, choice{Text: q.Name, URL: v.windowURL("queue", q.Name)})
		}
	}
	return all, err
}

// queueLinks is how many queues a page links to.
const queueLinks = 20

// threshold is the threshold in a queue, as upkeep evaluates it.
func (view *ruleView) threshold(ctx context.Context, v *visit, queue string) (float64, error) {
	if view.Rule.RateShare == 0 || queue == "" {
		return view.Rule.Threshold, nil
	}
	var q queueRow
	if err := v.get(ctx, "/queues/"+url.PathEscape(queue), nil, &q); err != nil {
		return 0, err
	}
	if rate := q.perSecond(); rate > 0 {
		return min(view.Rule.Threshold, view.Rule.RateShare*rate), nil
	}
	return view.Rule.Threshold, nil
}

// past says how the last value and all others lie to the threshold.
func (r rule) past(c chart, threshold float64) string {
	values := slices.DeleteFunc(slices.Clone(c.Lines[0].Values), func(v *float64) bool { return v == nil })
	if len(values) == 0 {
		return "No value is known in this window. The alert fires when it is " + r.Op + " " + figure(threshold) + "."
	}
	past := 0
	for _, v := range values {
		if (alert.Rule{Op: r.Op}).Breaks(*v, threshold) {
			past++
		}
	}
	return fmt.Sprintf("The last known value is %s; the alert fires when it is %s %s. Of %s, %d %s past the threshold.", figure(*values[len(values)-1]), r.Op, figure(threshold), draw.Plural(len(values), "known value"), past, verb(past))
}

// verb is the verb of a number of things.
func verb(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

// countedChart draws a figure of which the statistics of the store have the history.
func (v *visit) countedChart(ctx context.Context, queue string, r rule) (chart, error) {
	looks, _ := sluice.ParseDuration(r.Window) // empty: the rule does not look back
	query, back := v.window(), looks
	if counted[r.Metric] == nil {
		back = 0
	}
	if from, err := time.Parse(time.RFC3339, query.Get("from")); err == nil {
		query.Set("from", from.Add(-back).Format(time.RFC3339))
	} else if length, err := sluice.ParseDuration(query.Get("window")); err == nil {
		query.Set("window", sluice.FormatDuration(length+back))
	}
	s, err := v.seriesOf(ctx, "/queues/"+url.PathEscape(queue)+"/series", query)
	if err != nil {
		return chart{}, err
	}
	v.cli("sluice stats " + quoted(queue) + " --window " + v.windowName())
	levels := s.levels()
	switch r.Metric {
	case alert.MetricReady:
		return levels[0], nil
	case alert.MetricOldestAge:
		return levels[1], nil
	case alert.MetricRunP95:
		c := s.chart("", "", "", quantileLines(func(one *slot) *quantiles { return one.Run })[1])
		c.Sentence = "Each value is of the jobs that ended in its slot; the rule looks back " + r.Window + "."
		return c, nil
	}
	return s.rolled(looks, counted[r.Metric]), nil
}

// rolled draws a figure of the counts of the window that ends with each slot. Slots whose window is not known as a whole are gaps.
func (s series) rolled(window time.Duration, value func(stat.Counts, time.Duration) float64) chart {
	var known []slot
	c := s.chart("", "", "", lineOf{"value", func(one *slot) *float64 {
		known = append(known, *one)
		place := float64(len(known) - 1)
		return &place
	}})
	c.Sentence = s.knownSince()
	every := s.every()
	if every <= 0 {
		return c
	}
	slots := max(1, int((window+every-1)/every))
	places := c.Lines[0].Values
	values := make([]*float64, len(places))
	for i := range places {
		if i+1 < slots || slices.Contains(places[i+1-slots:i+1], nil) {
			continue
		}
		var sum stat.Counts
		var lasted time.Duration
		for _, place := range places[i+1-slots : i+1] {
			one := known[int(*place)]
			sum.Add(one.Counts)
			lasted += one.lasted
		}
		values[i] = rounded(value(sum, lasted))
	}
	first := min(slots-1, len(values)) // the slots before the window of the page
	c.Times, c.Lines[0].Values = c.Times[first:], values[first:]
	return c
}

// knownSince says from when on the figures are known.
func (s series) knownSince() string {
	switch {
	case !s.Counted:
		return "Nobody counts the jobs of this window, or only some processes do: gaps are not zeros."
	case s.Since.After(s.From):
		return "What happened before " + s.Since.UTC().Format("15:04") + " UTC is not known."
	}
	return ""
}

// noticedChart draws the values that the audit has: those with which the alert fired and ended, and that of the last look.
func (v *visit) noticedChart(ctx context.Context, queue string, view ruleView) (chart, error) {
	c := chart{Kind: "bar", Lines: []line{{Name: "value"}}, Sentence: "The store keeps no history of this figure. Known are the values with which the alert fired and ended, and that of the last look while it was pending or fired."}
	query := url.Values{"rule": {view.Rule.Name}, "limit": {"50"}}
	if queue != "" {
		query.Set("queue", queue)
	}
	entries, err := v.entries(ctx, cacheFor, "/alerts/history", query)
	if err != nil {
		return c, err
	}
	add := func(at time.Time, value float64) {
		c.Times, c.Lines[0].Values = append(c.Times, at.Unix()), append(c.Lines[0].Values, rounded(value))
	}
	for _, e := range slices.Backward(entries) { // the newest comes first
		var told alert.Message
		if (e.Event == audit.EventAlertFires || e.Event == audit.EventAlertResolves || e.Event == audit.EventAlertHides) && json.Unmarshal(e.After, &told) == nil {
			add(e.At, told.Value)
		}
	}
	for _, a := range view.Alerts {
		if a.Queue == queue && (len(c.Times) == 0 || a.At.Unix() > c.Times[len(c.Times)-1]) {
			add(a.At, a.Value)
		}
	}
	return c, nil
}
