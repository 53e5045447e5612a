package console

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/cmd/httpapi"
	"github.com/sluice-queue/sluice/cmd/internal/draw"
)

func jobPages() []page {
	return []page{
		{name: "jobs", path: "/jobs", title: "Jobs", letter: "i", load: loadJobs},
		{name: "job", path: "/jobs/{id}", title: "Job", load: loadJob},
		{name: "run", path: "/jobs/{id}/run", title: "Run", part: "content", load: loadRun},
		{name: "peek", path: "/jobs/{id}/peek", title: "Job", part: "content", load: loadPeek},
	}
}

// jobRow is a job in a list.
type jobRow struct {
	sluice.Job
	// Label is the state that people see.
	Label string `json:"label"`
	raw   json.RawMessage
}

// UnmarshalJSON reads a job, and keeps its text.
func (j *jobRow) UnmarshalJSON(text []byte) error {
	type plain jobRow
	if err := json.Unmarshal(text, (*plain)(j)); err != nil {
		return err
	}
	j.raw = slices.Clone(text)
	return nil
}

// Reason says in a few words why a job is in its state, as far as the list knows.
func (j jobRow) Reason() string {
	switch {
	case j.Label == "blocked" && j.BlockedBy == j.ID && j.LimitKey != "":
		return "held, or by its limit key"
	case j.Label == "blocked" && j.BlockedBy == j.ID:
		return "held, or waits for its own run"
	case j.Label == "blocked":
		return "after " + shortID(j.BlockedBy)
	case j.Label == "retrying":
		return "attempt " + strconv.Itoa(j.Attempts) + " failed"
	case j.State == sluice.StateClaimed:
		return "by " + j.Holder
	case j.State == sluice.StateDispatched:
		return "at " + j.Engine
	case j.State == sluice.StateDead && j.Attempts > 0:
		return draw.Plural(j.Attempts, "attempt") + " failed"
	}
	return ""
}

// FirstLine is the beginning of the last error.
func (j jobRow) FirstLine() string { return sluice.Brief(j.Error) }

// sizes are the numbers of jobs on a page.
var sizes = []string{"50", "100", "200"}

// jobList is the view of /jobs.
type jobList struct {
	Jobs     []jobRow `json:"jobs"`
	Compared int      `json:"compared"`
	Next     string   `json:"next"`
	// Where is the whole filter, Chips its terms, and Tabs the states to choose.
	Where string
	Chips []chip
	Tabs  []tab
	// Columns are those that are shown.
	Columns []string
	Size    string
	// Wrong says which rule the filter breaks. Paused says that the only queue of the list is paused.
	Wrong  *httpapi.Problem
	Paused bool
	// OldestFirst is the order, and Turned the address of the list in the other one.
	OldestFirst bool
	Turned      string
	// First is the address of the first page, and Following that of the next. Empty: there is none.
	First, Following string
	Exports          map[string]string
	// Whole are the addresses of all that match as files, from this page on.
	Whole map[string]string
	// One asks for the page of the job if the list has only one.
	One bool
}

// movedTo is the page of the only job, for somebody who looks for one.
func (l jobList) movedTo() string {
	if l.One && len(l.Jobs) == 1 && l.Next == "" {
		return "/jobs/" + l.Jobs[0].ID.String()
	}
	return ""
}

// Show reports whether a column is shown.
func (l jobList) Show(column string) bool { return slices.Contains(l.Columns, column) }

// Kinds are the acts on all that match.
func (l jobList) Kinds() []string {
	return []string{"all-requeue", "all-run-now", "all-reschedule", "all-edit", "all-hold", "all-release", "all-cancel", "all-delete"}
}

// chip is a term of a filter, with the address of the list without it.
type chip struct {
	Text, Without string
	// Slow says that jobs are compared with the term one by one.
	Slow bool
	// Finds is how many jobs the first page has without the term, where no job has all. Others is the filter without it.
	Finds  int
	Others string
}

// tab is a state to choose. Count is empty if nobody counts.
type tab struct {
	Name, URL, Count string
	Here             bool
}

// terms splits a filter at the blanks that are not within quotes.
func terms(filter string) (all []string) {
	var one strings.Builder
	quoted := false
	for _, r := range filter + " " {
		if r == '"' {
			quoted = !quoted
		}
		if !quoted && strings.ContainsRune(" \t\r\n", r) {
			if one.Len() > 0 {
				all = append(all, one.String())
			}
			one.Reset()
			continue
		}
		one.WriteRune(r)
	}
	if rest := strings.TrimSpace(one.String()); rest != "" {
		all = append(all, rest) // a quote that is never closed
	}
	return all
}

func loadJobs(ctx context.Context, v *visit) (any, error) {
	view := jobList{Size: v.query.Get("size"), Columns: v.columns(), Where: v.where(), One: v.query.Has("one"), OldestFirst: v.query.Get("sort") == "oldest"}
	if !slices.Contains(sizes, view.Size) {
		view.Size = sizes[0]
	}
	view.chips(ctx, v, terms(v.query.Get("q")))
	command := "sluice jobs --where=" + quoted(view.Where) + " --limit=" + view.Size
	query := url.Values{"limit": {view.Size}}
	if view.OldestFirst {
		command += " --oldest-first"
		query.Set("oldest_first", "true")
	}
	v.cli(command)
	for name, value := range map[string]string{"where": view.Where, "cursor": v.query.Get("after")} {
		if value != "" {
			query.Set(name, value)
		}
	}
	err := v.get(ctx, "/jobs", query, &view)
	if statusOf(err) == http.StatusUnprocessableEntity {
		view.Wrong, err = problemOf(err), nil
	}
	if err == nil && view.Wrong == nil && len(view.Jobs) == 0 && view.Next == "" {
		view.blame(ctx, v)
	}
	view.tabs(ctx, v)
	view.links(v)
	return view, err
}

// where is the whole filter of the list: its terms, and the chosen state.
func (v *visit) where() string {
	all := terms(v.query.Get("q"))
	if state := v.query.Get("state"); state != "" {
		all = append(all, "state:"+state)
	}
	return strings.Join(all, " ")
}

// with is the address of the page with other values. An empty value removes one.
func (v *visit) with(pairs ...string) string {
	query := url.Values{}
	for name, values := range v.query {
		query[name] = values
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		query.Del(pairs[i])
		if pairs[i+1] != "" {
			query.Set(pairs[i], pairs[i+1])
		}
	}
	at := v.console.options.Base + escaped(v.path)
	if len(query) > 0 {
		at += "?" + query.Encode()
	}
	return at
}

// chips shows the terms of a filter.
func (l *jobList) chips(ctx context.Context, v *visit, all []string) {
	indexed := map[string]bool{}
	for _, f := range v.fields(ctx) {
		indexed[strings.TrimSuffix(f.Name, "NAME")] = f.Indexed
	}
	for i, term := range all {
		name, values, _ := strings.Cut(strings.TrimPrefix(term, "-"), ":")
		if strings.HasPrefix(name, "label.") {
			name = "label."
		}
		many := name == "state" || name == "id" // of these, several values are looked up too
		slow := !indexed[name] || strings.HasPrefix(term, "-") || strings.ContainsAny(values, "~*") || !many && strings.Contains(values, ",")
		others := slices.Delete(slices.Clone(all), i, i+1)
		l.Chips = append(l.Chips, chip{Text: term, Slow: slow, Others: strings.Join(others, " "), Without: v.with("q", strings.Join(others, " "), "after", "")})
	}
}

// filterField is a field that filters can compare.
type filterField struct {
	Name    string `json:"name"`
	Meaning string `json:"meaning"`
	Example string `json:"example"`
	Indexed bool   `json:"indexed"`
}

// fields lists the fields of filters.
func (v *visit) fields(ctx context.Context) []filterField {
	var read struct {
		Fields []filterField `json:"fields"`
	}
	_ = v.read(ctx, "/fields", nil, &read) // they only help
	return read.Fields
}

// Fields lists the fields of filters, for the help.
func (s *screen) Fields() []filterField { return s.visit.fields(context.Background()) }

// Sizes are what the form of /jobs offers.
func (s *screen) Sizes() []string { return sizes }

// Words are the suggestions for a filter: names of fields, states, queues, tenants, and the labels on the page. Of many queues
// and tenants, the first are offered.
func (s *screen) Words() (words []string) {
	seen := make(map[string]bool)
	offer := func(field, value string) {
		if strings.ContainsAny(value, `"`) || field != "" && value == "" { // no filter can say it
			return
		}
		if strings.ContainsAny(value, " \t,~*") {
			value = `"` + value + `"`
		}
		if word := field + value; !seen[word] {
			seen[word] = true
			words = append(words, word)
		}
	}
	for _, state := range tabNames[1:] {
		offer("state:", state)
	}
	offer("run:", "open")
	queues, tenants := s.visit.names(context.Background())
	for _, name := range queues {
		offer("queue:", name)
	}
	for _, name := range tenants {
		offer("tenant:", name)
	}
	list, _ := s.View.(jobList)
	for _, job := range list.Jobs {
		offer("queue:", job.Queue)
		offer("tenant:", job.Tenant)
		for _, name := range slices.Sorted(maps.Keys(job.Labels)) {
			if !strings.ContainsAny(name, " \t,:\"") {
				offer("label."+name+":", job.Labels[name])
			}
		}
	}
	for _, f := range s.Fields() {
		offer("", strings.TrimSuffix(f.Name, "NAME")+map[bool]string{false: ":"}[strings.HasSuffix(f.Name, "NAME")])
	}
	return words
}

// namesFor is how long the names of tenants are shared.
const namesFor = 5 * time.Minute

// names are the first queues and tenants by name.
func (v *visit) names(ctx context.Context) (queues, tenants []string) {
	type named struct {
		Name string `json:"name"`
	}
	var read struct {
		Queues  []named `json:"queues"`
		Tenants []named `json:"tenants"`
	}
	_ = v.readFor(ctx, seriesFor, "/queues", firstNames(), &read) // they only help; the strip asks the same
	_ = v.readFor(ctx, namesFor, "/tenants", url.Values{"limit": {strconv.Itoa(mostQueues)}}, &read)
	for _, q := range read.Queues {
		queues = append(queues, q.Name)
	}
	for _, t := range read.Tenants {
		tenants = append(tenants, t.Name)
	}
	return queues, tenants
}

// tabNames are the states of the tabs. The first one is all of them.
var tabNames = []string{"", "ready", "scheduled", "retrying", "blocked", "claimed", "dispatched", "uncertain", "dead", "completed", "cancelled"}

// tabs shows the states, with the counts that the store keeps: of all queues, or of the only queue of the filter.
func (l *jobList) tabs(ctx context.Context, v *visit) {
	counts := l.counts(ctx, v)
	for _, name := range tabNames {
		l.Tabs = append(l.Tabs, tab{Name: cmp.Or(name, "all"), URL: v.with("state", name, "after", ""), Count: counts[name], Here: v.query.Get("state") == name})
	}
}

// counts are the bounded counts by state. A filter of more than one queue has none.
func (l *jobList) counts(ctx context.Context, v *visit) map[string]string {
	all := terms(v.query.Get("q"))
	switch queue, is := strings.CutPrefix(strings.Join(all, " "), "queue:"); {
	case len(all) == 0 && !v.viewer.bounded():
		queues, err := v.firstQueues(ctx)
		if err != nil {
			return nil
		}
		return amounts(queues)
	case len(all) == 1 && is && !strings.ContainsAny(queue, `*,~"/`) && len(v.viewer.Tenants) == 0:
		var read queueRow
		if v.read(ctx, "/queues/"+url.PathEscape(queue), nil, &read) != nil {
			return nil
		}
		l.Paused = read.Paused()
		return amounts([]queueRow{read})
	}
	return nil
}

// amounts counts the jobs of queues by state. A count stops at a limit in each queue, and other queues may follow: then it ends
// with a +.
func amounts(queues []queueRow) map[string]string {
	sums, more := make(map[string]int), make(map[string]bool)
	for _, q := range queues {
		for name, n := range map[string]int{
			"ready": q.Depth.Ready, "scheduled": q.Depth.Scheduled, "blocked": q.Depth.Blocked, "claimed": q.Depth.Claimed,
			"dispatched": q.Depth.Dispatched, "uncertain": q.Depth.Uncertain, "dead": q.Depth.Dead,
		} {
			sums[name] += n
			more[name] = more[name] || n >= sluice.DepthLimit || len(queues) == mostQueues
		}
	}
	counts := make(map[string]string)
	for name, n := range sums {
		if counts[name] = draw.ShortCount(n); more[name] {
			counts[name] += "+"
		}
	}
	return counts
}

// links are the addresses beside the list.
func (l *jobList) links(v *visit) {
	l.Turned = v.with("sort", "oldest", "after", "")
	if l.OldestFirst {
		l.Turned = v.with("sort", "", "after", "")
	}
	if v.query.Get("after") != "" {
		l.First = v.with("after", "")
	}
	if l.Next != "" {
		l.Following = v.with("after", l.Next)
	}
	l.Exports, l.Whole = v.exports(), map[string]string{"JSONL": v.with("save", "jsonl"), "CSV": v.with("save", "csv")}
}

// file are the jobs of the page.
func (l jobList) file() file {
	f := file{name: "jobs", columns: append([]string{"id"}, l.Columns...)}
	for _, job := range l.Jobs {
		row := []string{job.ID.String()}
		for _, column := range l.Columns {
			row = append(row, job.text(column))
		}
		f.rows, f.lines = append(f.rows, row), append(f.lines, job.raw)
	}
	return f
}

// text is the value of a column.
func (j jobRow) text(column string) string {
	instant := func(at time.Time) string {
		if at.IsZero() {
			return ""
		}
		return at.UTC().Format(time.RFC3339Nano)
	}
	switch column {
	case "queue":
		return j.Queue
	case "tenant":
		return j.Tenant
	case "state":
		return j.Label
	case "priority":
		return strconv.Itoa(j.Priority)
	case "due":
		return instant(j.DueAt)
	case "created":
		return instant(j.CreatedAt)
	case "finished":
		return instant(j.FinishedAt)
	case "attempts":
		return strconv.Itoa(j.Attempts)
	case "holder":
		return j.Holder
	case "lease":
		return instant(j.LeaseUntil)
	case "run":
		return j.Ref
	case "key":
		return j.Key
	case "labels":
		text, _ := json.Marshal(j.Labels) // texts
		return string(text)
	}
	return j.Error
}

// peek is a job below its row: the head of its payload, and its error.
type peek struct {
	Job     jobRow
	Payload string
	Cut     bool
}

// maxPeek is the most bytes of a payload below a row.
const maxPeek = 600

func loadPeek(ctx context.Context, v *visit) (any, error) {
	var view peek
	if err := v.get(ctx, "/jobs/"+url.PathEscape(v.pathOf("id")), nil, &view.Job); err != nil {
		return nil, err
	}
	view.Payload = indented(view.Job.Payload)
	if view.Cut = len(view.Payload) > maxPeek; view.Cut {
		view.Payload = strings.ToValidUTF8(view.Payload[:maxPeek], "")
	}
	return view, nil
}

// indented is JSON for people.
func indented(text json.RawMessage) string {
	var out bytes.Buffer
	if json.Indent(&out, text, "", "  ") != nil {
		return string(text)
	}
	return out.String()
}

// LinkWith is the address of the page with other values, as pairs of names and values. An empty value removes one.
func (s *screen) LinkWith(pairs ...string) string { return s.visit.with(pairs...) }
