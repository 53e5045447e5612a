package export_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/sluice-queue/sluice/alert"
	"github.com/sluice-queue/sluice/cmd/internal/export"
	"github.com/sluice-queue/sluice/cmd/metric"
)

// promtool runs Prometheus's promtool in a folder.
func promtool(t *testing.T, folder string, args ...string) {
	t.Helper()
	path, err := exec.LookPath("promtool")
	if err != nil {
		t.Fatal("there is no promtool; `go run ./internal/testbed` installs it on Debian: ", err)
	}
	cmd := exec.CommandContext(t.Context(), path, args...)
	cmd.Dir = folder
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// written writes a file, unless an error came with its text.
func written(t *testing.T, folder, name string, text []byte, err error) {
	t.Helper()
	if err == nil {
		err = os.WriteFile(filepath.Join(folder, name), text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// series maps metrics with labels to the values that Prometheus has scraped, in the notation of promtool.
type series map[string]string

// with returns the series with more series added or replaced.
func (s series) with(more series) series {
	out := series{}
	for _, from := range []series{s, more} {
		for name, values := range from {
			out[name] = values
		}
	}
	return out
}

// worked is a queue with a worker, and engine is one with a dispatcher. The values are scraped every 15 s.
var (
	worked = series{
		`sluice_queue_holders{queue="q",role="worker"}`: "1+0x600", `sluice_queue_holders{queue="q",role="dispatcher"}`: "0+0x600",
		`sluice_queue_paused{queue="q"}`: "0+0x600", `sluice_jobs{queue="q",state="claimed"}`: "0+0x600", `sluice_in_flight{queue="q"}`: "1+0x600",
		`sluice_holders{role="upkeep",instance="a"}`: "1+0x600", `sluice_holders{role="upkeep",instance="b"}`: "1+0x600",
	}
	engine = worked.with(series{`sluice_queue_holders{queue="q",role="worker"}`: "0+0x600", `sluice_queue_holders{queue="q",role="dispatcher"}`: "1+0x600"})
	rated  = series{`sluice_rate_limit{queue="q"}`: "2+0x600"}
)

func ready(jobs string) series {
	return series{`sluice_jobs{queue="q",state="ready"}`: jobs + "+0x600"}
}

func oldest(seconds string) series {
	return series{`sluice_oldest_due_seconds{queue="q"}`: seconds + "+0x600"}
}

// moves returns a counter that grows by each at every scrape.
func moves(event, each string) series {
	return series{`sluice_moves_total{queue="q",event="` + event + `",reason=""}`: "0+" + each + "x600"}
}

// cases has the scraped series, and the rules that must fire, written as minutes:rules.
var cases = []struct {
	name   string
	series series
	fires  []string
}{
	{"all is well", worked.with(ready("5")).with(oldest("3")).with(moves("claim", "15")).with(moves("complete", "15")), []string{"70:"}},
	{"a backlog that holds", worked.with(ready("1001")), []string{"4:", "6:Backlog"}},
	{"as much as allowed", worked.with(ready("1000")), []string{"20:"}},
	{"a backlog that is planned", worked.with(ready("9001")).with(oldest("7000")).with(rated).with(moves("claim", "30")), []string{"60:"}},
	{"a backlog of a paused queue", worked.with(ready("9001")).with(oldest("7000")).with(series{`sluice_queue_paused{queue="q"}`: "1+0x600"}), []string{"59:", "61:Paused"}},
	{"a backlog of tenants at their limit", worked.with(ready("9001")).with(oldest("7000")).with(series{`sluice_tenant_concurrency{queue="q",tenant="acme"}`: "1+0x600"}), []string{"60:"}},
	{"a backlog at an engine", engine.with(ready("10001")), []string{"4:", "6:BacklogEngine"}},
	{"less than the rate allows", worked.with(ready("100")).with(oldest("500")).with(rated).with(moves("claim", "14")), []string{"4:", "11:BehindPace"}},
	{"more than four hours at the rate", worked.with(ready("30000")).with(oldest("500")).with(rated).with(moves("claim", "30")), []string{"4:", "6:LongBacklog"}},
	{"an old job", worked.with(ready("1")).with(oldest("3601")).with(moves("claim", "1")), []string{"0:", "2:OldJob"}},
	{"nobody serves the queue", worked.with(ready("1")).with(series{`sluice_queue_holders{queue="q",role="worker"}`: "0+0x600"}), []string{"1:", "3:Unserved"}},
	{"nothing moves", worked.with(ready("1")).with(oldest("1000")).with(moves("claim", "0")).with(series{`sluice_in_flight{queue="q"}`: "0+0x600"}), []string{"0:", "2:Stalled"}},
	{"one of ten dies", worked.with(moves("complete", "9")).with(moves("bury", "1")), []string{"3:SuccessRate"}},
	{"all die", worked.with(moves("bury", "1")), []string{"3:SuccessRate"}},
	{"one of a hundred dies", worked.with(moves("complete", "99")).with(moves("bury", "1")), []string{"10:"}},
	{"eleven dead letters", worked.with(series{`sluice_jobs{queue="q",state="dead"}`: "11+0x600"}), []string{"0:", "2:DeadLetters"}},
	{"runs of a minute", worked.with(series{
		`sluice_run_seconds_bucket{queue="q",le="10"}`: "0+0x600", `sluice_run_seconds_bucket{queue="q",le="60"}`: "0+9x600", `sluice_run_seconds_bucket{queue="q",le="+Inf"}`: "0+9x600",
	}), []string{"4:", "6:SlowRuns"}},
	{"runs of an engine that take long", engine.with(series{
		`sluice_run_seconds_bucket{queue="q",le="10"}`: "0+0x600", `sluice_run_seconds_bucket{queue="q",le="+Inf"}`: "0+9x600",
	}), []string{"60:"}},
	{"jobs of an engine die", engine.with(moves("bury", "1")), []string{"3:Dying SuccessRate"}},
	{"recoveries", worked.with(moves("recover", "30")).with(moves("claim", "3000")), []string{"6:", "9:Recoveries"}},
	{"recoveries of a slow queue", worked.with(rated).with(moves("recover", "6")).with(moves("claim", "3000")), []string{"6:", "9:Recoveries"}},
	{"few recoveries", worked.with(moves("recover", "6")).with(moves("claim", "3000")), []string{"60:"}},
	{"leases run out", worked.with(moves("recover", "1")).with(moves("claim", "10")), []string{"4:", "6:LeaseExpiry"}},
	{"starts fail", engine.with(series{`sluice_engine_start_failures_total{queue="q"}`: "0+90x600"}), []string{"3:", "7:StartFailures"}},
	{"starts fail in a slow queue", engine.with(rated).with(series{`sluice_engine_start_failures_total{queue="q"}`: "0+20x600"}), []string{"7:StartFailures"}},
	{"the breaker is open", engine.with(series{`sluice_breaker_open{queue="q"}`: "1+0x600"}), []string{"0:", "2:BreakerOpen"}},
	{"an uncertain job", engine.with(series{`sluice_jobs{queue="q",state="uncertain"}`: "1+0x600"}), []string{"0:Uncertain"}},
	{"settings that are wrong", worked.with(series{`sluice_queue_settings_wrong{queue="q"}`: "1+0x600"}), []string{"0:", "2:SettingsWrong"}},
	{"a full queue", worked.with(series{`sluice_waiting_used{queue="q"}`: "0.95+0x600"}), []string{"0:", "2:FullQueue"}},
	{"a holder in trouble", worked.with(series{`sluice_holders_with_conditions{role="worker"}`: "1+0x600"}), []string{"1:", "3:HoldersWithConditions"}},
	{"nearly as many queues as there may be", worked.with(series{`sluice_queues_used`: "0.81+0x600"}), []string{"4:", "6:ManyQueues"}},
	{"no upkeep", worked.with(series{`sluice_holders{role="upkeep",instance="a"}`: "0+0x600", `sluice_holders{role="upkeep",instance="b"}`: "0+0x600"}), []string{"0:NoUpkeep"}},
	{"one process sees none", worked.with(series{`sluice_holders{role="upkeep",instance="a"}`: "0+0x600"}), []string{"10:"}},
	{"an old transaction", worked.with(series{`sluice_postgres_oldest_transaction_seconds`: "601+15x600"}), []string{"0:", "2:OldTransaction"}},
	{"dead rows", worked.with(series{`sluice_postgres_dead_rows{table="live"}`: "2000000+0x600"}), []string{"14:", "16:DeadRows"}},
	{"a large log", worked.with(series{`sluice_sqlite_wal_bytes`: "2000000000+0x600"}), []string{"4:", "6:WalSize"}},
	{"few connections left", worked.with(series{`sluice_postgres_connections_used`: "0.9+0x600"}), []string{"1:", "3:Connections"}},
	{"clocks apart", worked.with(series{`sluice_postgres_clock_difference_seconds`: "-6+0x600"}), []string{"1:", "3:Clock"}},
}

type object = map[string]any

// TestRulesFireInPrometheus runs the exported rules in promtool. For each case it checks which rules fire when, and
// that no others do.
func TestRulesFireInPrometheus(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	text, err := export.PrometheusRules(alert.Presets())
	written(t, folder, "rules.yml", text, err)
	fired := map[string]bool{}
	var tests []object
	for _, c := range cases {
		var inputs, wants []object
		for _, name := range sortedKeys(c.series) {
			inputs = append(inputs, object{"series": name, "values": c.series[name]})
		}
		for _, f := range c.fires {
			minutes, rules, _ := strings.Cut(f, ":")
			samples := []object{}
			for _, rule := range strings.Fields(rules) {
				fired[rule] = true
				samples = append(samples, object{"labels": `{alertname="Sluice` + rule + `"}`, "value": 1})
			}
			wants = append(wants, object{"expr": `count by (alertname) (ALERTS{alertstate="firing"})`, "eval_time": minutes + "m", "exp_samples": samples})
		}
		tests = append(tests, object{"name": c.name, "interval": "15s", "input_series": inputs, "promql_expr_test": wants})
	}
	text, err = yaml.Marshal(object{"rule_files": []string{"rules.yml"}, "evaluation_interval": "15s", "tests": tests})
	written(t, folder, "tests.yml", text, err)
	promtool(t, folder, "check", "rules", "rules.yml")
	promtool(t, folder, "test", "rules", "tests.yml")
	for _, r := range alert.Presets() {
		if name := export.AlertName(r.Name); !fired[strings.TrimPrefix(name, "Sluice")] {
			t.Errorf("no case lets %s fire", name)
		}
	}
}

func sortedKeys(s series) []string {
	var keys []string
	for k := range s {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// TestQueuesOwnRulesAreExportedAndReplaceThoseOfAll exports two rules that somebody set for one queue each.
func TestQueuesOwnRulesAreExportedAndReplaceThoseOfAll(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	all := alert.Presets()
	own := all[slices.IndexFunc(all, func(r alert.Rule) bool { return r.Name == "dead-letters" })]
	own.Queue, own.Threshold, own.Covers = "a.b", 100, alert.CoversAll
	off := own
	off.Queue, off.Disabled = "c", true
	text, err := export.PrometheusRules(append(all, own, off))
	written(t, folder, "rules.yml", text, err)
	var wants []object
	for minutes, labels := range map[string][]string{"2m": {`{queue="axb"}`}} {
		var samples []object
		for _, l := range labels {
			samples = append(samples, object{"labels": l, "value": 1})
		}
		wants = append(wants, object{"expr": `count by (queue) (ALERTS{alertname="SluiceDeadLetters",alertstate="firing"})`, "eval_time": minutes, "exp_samples": samples})
	}
	var inputs []object
	for _, queue := range []string{"a.b", "axb", "c", "sluice.notify.hook"} {
		inputs = append(inputs, object{"series": `sluice_jobs{queue="` + queue + `",state="dead"}`, "values": "50+0x40"}, object{"series": `sluice_queue_paused{queue="` + queue + `"}`, "values": "0+0x40"})
	}
	test := object{"interval": "15s", "input_series": inputs, "promql_expr_test": wants}
	text, err = yaml.Marshal(object{"rule_files": []string{"rules.yml"}, "evaluation_interval": "15s", "tests": []object{test}})
	written(t, folder, "tests.yml", text, err)
	promtool(t, folder, "test", "rules", "tests.yml")
}

var (
	metricName = regexp.MustCompile(`\bsluice_[a-z0-9_]+`)
	histogram  = regexp.MustCompile(`_(bucket|sum|count)$`)
)

// TestEveryMetricOfTheExportsIsOneOfOurs checks that the exports use only metrics and labels of package metric.
func TestEveryMetricOfTheExportsIsOneOfOurs(t *testing.T) {
	t.Parallel()
	known := map[string]metric.Description{}
	for _, d := range metric.Names() {
		known[d.Name] = d
	}
	for _, m := range alert.Metrics() {
		if export.Value(m.Name, 0) == "" {
			t.Errorf("metric %s has no expression", m.Name)
		}
	}
	exprs, err := export.Expressions(alert.Presets())
	if err != nil {
		t.Fatal(err)
	}
	dashboard, err := export.GrafanaDashboard(alert.Presets())
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, text := range append(exprs, string(dashboard)) {
		for _, name := range metricName.FindAllString(text, -1) {
			seen++
			if _, found := known[name]; found {
				continue
			}
			if base := histogram.ReplaceAllString(name, ""); known[base].Type != metric.TypeHistogram {
				t.Errorf("%s is none of ours, in %.200s", name, text)
			}
		}
	}
	if seen < 100 {
		t.Errorf("only %d names were looked at", seen)
	}
}

// board has the parts of Grafana's dashboard schema that our dashboard uses.
type board struct {
	UID           string
	Title         string
	Tags          []string
	SchemaVersion int
	Version       int
	Editable      bool
	Refresh       string
	Time          struct{ From, To string }
	Timezone      string
	Panels        []panel
	Templating    struct{ List []variable }
}

type panel struct {
	ID          int
	Type        string
	Title       string
	Description string
	Datasource  *datasource
	GridPos     struct{ X, Y, W, H int }
	Targets     []struct {
		RefID        string
		Expr         string
		LegendFormat string
		Datasource   datasource
	}
	FieldConfig *struct {
		Defaults struct {
			Unit       string
			Min        float64
			Thresholds *struct {
				Mode  string
				Steps []struct {
					Color string
					Value *float64
				}
			}
			Custom struct {
				FillOpacity     int
				ShowPoints      string
				SpanNulls       bool
				ThresholdsStyle *struct{ Mode string }
			}
		}
		Overrides []object
	}
	Options *struct {
		Legend struct {
			DisplayMode, Placement string
			ShowLegend             bool
			Calcs                  []string
		}
		Tooltip struct{ Mode, Sort string }
	}
	Collapsed *bool
	Panels    []panel
}

type datasource struct{ Type, UID string }

type variable struct {
	Name, Type, Label, Query string
	Datasource               *datasource
	Refresh                  int
	Multi, IncludeAll        bool
	AllValue                 string
	Current                  object
}

func dashboard(t *testing.T) (out board) {
	t.Helper()
	text, err := export.GrafanaDashboard(alert.Presets())
	if err != nil {
		t.Fatal(err)
	}
	strict := json.NewDecoder(bytes.NewReader(text))
	strict.DisallowUnknownFields()
	if err := strict.Decode(&out); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestDashboardIsWhatGrafanaReads checks the dashboard's structure strictly, and each expression with promtool.
func TestDashboardIsWhatGrafanaReads(t *testing.T) {
	t.Parallel()
	board := dashboard(t)
	var rules []object
	filled, ids := map[[2]int]string{}, map[int]bool{}
	for _, p := range board.Panels {
		if ids[p.ID] || p.ID == 0 || p.Title == "" {
			t.Errorf("panel %d %q has no id or title of its own", p.ID, p.Title)
		}
		ids[p.ID] = true
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := filled[[2]int{x, y}]; other != "" || x >= 24 {
					t.Fatalf("%q lies over %q, or beyond the edge", p.Title, other)
				}
				filled[[2]int{x, y}] = p.Title
			}
		}
		switch p.Type {
		case "row":
			if p.Collapsed == nil || p.Targets != nil {
				t.Errorf("row %q is no row", p.Title)
			}
			continue
		case "timeseries":
			if p.Datasource == nil || p.Datasource.UID != "${datasource}" || p.FieldConfig == nil || p.Options == nil || len(p.Targets) == 0 {
				t.Errorf("chart %q is no chart", p.Title)
			}
		default:
			t.Errorf("%q is of type %q", p.Title, p.Type)
		}
		for i, target := range p.Targets {
			if target.RefID != string(rune('A'+i)) || target.LegendFormat == "" {
				t.Errorf("%q: line %+v", p.Title, target)
			}
			expr := strings.NewReplacer("$__rate_interval", "1m", "$queue", ".*").Replace(target.Expr)
			rules = append(rules, object{"record": fmt.Sprintf("panel_%d_%d", p.ID, i), "expr": expr})
		}
	}
	folder := t.TempDir()
	file, err := yaml.Marshal(object{"groups": []object{{"name": "dashboard", "rules": rules}}})
	written(t, folder, "board.yml", file, err)
	promtool(t, folder, "check", "rules", "board.yml")
}

// TestDashboardAnswersQuestions checks that each row is a question with few charts, and that no line appears twice.
// Exactly one chart names each alert rule: the chart that shows its figure.
func TestDashboardAnswersQuestions(t *testing.T) {
	t.Parallel()
	lines, named, charts := map[string]string{}, map[string]string{}, 0
	for _, p := range dashboard(t).Panels {
		if p.Type == "row" {
			if charts = 0; !strings.HasSuffix(p.Title, "?") {
				t.Errorf("row %q asks nothing", p.Title)
			}
			continue
		}
		if charts++; charts > 7 {
			t.Errorf("%q is the chart %d of its row", p.Title, charts)
		}
		for _, target := range p.Targets {
			if other := lines[target.Expr]; other != "" {
				t.Errorf("%q and %q show the same: %s", other, p.Title, target.Expr)
			}
			lines[target.Expr] = p.Title
		}
		for _, r := range alert.Presets() {
			if !strings.Contains(p.Description, "**"+export.AlertName(r.Name)+"**") {
				continue
			}
			if other := named[r.Name]; other != "" {
				t.Errorf("%q and %q name the rule %s", other, p.Title, r.Name)
			}
			named[r.Name] = p.Title
		}
	}
	for _, r := range alert.Presets() {
		if named[r.Name] == "" {
			t.Errorf("no chart names the rule %s", r.Name)
		}
	}
}

// TestDashboardDrawsTheThresholdsThatCount checks that the dashboard draws the thresholds of the rules that it gets.
func TestDashboardDrawsTheThresholdsThatCount(t *testing.T) {
	t.Parallel()
	drawn := map[string]float64{}
	for _, p := range dashboard(t).Panels {
		if p.FieldConfig == nil || p.FieldConfig.Defaults.Thresholds == nil {
			continue
		}
		for _, step := range p.FieldConfig.Defaults.Thresholds.Steps {
			if step.Value != nil {
				drawn[p.Title] = *step.Value
			}
		}
	}
	want := map[string]float64{
		"Since when the oldest job is ready": 3600, "Jobs that completed, of those that ended": 0.95, "How long runs take": 10,
		"Dead letters, and jobs whose outcome nobody knows": 10, "How long the oldest transaction is open (PostgreSQL)": 600,
		"Dead rows (PostgreSQL)": 1_000_000, "What is used up: connections, queues, waiting jobs of a queue": 0.8, "The write-ahead log and free space (SQLite)": 1 << 30,
	}
	if !maps.Equal(drawn, want) {
		t.Errorf("drawn are %v", drawn)
	}
}
