package console

import (
	"cmp"
	"context"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/cmd/internal/draw"
	"github.com/sluice-queue/sluice/presence"
	"github.com/sluice-queue/sluice/stat"
)

func overviewPages() []page {
	return []page{{name: "overview", path: "/{$}", title: "Overview", letter: "o", load: loadOverview}}
}

// overview is the view of the first page.
type overview struct {
	Tiles   []tile
	Windows []choice
	Charts  []chart
	Strip   []heat
	Queues  []queueLine
	More    bool
	Tenants []tenantRow
	Entries []auditEntry
	// Own are the tenants that a viewer is bounded to, who sees no figures of all.
	Own []string
	// Notes say what people should do first, such as start a worker.
	Notes []string
}

func (o overview) charts() []chart { return o.Charts }

// tile is a figure with its last hour.
type tile struct {
	Name, Figure, Note string
	Link               string
	Spark              spark
	// Spoken is told to screen readers when it changes. Empty: nothing, as it changes all the time.
	Spoken string
}

// queueLine is a queue in a table.
type queueLine struct {
	queueRow
	// Starts is how many jobs started per second in the last minute. Nil: not counted.
	Starts *float64
	dueEnd
	// Conditions say what is wrong.
	Conditions []string
}

// Rate is the setting rate. Empty: no limit.
func (q queueRow) Rate() string {
	if text := q.Settings["rate"]; text != "0" {
		return text
	}
	return ""
}

// Own reports whether the queue is Sluice's own: upkeep works on it.
func (q queueRow) Own() bool { return sluice.IsInternalQueue(q.Name) }

// perSecond is the rate as a number. 0: no limit.
func (q queueRow) perSecond() float64 {
	rate, err := sluice.ParseRate(q.Settings["rate"])
	if err != nil {
		return 0
	}
	return rate.PerSecond()
}

// RatePerSecond is perSecond for templates.
func (q queueRow) RatePerSecond() float64 { return q.perSecond() }

// InFlight counts the jobs that run.
func (q queueRow) InFlight() int { return q.Depth.InFlight() }

// use is how much of its limits a queue uses.
type use struct {
	Queue     string              `json:"queue"`
	Tokens    float64             `json:"tokens"`
	AtLimit   int                 `json:"at_limit"`
	Starts    *float64            `json:"starts_per_second"`
	Completed *float64            `json:"completed_per_second"`
	Tenants   []sluice.TenantFlow `json:"tenants"`
}

// uses reads how much of their limits the queues use.
func (v *visit) uses(ctx context.Context) (map[string]use, error) {
	var read struct {
		Queues []use `json:"queues"`
	}
	err := v.get(ctx, "/use", nil, &read)
	out := make(map[string]use)
	for _, u := range read.Queues {
		out[u.Queue] = u
	}
	return out, err
}

// overviewFacts is all that the overview reads.
type overviewFacts struct {
	queues  []queueRow
	ahead   forecastView
	uses    map[string]use
	holders []presence.Holder
	hour    series
	shown   series
	// Changes are those of settings, and acts the last acts of all kinds.
	changes, acts []auditEntry
}

// readOverview reads. Callers with bounds do not see what is about the whole store.
func (v *visit) readOverview(ctx context.Context) (f overviewFacts, err error) {
	if f.queues, err = v.firstQueues(ctx); err != nil || len(f.queues) == 0 {
		return f, err
	}
	if f.hour, err = v.seriesOf(ctx, "/series", url.Values{"window": {"1h"}, "slots": {sparkSlots}}); err != nil {
		return f, err
	}
	if f.shown, err = v.seriesOf(ctx, "/series", v.window()); err != nil {
		return f, err
	}
	if f.uses, err = v.uses(ctx); err != nil {
		return f, err
	}
	if err = v.getFor(ctx, seriesFor, "/forecast", url.Values{"tenants": {"true"}}, &f.ahead); err != nil {
		return f, err
	}
	if f.changes, err = v.changesOf(ctx, f.queues, f.shown.From); err != nil || v.viewer.bounded() {
		return f, err
	}
	if f.holders, err = v.holders(ctx); err != nil {
		return f, err
	}
	all, err := v.entries(ctx, cacheFor, "/audit", url.Values{"limit": {"100"}})
	f.acts = lastActs(f.changes, all)
	return f, err
}

// holders reads the processes of the store.
func (v *visit) holders(ctx context.Context) ([]presence.Holder, error) {
	var read struct {
		Holders []presence.Holder `json:"holders"`
	}
	err := v.get(ctx, "/holders", nil, &read)
	return read.Holders, err
}

// markedQueues is of how many queues the overview marks the changes.
const markedQueues = 10

// changesOf reads the changes of the queues that were changed after an instant, the newest first.
func (v *visit) changesOf(ctx context.Context, queues []queueRow, after time.Time) (found []auditEntry, err error) {
	queues = slices.DeleteFunc(slices.Clone(queues), func(q queueRow) bool { return q.ChangedAt.Before(after) })
	slices.SortFunc(queues, func(a, b queueRow) int { return b.ChangedAt.Compare(a.ChangedAt) })
	for _, q := range queues[:min(len(queues), markedQueues)] {
		history, err := v.entries(ctx, seriesFor, "/queues/"+url.PathEscape(q.Name)+"/settings/history", nil)
		if err != nil {
			return nil, err
		}
		found = append(found, history...)
	}
	slices.SortFunc(found, func(a, b auditEntry) int { return cmp.Compare(b.Seq, a.Seq) })
	return found, nil
}

// lastActs are the last acts but for moves of jobs and what dispatchers and alerts do, the newest first.
func lastActs(changed, all []auditEntry) []auditEntry {
	found := slices.DeleteFunc(append(slices.Clone(changed), all...), func(e auditEntry) bool {
		return e.Object == "job" || e.Object == "alert" || e.Event == "dispatch batch"
	})
	slices.SortFunc(found, func(a, b auditEntry) int { return cmp.Compare(b.Seq, a.Seq) })
	found = slices.CompactFunc(found, func(a, b auditEntry) bool { return a.Seq == b.Seq })
	return found[:min(len(found), shownActs)]
}

// shownActs is how many acts the overview shows.
const shownActs = 10

func loadOverview(ctx context.Context, v *visit) (any, error) {
	if own := v.viewer.Tenants; len(own) > 0 {
		return overview{Own: own}, nil
	}
	v.cli("sluice top")
	v.cli("sluice stats --window " + v.windowName())
	f, err := v.readOverview(ctx)
	if err != nil {
		return nil, err
	}
	view := overview{Windows: v.windowChoices(), More: len(f.queues) == mostQueues}
	if len(f.queues) == 0 {
		return view, nil
	}
	view.Tiles = f.tiles(v)
	view.Charts = slices.Concat([]chart{f.shown.flow(f.limit())}, f.shown.levels(), f.shown.times())
	failures := f.shown.failures()
	view.Strip = heatOf(failures)
	marks, err := v.marks(ctx, "", f.changes)
	if err != nil {
		return nil, err
	}
	view.Charts = v.linked(append(view.Charts, failures), marks)
	for _, q := range f.queues {
		view.Queues = append(view.Queues, f.lineOf(q))
	}
	if view.Tenants, err = v.longest(ctx, f); err != nil {
		return nil, err
	}
	view.Entries = f.acts
	for _, q := range view.Queues {
		if q.Unserved {
			view.Notes = append(view.Notes, q.start())
		}
	}
	return view, nil
}

// dueEnd is when the jobs of a queue that are due will be done.
type dueEnd struct {
	// Done is the instant. Zero: not known, or none is due. Now says that it is about now.
	Done time.Time `json:"-"`
	Now  bool      `json:"-"`
	// Unserved says that no process takes them, and Never that some never start by the present limits.
	Unserved bool `json:"-"`
	Never    bool `json:"-"`
}

// dueEnd reads a forecast. An end that has passed while jobs wait is about now, or not known if nobody counts any more.
func (q queueForecast) dueEnd(of queueRow) (out dueEnd) {
	switch {
	case of.Depth.Ready == 0:
		return out
	case q.Unserved && !of.Paused():
		return dueEnd{Unserved: true}
	case len(q.Waves) == 0 || q.Waves[0].Span != "0s":
		return out
	}
	out.Never, out.Done = q.Waves[0].NeverJobs > 0, q.Waves[0].end()
	if !out.Done.IsZero() && out.Done.Before(time.Now()) {
		out.Done, out.Now = time.Time{}, !q.Stale
	}
	return out
}

// start says that no process takes the jobs of a queue that are due, and how to start one.
func (q queueRow) start() string {
	switch name := q.Settings["engine"]; {
	case q.Own():
		return "No upkeep runs, which works on " + q.Name + ". Start it: sluice upkeep"
	case name != "":
		return "No dispatcher serves " + q.Name + ", which has jobs that are due. Start one: sluice dispatch " + q.Name + " " + presence.EngineFlag(name)
	}
	return "No worker serves " + q.Name + ", which has jobs that are due. Start one: sluice work " + q.Name + " -- PROGRAM"
}

// limit is the sum of the rates, if each queue with a rate or without one is known. 0: some queue has none.
func (f overviewFacts) limit() (sum float64) {
	for _, q := range f.queues {
		rate := q.perSecond()
		if rate == 0 {
			return 0
		}
		sum += rate
	}
	return sum
}

// tiles are the six figures.
func (f overviewFacts) tiles(v *visit) []tile {
	var all sluice.Depth
	busy, slots := 0, 0
	for _, q := range f.queues {
		all.Ready += q.Depth.Ready
		all.Claimed += q.Depth.Claimed
		all.Dispatched += q.Depth.Dispatched + q.Depth.OrphanRuns
		all.Dead += q.Depth.Dead
		if due := q.Depth.OldestDue; !due.IsZero() && (all.OldestDue.IsZero() || due.Before(all.OldestDue)) {
			all.OldestDue = due
		}
	}
	for _, h := range f.holders {
		if !h.Silent() {
			busy, slots = busy+h.Busy, slots+h.Slots
		}
	}
	ready := tile{Name: "Ready", Figure: draw.Count(all.Ready), Note: "jobs that are due", Link: v.console.url("/jobs", "q", "state:ready")}
	levels := f.hour.levels()
	ready.Spark = sparkOf(levels[0], "ready jobs, in the last hour", 0)
	oldest := tile{Name: "Oldest ready", Figure: "—", Note: "nothing waits"}
	if !all.OldestDue.IsZero() {
		oldest.Figure, oldest.Note = seconds(max(0, time.Since(all.OldestDue).Round(time.Second))), "since it was due"
	}
	oldest.Spark = sparkOf(levels[1], "its age, in the last hour", 0)
	flight := tile{Name: "In flight", Figure: draw.Count(all.InFlight()), Note: "no worker says how many slots it has", Link: v.console.url("/jobs", "q", "state:claimed,dispatched")}
	if slots > 0 {
		flight.Note = draw.Count(busy) + " of " + draw.Plural(slots, "slot") + " of workers busy"
	}
	if all.Dispatched > 0 {
		flight.Note += ", " + draw.Plural(all.Dispatched, "run") + " at engines"
	}
	flight.Spark = f.hour.spark("completed per second, in the last hour", 0, perSecond(func(c stat.Counts) int64 { return c.Completed }))
	dead := tile{Name: "Dead", Figure: draw.Count(all.Dead), Note: "wait for a person", Link: v.console.url("/dead")}
	dead.Spark = f.hour.spark("deaths, in the last hour", 0, func(s *slot) *float64 { return rounded(float64(s.Counts.Dead)) })
	ready.Spoken, dead.Spoken = "ready "+ready.Figure, "dead "+dead.Figure
	return []tile{ready, oldest, f.startTile(), flight, f.successTile(), dead}
}

// startTile shows the starts of the last minute against the limit.
func (f overviewFacts) startTile() tile {
	out := tile{Name: "Starts", Figure: "not counted", Note: "no limit of all queues"}
	sum, known := 0.0, false
	for _, u := range f.uses {
		if u.Starts != nil {
			sum, known = sum+*u.Starts, true
		}
	}
	if known {
		out.Figure = rate(sum) + "/s"
	}
	limit := f.limit()
	if limit > 0 {
		out.Note = "of " + figure(limit) + "/s"
	}
	out.Spark = f.hour.spark("started per second, in the last hour, with the limit", limit, perSecond(func(c stat.Counts) int64 { return c.Claimed }))
	return out
}

// successTile shows the share of ended jobs that completed in the last hour.
func (f overviewFacts) successTile() tile {
	var sum stat.Counts
	for _, s := range f.hour.Slots {
		sum.Add(s.Counts)
	}
	out := tile{Name: "Success, 1 h", Figure: "—", Note: "no job ended"}
	if ended := sum.Completed + sum.Dead; ended > 0 {
		out.Figure = percent(float64(sum.Completed) / float64(ended))
		out.Note = "of " + draw.Plural(int(ended), "ended job")
	}
	out.Spark = f.hour.spark("share of success, in the last hour", 1, func(s *slot) *float64 {
		if ended := s.Counts.Completed + s.Counts.Dead; ended > 0 {
			return rounded(float64(s.Counts.Completed) / float64(ended))
		}
		return nil
	})
	return out
}

// lineOf is a queue with what is known of it.
func (f overviewFacts) lineOf(q queueRow) queueLine {
	out := queueLine{queueRow: q, Starts: f.uses[q.Name].Starts}
	for _, ahead := range f.ahead.Queues {
		if ahead.Queue == q.Name {
			out.dueEnd = ahead.dueEnd(q)
		}
	}
	for _, h := range f.holders {
		for _, c := range h.Conditions {
			if c.Queue == q.Name && !slices.Contains(out.Conditions, c.Text) {
				out.Conditions = append(out.Conditions, c.Text)
			}
		}
	}
	return out
}

// longest are the tenants with jobs due or in flight that wait the longest.
func (v *visit) longest(ctx context.Context, f overviewFacts) ([]tenantRow, error) {
	tenants := f.tenants()
	if err := v.addWaits(ctx, tenants); err != nil {
		return nil, err
	}
	order(tenants, "wait")
	return tenants[:min(len(tenants), 10)], nil
}

// tenants are those with jobs that are due or in flight.
func (f overviewFacts) tenants() (out []tenantRow) {
	by := make(map[string]*tenantRow)
	of := func(name string) *tenantRow {
		if by[name] == nil {
			by[name] = &tenantRow{Name: name, InFlight: new(int)}
		}
		return by[name]
	}
	all := 0
	for _, q := range f.ahead.Queues {
		for name, jobs := range q.Due.Tenants {
			of(name).Due += jobs
		}
	}
	for _, u := range f.uses {
		for _, t := range u.Tenants {
			*of(t.Tenant).InFlight += t.InFlight
			all += t.InFlight
		}
	}
	for _, t := range by {
		if t.Noisy = noisy(t.Flight(), all); t.Name != "" && t.Due+t.Flight() > 0 {
			out = append(out, *t)
		}
	}
	return out
}

// noisy reports whether a tenant has more than 10 % of the jobs in flight, and 30 at least.
func noisy(inFlight, all int) bool { return inFlight >= 30 && 10*inFlight > all }

// heat is a cell of a strip: how much there was, from 0 to 4.
type heat struct {
	X, Level int
	Text     string
}

// heatOf draws a chart's first line as a strip.
func heatOf(c chart) (strip []heat) {
	most := 0.0
	for _, v := range c.Lines[0].Values {
		if v != nil {
			most = max(most, *v)
		}
	}
	if most == 0 {
		return nil
	}
	for i, v := range c.Lines[0].Values {
		one := heat{X: i, Level: -1, Text: time.Unix(c.Times[i], 0).UTC().Format("15:04") + " UTC: not counted"}
		if v != nil {
			one.Text = time.Unix(c.Times[i], 0).UTC().Format("15:04") + " UTC: " + figure(*v)
			if one.Level = 0; *v > 0 {
				one.Level = 1 + min(3, int(4**v/most))
			}
		}
		strip = append(strip, one)
	}
	return strip
}

// IsName reports whether a bound is a name, and not the beginning of names.
func (s *screen) IsName(bound string) bool { return !strings.HasSuffix(bound, "*") }
