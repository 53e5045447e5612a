package console

import (
	"cmp"
	"context"
	"encoding/json"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/sluice-queue/sluice/cmd/internal/draw"
	"github.com/sluice-queue/sluice/health"
	"github.com/sluice-queue/sluice/internal/checkup"
)

func storePages() []page {
	return []page{{name: "store", path: "/store", title: "Store", letter: "h", load: loadStore}}
}

// storeView is the view of /store: what `sluice doctor` says.
type storeView struct {
	Kind     string    `json:"kind"`
	Ill      bool      `json:"ill"`
	Findings []finding `json:"findings"`
	Metrics  []metric  `json:"metrics"`
	// Jobs counts the jobs by state.
	Jobs storePart `json:"-"`
	// Statements are the slowest ones, or why they are not known. Nil: the store counts none, or the viewer may not see them.
	Statements []finding `json:"-"`
	Unseen     bool      `json:"-"`
}

// metric is a figure of the store.
type metric struct {
	Name  string  `json:"name"`
	Label string  `json:"label"`
	Of    string  `json:"of"`
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
}

// text writes the figure with its unit.
func (m metric) text() string {
	switch m.Unit {
	case "bytes":
		return bytesText(m.Value)
	case "seconds":
		return seconds(m.Value)
	case "":
		return draw.Count(int(m.Value))
	}
	return draw.Count(int(m.Value)) + " " + m.Unit
}

// bytesText writes a size, such as 16.4 MiB.
func bytesText(bytes float64) string {
	for _, unit := range []string{"B", "KiB", "MiB", "GiB"} {
		if bytes < 1024 {
			return figure(math.Round(10*bytes)/10) + " " + unit
		}
		bytes /= 1024
	}
	return figure(math.Round(10*bytes)/10) + " TiB"
}

// storePart is a table of figures, such as those of the store's tables.
type storePart struct {
	Title   string
	Columns []string
	Rows    []storeRow
}

// storeRow is what is known of a part. An empty cell is not known.
type storeRow struct {
	Name  string
	Cells []string
	bytes float64
}

// Parts are the figures by what they measure: jobs, tables and indexes, the largest first, then the whole store.
func (s storeView) Parts() (parts []storePart) {
	if len(s.Jobs.Rows) > 0 {
		parts = append(parts, s.Jobs)
	}
	for _, kind := range []struct{ label, title string }{{"table", "Tables"}, {"index", "Indexes"}} {
		if part := s.part(kind.label, kind.title); len(part.Rows) > 0 {
			parts = append(parts, part)
		}
	}
	whole := storePart{Title: "Figures", Columns: []string{"Value"}}
	for _, m := range s.Metrics {
		if m.Label != "table" && m.Label != "index" {
			whole.Rows = append(whole.Rows, storeRow{Name: strings.TrimSpace(spaced(m.Name) + " " + m.Of), Cells: []string{m.text()}})
		}
	}
	slices.SortFunc(whole.Rows, func(a, b storeRow) int { return cmp.Compare(a.Name, b.Name) })
	if len(whole.Rows) > 0 {
		parts = append(parts, whole)
	}
	return parts
}

// jobsByState counts the jobs of queues by state. Of finished jobs the store keeps no count.
func jobsByState(queues []queueRow) storePart {
	out, counts := storePart{Title: "Jobs by state", Columns: []string{"Jobs"}}, amounts(queues)
	for _, name := range tabNames {
		if count := counts[name]; count != "" {
			out.Rows = append(out.Rows, storeRow{Name: name, Cells: []string{count}})
		}
	}
	return out
}

// part is the figures of all parts of a kind.
func (s storeView) part(label, title string) storePart {
	out, rows := storePart{Title: title}, make(map[string]*storeRow)
	for _, m := range s.Metrics {
		if column := columnOf(m); m.Label == label && !slices.Contains(out.Columns, column) {
			out.Columns = append(out.Columns, column)
		}
	}
	for _, m := range s.Metrics {
		if m.Label != label {
			continue
		}
		if rows[m.Of] == nil {
			rows[m.Of] = &storeRow{Name: m.Of, Cells: make([]string, len(out.Columns))}
		}
		rows[m.Of].Cells[slices.Index(out.Columns, columnOf(m))] = m.text()
		if m.Name == label+"_bytes" {
			rows[m.Of].bytes = m.Value
		}
	}
	for _, row := range rows {
		out.Rows = append(out.Rows, *row)
	}
	slices.SortFunc(out.Rows, func(a, b storeRow) int { return cmp.Or(cmp.Compare(b.bytes, a.bytes), cmp.Compare(a.Name, b.Name)) })
	return out
}

// columnOf is the heading of the figures of a part.
func columnOf(m metric) string {
	if m.Name == m.Label+"_bytes" {
		return "size"
	}
	return spaced(m.Name)
}

// spaced writes the name of a figure for people; its unit stands beside the value.
func spaced(name string) string {
	name = strings.Replace(name, "_seconds_total", "_total", 1)
	name = strings.TrimSuffix(strings.TrimSuffix(name, "_seconds"), "_bytes")
	return strings.ReplaceAll(name, "_", " ")
}

// storeNote is what a person can run to learn more.
type storeNote struct{ Text, Command string }

// Note is for SQLite, which measures neither tables nor statements.
func (s storeView) Note() *storeNote {
	if s.Kind != "sqlite" {
		return nil
	}
	return &storeNote{"SQLite keeps no times of statements, and its file no sizes of tables. This counts them, and reads the whole file:", `sqlite3 FILE "select name, sum(pgsize) as bytes from dbstat group by name order by bytes desc"`}
}

// finding is the result of a check.
type finding struct{ health.Finding }

// State is the finding in a word.
func (f finding) State() string {
	switch {
	case !f.Well:
		return "failed"
	case f.Severity != "":
		return "note"
	}
	return "well"
}

// Name names the kind of store.
func (s storeView) Name() string {
	if name := map[string]string{"sqlite": "SQLite", "postgres": "PostgreSQL", "memory": "memory"}[s.Kind]; name != "" {
		return name
	}
	return s.Kind
}

// statementsFor is how long people share the slowest statements: to find them takes the server a look at all that it counted.
const statementsFor = time.Minute

func loadStore(ctx context.Context, v *visit) (any, error) {
	var view storeView
	v.cli("sluice doctor")
	if err := v.get(ctx, "/health", nil, &view); err != nil {
		return view, err
	}
	queues, err := v.firstQueues(ctx)
	if err != nil {
		return view, err
	}
	view.Jobs = jobsByState(queues)
	if view.Kind == "sqlite" || view.Kind == "memory" {
		return view, nil
	}
	if view.Unseen = !v.may("list-statements"); view.Unseen {
		return view, nil
	}
	var slow struct {
		Findings []finding `json:"findings"`
	}
	if err := v.getFor(ctx, statementsFor, "/health/statements", nil, &slow); err != nil {
		slow.Findings = []finding{{health.Finding{Check: "statements", What: "they are not known: " + problemOf(err).Why}}} // the rest is known
	}
	view.Statements = slow.Findings
	return view, nil
}

// Log reports whether the store has a log that a checkpoint brings into its file, and Space whether a vacuum finds something.
func (s storeView) Log() bool   { return s.Kind == "sqlite" }
func (s storeView) Space() bool { return s.Kind != "memory" }

func storeActs() []act {
	trial := []field{{name: "dry_run", label: "Only say what it would do", kind: "check"}}
	return []act{
		{
			name: "checkpoint-store", label: "Checkpoint now", route: "maintain", command: "sluice upkeep now checkpoint --dry-run={dry_run} --reason={reason}",
			sentence: "The write-ahead log is brought into the file, and cut. Writers wait for half a second at most.", fields: trial, done: maintained,
		},
		{
			name: "vacuum-store", label: "Vacuum now", route: "maintain", command: "sluice upkeep now vacuum --dry-run={dry_run} --reason={reason}", needsReason: true,
			sentence: "PostgreSQL removes dead rows and counts anew for its planner, while work goes on. SQLite gives free pages back to the disk: it writes the file anew, and all who write wait, for 6 s at most.", fields: trial, done: maintained,
		},
		{
			name: "retention-store", label: "Retention now", route: "maintain", command: "sluice upkeep now retention --reason={reason}", needsReason: true, danger: true,
			sentence: "Finished jobs that their queues keep no longer are deleted, for 6 s at most. Upkeep would delete them by itself.", preview: overdueJobs, done: maintained,
		},
	}
}

// overdueJobs says which jobs retention would delete.
func overdueJobs(ctx context.Context, v *visit, values url.Values) (preview, error) {
	text, err := v.caller.send(ctx, http.MethodPost, "/maintenance/retention", nil, map[string]any{"dry_run": true})
	if err != nil {
		return preview{}, err
	}
	var would health.Maintained
	if err := json.Unmarshal(text, &would); err != nil {
		return preview{}, err
	}
	out := preview{Count: int(would.Rows), More: len(would.Left) > 0}
	for _, p := range would.Parts[:min(len(would.Parts), shownParts)] {
		out.Samples = append(out.Samples, p.Name+": "+draw.Plural(int(p.Rows), "job"))
	}
	return out, nil
}

// shownParts is how many queues and outcomes a dialog names.
const shownParts = 10

// maintained says what came of a task of maintenance.
func maintained(a answered) string {
	var m health.Maintained
	text, _ := json.Marshal(a) // it was JSON
	if err := json.Unmarshal(text, &m); err != nil {
		return "Done"
	}
	said := strings.Join(append([]string{checkup.Maintained(m)}, m.Left...), ". Left: ")
	return strings.ToUpper(said[:1]) + said[1:]
}
