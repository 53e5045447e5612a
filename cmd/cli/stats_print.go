package cli

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/cmd/internal/draw"
	"github.com/sluice-queue/sluice/stat"
)

// statsRow has the figures of a queue, or of a tenant in it, over a window.
type statsRow struct {
	Queue  string    `json:"queue"`
	Tenant string    `json:"tenant,omitempty"`
	From   time.Time `json:"from"`
	To     time.Time `json:"to"`
	// Current figures exist for whole queues only.
	Depth         *sluice.Depth `json:"depth,omitempty"`
	OldestSeconds *float64      `json:"oldest_seconds,omitempty"`
	InFlight      *int          `json:"in_flight,omitempty"`

	// Counted reports whether somebody counts. If not, all following fields are null.
	Counted   bool         `json:"counted"`
	Counts    *stat.Counts `json:"counts"`
	PerSecond *float64     `json:"completed_per_second"`
	// SuccessRate and LeaseExpiryRate are also null if no job ended, or none was claimed.
	SuccessRate     *float64 `json:"success_rate"`
	LeaseExpiryRate *float64 `json:"lease_expiry_rate"`
	// Wait, Run and Total are also null if no job completed.
	Wait  *quantileRow `json:"wait_seconds"`
	Run   *quantileRow `json:"run_seconds"`
	Total *quantileRow `json:"total_seconds"`

	summary stat.Summary
}

// quantileRow is in seconds.
type quantileRow struct {
	P50 float64 `json:"p50"`
	P95 float64 `json:"p95"`
	P99 float64 `json:"p99"`
}

func quantilesOf(q stat.Quantiles) quantileRow {
	return quantileRow{threeDigits(q.P50), threeDigits(q.P95), threeDigits(q.P99)}
}

// threeDigits returns a time in seconds, as exact as histograms are.
func threeDigits(d time.Duration) float64 {
	f, _ := strconv.ParseFloat(strconv.FormatFloat(d.Seconds(), 'g', 3, 64), 64) // formatted just now
	return f
}

// tell sets the figures of a window in which somebody counted.
func (row *statsRow) tell(s stat.Summary) {
	row.Counts, row.PerSecond = &s.Counts, &s.Rate
	if s.Counts.Completed > 0 {
		wait, run, total := quantilesOf(s.Wait), quantilesOf(s.Run), quantilesOf(s.Total)
		row.Wait, row.Run, row.Total = &wait, &run, &total
	}
}

func statsRows(all []stat.Summary) []statsRow {
	var rows []statsRow
	for _, s := range all {
		row := statsRow{
			Queue: s.Queue, Tenant: s.Tenant, From: s.From, To: s.To, Counted: s.Counted,
			SuccessRate: successOf(s), LeaseExpiryRate: expiryOf(s), summary: s,
		}
		if s.Counted {
			row.tell(s)
		}
		if s.Tenant == "" {
			oldest := s.OldestAge.Seconds()
			row.Depth, row.OldestSeconds, row.InFlight = &s.Depth, &oldest, &s.InFlight
		}
		rows = append(rows, row)
	}
	return rows
}

// rate formats a count per second, minute or hour.
func (row *statsRow) rate(of func(stat.Counts) int64) string {
	if row.Counts == nil {
		return stat.NotCounted
	}
	return rateOf(of(*row.Counts), row.summary)
}

func (row *statsRow) share(part *float64) string {
	if !row.Counted {
		return stat.NotCounted
	}
	return partOf(part)
}

// tablePicture is the width of a chart in a table row.
const tablePicture = 20

func statsColumns(f statsFlags) []column[statsRow] {
	columns := []column[statsRow]{{title: "QUEUE", text: func(r statsRow) string { return r.Queue }}}
	if f.by == "tenant" || f.tenant != "" {
		columns = append(columns, column[statsRow]{title: "OF TENANT", text: func(r statsRow) string { return r.Tenant }})
	} else {
		columns = append(columns,
			column[statsRow]{title: "READY", text: func(r statsRow) string { return depthOf(r.Depth.Ready) }, numeric: true},
			column[statsRow]{title: "OLDEST", text: func(r statsRow) string { return age(r.summary) }, numeric: true},
			column[statsRow]{title: "IN FLIGHT", text: func(r statsRow) string { return depthOf(*r.InFlight) }, numeric: true},
			column[statsRow]{title: "DEAD", text: func(r statsRow) string { return depthOf(r.Depth.Dead) }, numeric: true},
		)
	}
	return append(columns,
		column[statsRow]{title: "ENQUEUED", text: func(r statsRow) string { return r.rate(func(c stat.Counts) int64 { return c.Enqueued }) }, numeric: true},
		column[statsRow]{title: "COMPLETED", text: func(r statsRow) string { return r.rate(func(c stat.Counts) int64 { return c.Completed }) }, numeric: true},
		column[statsRow]{title: "SUCCESS", text: func(r statsRow) string { return r.share(r.SuccessRate) }, numeric: true},
		column[statsRow]{title: "EXPIRED", text: func(r statsRow) string { return r.share(r.LeaseExpiryRate) }, numeric: true},
		column[statsRow]{title: "WAIT P95", text: func(r statsRow) string { return took(r.summary.Wait.P95) }, numeric: true},
		column[statsRow]{title: "RUN P50", text: func(r statsRow) string { return took(r.summary.Run.P50) }, numeric: true},
		column[statsRow]{title: "RUN P95", text: func(r statsRow) string { return took(r.summary.Run.P95) }, numeric: true},
		column[statsRow]{title: "RUN P99", text: func(r statsRow) string { return took(r.summary.Run.P99) }, numeric: true},
		column[statsRow]{title: "TOTAL P95", text: func(r statsRow) string { return took(r.summary.Total.P95) }, numeric: true},
		column[statsRow]{title: "OVER TIME", text: func(r statsRow) string {
			if !r.Counted {
				return stat.NotCounted
			}
			return countsPicture(r.summary, tablePicture, func(c stat.Counts) int64 { return c.Completed })
		}},
	)
}

// moveRow is a move with its number of jobs.
type moveRow struct {
	name  string
	jobs  func(stat.Counts) int64
	usual bool // shown even for 0 jobs
}

var moveRows = []moveRow{
	{"enqueued", func(c stat.Counts) int64 { return c.Enqueued }, true},
	{"claimed", func(c stat.Counts) int64 { return c.Claimed }, true},
	{"dispatched", func(c stat.Counts) int64 { return c.Dispatched }, false},
	{"start failed", func(c stat.Counts) int64 { return c.StartFailed }, false},
	{"completed", func(c stat.Counts) int64 { return c.Completed }, true},
	{"failed", func(c stat.Counts) int64 { return c.Failed }, true},
	{"dead", func(c stat.Counts) int64 { return c.Dead }, true},
	{"released", func(c stat.Counts) int64 { return c.Released }, false},
	{"recovered", func(c stat.Counts) int64 { return c.Recovered }, false},
	{"cancelled", func(c stat.Counts) int64 { return c.Cancelled }, false},
	{"uncertain", func(c stat.Counts) int64 { return c.Uncertain }, false},
	{"requeued", func(c stat.Counts) int64 { return c.Requeued }, false},
}

// timeRow is how long something took.
type timeRow struct {
	name      string
	quantiles stat.Quantiles
	of        func(stat.Stat) stat.Histogram
}

// widestPicture is the most columns of a chart below another; besidePicture is the width beside it.
const (
	widestPicture = 60
	besidePicture = 34
)

// printSummary prints everything about one queue, or one tenant in it.
func (a *app) printSummary(s stat.Summary, f statsFlags) error {
	if _, err := fmt.Fprint(a.stdout, headOf(s)); err != nil {
		return err
	}
	if !s.Counted {
		_, err := fmt.Fprintln(a.stdout, stat.NotCounted+": in this window no process counted what it does, or one that serves the queue does not count; see NoStatistics in docs/guide/statistics.md")
		return err
	}
	picture := widestPicture
	if width := terminalWidth(a.stdout); width > 0 {
		picture = max(min(width-besidePicture, widestPicture), 10)
	}
	var moves []moveRow
	for _, m := range moveRows {
		if m.usual || m.jobs(s.Counts) > 0 {
			moves = append(moves, m)
		}
	}
	last := "LAST " + duration{&f.window}.String()
	err := printTable(a, moves, []column[moveRow]{
		{title: "MOVE", text: func(m moveRow) string { return m.name }},
		{title: "JOBS", text: func(m moveRow) string { return draw.Count(int(m.jobs(s.Counts))) }, numeric: true},
		{title: "RATE", text: func(m moveRow) string { return rateOf(m.jobs(s.Counts), s) }, numeric: true},
		{title: last, text: func(m moveRow) string { return countsPicture(s, picture, m.jobs) }},
	})
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(a.stdout); err != nil {
		return err
	}
	times := []timeRow{
		{"wait", s.Wait, func(s stat.Stat) stat.Histogram { return s.Wait }},
		{"run", s.Run, func(s stat.Stat) stat.Histogram { return s.Run }},
		{"total", s.Total, func(s stat.Stat) stat.Histogram { return s.Total }},
	}
	return printTable(a, times, []column[timeRow]{
		{title: "TIME", text: func(t timeRow) string { return t.name }},
		{title: "P50", text: func(t timeRow) string { return took(t.quantiles.P50) }, numeric: true},
		{title: "P95", text: func(t timeRow) string { return took(t.quantiles.P95) }, numeric: true},
		{title: "P99", text: func(t timeRow) string { return took(t.quantiles.P99) }, numeric: true},
		{title: "P95, " + last, text: func(t timeRow) string { return timesPicture(s, picture, t.of) }},
	})
}

// successOf is the success rate of a window; nil: no job ended, or nobody counted.
func successOf(s stat.Summary) *float64 {
	if !s.Counted || s.Counts.Completed+s.Counts.Dead == 0 {
		return nil
	}
	return &s.SuccessRate
}

// expiryOf is the share of claims whose lease expired; nil: no claims, or nobody counted.
func expiryOf(s stat.Summary) *float64 {
	if !s.Counted || s.Counts.Claimed == 0 {
		return nil
	}
	return &s.LeaseExpiryRate
}

// headOf describes a queue now, and the success of its jobs.
func headOf(s stat.Summary) string {
	name := s.Queue
	if s.Tenant != "" {
		name += ", tenant " + oneLine(s.Tenant)
	}
	text := fmt.Sprintf("%s, from %s to %s\n", name, s.From.Format(time.RFC3339), s.To.Truncate(time.Second).Format(time.RFC3339))
	if s.Tenant == "" {
		text += fmt.Sprintf("ready %s, oldest %s, scheduled %s, blocked %s, in flight %s, uncertain %s, dead %s\n",
			depthOf(s.Depth.Ready), age(s), depthOf(s.Depth.Scheduled), depthOf(s.Depth.Blocked), depthOf(s.InFlight), depthOf(s.Depth.Uncertain), depthOf(s.Depth.Dead))
	}
	if !s.Counted {
		return text
	}
	return text + fmt.Sprintf("success rate %s, lease expiry rate %s\n\n", partOf(successOf(s)), partOf(expiryOf(s)))
}

// bucketRow has the figures of a bucket.
type bucketRow struct {
	At     time.Time   `json:"at"`
	Every  string      `json:"every"`
	Queue  string      `json:"queue"`
	Tenant string      `json:"tenant,omitempty"`
	Counts stat.Counts `json:"counts"`
	Wait   quantileRow `json:"wait_seconds"`
	Run    quantileRow `json:"run_seconds"`
	Total  quantileRow `json:"total_seconds"`

	stat stat.Stat
}

func bucketRows(slots []stat.Stat) []bucketRow {
	var rows []bucketRow
	for _, s := range slots {
		rows = append(rows, bucketRow{
			s.At, duration{&s.Every}.String(), s.Queue, s.Tenant, s.Counts,
			quantilesOf(s.Wait.Quantiles()), quantilesOf(s.Run.Quantiles()), quantilesOf(s.Total.Quantiles()), s,
		})
	}
	return rows
}

func bucketColumns(several bool, f statsFlags) []column[bucketRow] {
	columns := []column[bucketRow]{{title: "AT", text: func(r bucketRow) string { return r.At.Format(time.RFC3339) }}}
	if several {
		columns = append(columns, column[bucketRow]{title: "QUEUE", text: func(r bucketRow) string { return r.Queue }})
	}
	if f.by == "tenant" {
		columns = append(columns, column[bucketRow]{title: "OF TENANT", text: func(r bucketRow) string { return r.Tenant }})
	}
	for _, m := range moveRows {
		if m.usual || m.name == "released" || m.name == "recovered" {
			columns = append(columns, column[bucketRow]{title: strings.ToUpper(m.name), text: func(r bucketRow) string { return draw.Count(int(m.jobs(r.Counts))) }, numeric: true})
		}
	}
	return append(columns,
		column[bucketRow]{title: "WAIT P95", text: func(r bucketRow) string { return took(r.stat.Wait.Quantile(0.95)) }, numeric: true},
		column[bucketRow]{title: "RUN P50", text: func(r bucketRow) string { return took(r.stat.Run.Quantile(0.50)) }, numeric: true},
		column[bucketRow]{title: "RUN P95", text: func(r bucketRow) string { return took(r.stat.Run.Quantile(0.95)) }, numeric: true},
		column[bucketRow]{title: "RUN P99", text: func(r bucketRow) string { return took(r.stat.Run.Quantile(0.99)) }, numeric: true},
		column[bucketRow]{title: "TOTAL P95", text: func(r bucketRow) string { return took(r.stat.Total.Quantile(0.95)) }, numeric: true},
	)
}

// depthOf formats a figure of a Depth, which stops at a limit.
func depthOf(n int) string {
	if n >= sluice.DepthLimit {
		return draw.Count(n) + "+"
	}
	return draw.Count(n)
}

func age(s stat.Summary) string {
	if s.Depth.OldestDue.IsZero() {
		return "-"
	}
	return draw.Duration(s.OldestAge)
}

// rateOf formats a count as a rate per second, minute or hour: the first unit that gives 1 or more.
func rateOf(n int64, s stat.Summary) string {
	seconds := s.To.Sub(s.From).Seconds()
	if n == 0 || seconds <= 0 {
		return "0"
	}
	for _, unit := range []struct {
		name    string
		seconds float64
	}{{"/s", 1}, {"/m", 60}, {"/h", 3600}} {
		if rate := float64(n) / seconds * unit.seconds; rate >= 1 || unit.name == "/h" {
			return twoDigits(rate) + unit.name
		}
	}
	return ""
}

// twoDigits formats a number with at least 2 significant digits.
func twoDigits(f float64) string {
	if f < 9.95 {
		return strconv.FormatFloat(f, 'f', 1, 64)
	}
	return draw.Count(int(f + 0.5))
}

// partOf formats a share. Less than all is never 100%, more than nothing never 0%.
func partOf(part *float64) string {
	if part == nil {
		return "-"
	}
	text := strconv.FormatFloat(100**part, 'f', 1, 64)
	switch {
	case text == "100.0" && *part < 1:
		return ">99.9%"
	case text == "0.0" && *part > 0:
		return "<0.1%"
	}
	return strings.TrimSuffix(text, ".0") + "%"
}

// took formats a time as exactly as histograms know it; 0: none.
func took(d time.Duration) string {
	switch {
	case d == 0:
		return "-"
	case d < 10*time.Millisecond:
		return strconv.FormatFloat(float64(d)/float64(time.Millisecond), 'f', 1, 64) + "ms"
	case d < 10*time.Second && d >= time.Second:
		return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + "s"
	}
	return draw.Duration(d)
}
