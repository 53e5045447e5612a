package console

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/audit"
	"github.com/sluice-queue/sluice/changes"
)

// queuePage is the view of /queues/{queue}.
type queuePage struct {
	queueRow
	Group     bool
	Version   int64            `json:"version"`
	ChangedBy string           `json:"changed_by"`
	Reason    string           `json:"reason"`
	Scheduled []changes.Change `json:"scheduled"`

	Changed, Others []settingRow
	History         []auditEntry
	Windows         []choice
	Charts          []chart
	Use             use
	Held            string
	Notes           []string
	dueEnd
	Retries []retry
	Stats   statsView
	// Cycles are the last cycles of dispatchers. Empty: the queue has no engine, or none of them is in the audit.
	Cycles []cycleRow
}

func (q queuePage) charts() []chart { return q.Charts }

// settingRow is a setting with its value.
type settingRow struct {
	Name, Value, Default, Meaning, Range string
	// Source says where the value comes from.
	Source string
	At     time.Time
}

// statsView is the summary of the last hour.
type statsView struct {
	Counted bool `json:"counted"`
	Counts  *struct {
		Completed int `json:"completed"`
		Dead      int `json:"dead"`
		Failed    int `json:"failed"`
	} `json:"counts"`
	// Success is nil if no job ended.
	Success *float64 `json:"success_rate"`
}

// retry is a failed attempt, and when the next begins.
type retry struct {
	Attempt       int
	Least, Most   time.Duration
	Buried        bool
	SinceTheFirst time.Duration
}

func loadQueue(ctx context.Context, v *visit) (any, error) {
	name := v.pathOf("queue")
	v.page.title = name
	v.cli("sluice settings get " + quoted(name))
	v.cli("sluice settings history " + quoted(name))
	view := queuePage{Group: sluice.IsGroup(name), Windows: v.windowChoices()}
	path := "/queues/" + url.PathEscape(name)
	if err := v.get(ctx, path, nil, &view); err != nil {
		return nil, err
	}
	history, err := v.entries(ctx, cacheFor, path+"/settings/history", nil)
	if err != nil {
		return nil, err
	}
	view.History = history
	if !view.Group {
		if err := v.readQueue(ctx, path, &view); err != nil {
			return nil, err
		}
	}
	rows, settings, err := settingRows(view.Settings, view.History)
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		if row.Value != row.Default {
			view.Changed = append(view.Changed, row)
		} else {
			view.Others = append(view.Others, row)
		}
	}
	view.Retries = retriesOf(settings)
	return view, nil
}

// readQueue reads the figures of a queue.
func (v *visit) readQueue(ctx context.Context, path string, view *queuePage) error {
	v.cli("sluice stats " + quoted(view.Name) + " --window " + v.windowName())
	shown, err := v.seriesOf(ctx, path+"/series", v.window())
	if err != nil {
		return err
	}
	view.Charts = slices.Concat([]chart{shown.flow(view.perSecond())}, shown.levels(), shown.times())
	marks, err := v.marks(ctx, view.Name, view.History)
	if err != nil {
		return err
	}
	view.Charts = v.linked(view.Charts, marks)
	if err := v.getFor(ctx, seriesFor, path+"/stats", nil, &view.Stats); err != nil {
		return err
	}
	if view.Settings["engine"] != "" {
		if view.Cycles, err = v.cycles(ctx, view.Name); err != nil {
			return err
		}
	}
	uses, err := v.uses(ctx)
	if err != nil {
		return err
	}
	view.Use = uses[view.Name]
	var ahead forecastView
	if err := v.getFor(ctx, seriesFor, path+"/forecast", nil, &ahead); err != nil {
		return err
	}
	for _, q := range ahead.Queues {
		view.Notes = q.Notes
		view.Held = q.Held()
		view.dueEnd = q.dueEnd(view.queueRow)
	}
	return nil
}

// rangeOf are the values that a setting may have. Empty: it has no bounds.
func rangeOf(s sluice.Setting) string {
	low, high := s.Range()
	if high == "" {
		return ""
	}
	return low + " to " + high
}

// aboutSetting says what the setting of a dialog means, and which values it may have.
func aboutSetting(values url.Values) string {
	for _, s := range sluice.AllSettings() {
		if s.Name != values.Get("setting") {
			continue
		}
		about := s.Meaning
		if within := rangeOf(s); within != "" {
			about += " From " + within + "."
		}
		return about + " Default: " + s.Format(sluice.DefaultSettings()) + "."
	}
	return ""
}

// settingRows are all settings with their values, and the settings as the library reads them.
func settingRows(values map[string]string, history []auditEntry) (rows []settingRow, settings sluice.Settings, err error) {
	defaults := sluice.DefaultSettings()
	settings = defaults
	last := lastChanges(history)
	for _, s := range sluice.AllSettings() {
		row := settingRow{Name: s.Name, Value: values[s.Name], Default: s.Format(defaults), Meaning: s.Meaning, Range: rangeOf(s), Source: "default"}
		if err = s.Parse(&settings, row.Value); err != nil {
			return nil, settings, err
		}
		switch changed, is := last[s.Name]; {
		case is:
			row.Source, row.At = changed.Actor+": "+or(changed.Reason, "no reason"), changed.At
		case row.Value != row.Default:
			row.Source = "as the queue was made, by a program or a group"
		}
		rows = append(rows, row)
	}
	return rows, settings, nil
}

// lastChanges are the last change of each setting.
func lastChanges(history []auditEntry) map[string]auditEntry {
	last := make(map[string]auditEntry)
	for _, e := range history { // the newest comes first
		if len(e.Before) == 0 {
			continue
		}
		for _, d := range differences(e.Before, e.After) {
			if _, known := last[d.Name]; !known {
				last[d.Name] = e
			}
		}
	}
	return last
}

// shownRetries is how many failed attempts the preview shows.
const shownRetries = 8

// retriesOf says when a job that fails again and again is tried.
func retriesOf(s sluice.Settings) (out []retry) {
	since := time.Duration(0)
	wait := float64(s.Backoff.Base)
	for n := 1; n <= min(s.MaxAttempts, shownRetries); n++ {
		if n == s.MaxAttempts {
			return append(out, retry{Attempt: n, Buried: true, SinceTheFirst: since})
		}
		whole := time.Duration(min(wait, float64(s.Backoff.Max)))
		one := retry{Attempt: n, Least: whole, Most: whole + s.Backoff.Jitter}
		if s.Backoff.FullJitter {
			one.Least, one.Most = 0, whole
		}
		since += one.Most
		one.SinceTheFirst = since
		out = append(out, one)
		wait *= s.Backoff.Factor
	}
	return out
}

// Words describes a wait.
func (r retry) Words() string {
	if r.Least == r.Most {
		return seconds(r.Least)
	}
	return seconds(r.Least) + " to " + seconds(r.Most)
}

// PausedUntil is when the queue opens by itself. Zero: when somebody resumes it.
func (q queuePage) PausedUntil() time.Time {
	at, err := time.Parse(time.RFC3339Nano, q.Settings["paused_until"])
	if err != nil {
		return time.Time{}
	}
	return at
}

// Gauge shows how many starts the rate allows now, at most the burst and a second of the rate.
func (q queuePage) Gauge() (full float64) {
	rate, err := sluice.ParseRate(q.Settings["rate"])
	if err != nil || rate.IsZero() {
		return 0
	}
	burst := 0
	_, _ = fmt.Sscan(q.Settings["burst"], &burst)
	return max(1, rate.Tokens(burst))
}

// Tokens are the starts that the rate allows now, at least 0.
func (q queuePage) Tokens() float64 { return max(0, q.Use.Tokens) }

// jitterDots is how many starts the picture of a jitter shows.
const jitterDots = 48

// jitter is how the starts of claimed jobs spread.
type jitter struct {
	Most time.Duration
	// Rate is how many of 100 jobs that are claimed at once start per second, on average.
	Rate float64
	// Dots are starts, from 0 to 100 of the width.
	Dots []float64
}

// Jitter is the preview of the setting jitter. Nil: the queue has none.
func (q queuePage) Jitter() *jitter {
	most, err := sluice.ParseDuration(or(q.Settings["jitter"], "0s"))
	if err != nil || most <= 0 {
		return nil
	}
	out := &jitter{Most: most, Rate: 100 / most.Seconds()}
	lots := rand.New(rand.NewPCG(1, uint64(most))) //nolint:gosec // a picture that stays the same
	for range jitterDots {
		out.Dots = append(out.Dots, 100*lots.Float64())
	}
	return out
}

// Jobs is the filter of the queue's jobs in some states.
func (q queuePage) Jobs(states string) string {
	return strings.TrimSpace("queue:" + q.Name + " " + or(states, ""))
}

// Start says who should take its jobs, if nobody does. Empty: somebody does, or none is due.
func (q queuePage) Start() string {
	if !q.Unserved {
		return ""
	}
	return q.start()
}

// Back are the changes to whose settings people can go back: not the last one, which is what the queue has.
func (q queuePage) Back() (back []auditEntry) {
	changed := false
	for _, e := range q.History { // the newest comes first
		if e.Event != audit.EventChange || len(e.After) == 0 {
			continue
		}
		if changed {
			back = append(back, e)
		}
		changed = true
	}
	return back
}

// settingTable is a table of settings, with the page that makes its buttons.
type settingTable struct {
	Page         *screen
	Label, Queue string
	Rows         []settingRow
}

// Settings is a table of settings for a template.
func (s *screen) Settings(label string, rows []settingRow) settingTable {
	return settingTable{Page: s, Label: label, Queue: s.visit.pathOf("queue"), Rows: rows}
}
