package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/sluice-queue/sluice/bench/cell"
	"github.com/sluice-queue/sluice/bench/stat"
)

// TestMain makes the test program a cell of a benchmark, if the environment asks for it, as main does.
func TestMain(m *testing.M) {
	if os.Getenv(cell.Env) == "" {
		os.Exit(m.Run())
	}
	if err := cell.Main(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func newTestRig(t *testing.T) *rig {
	t.Helper()
	r, err := newRig(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.close)
	return r
}

func TestScenarioGoesFromCellsToPage(t *testing.T) {
	t.Parallel()
	r := newTestRig(t)
	n := small
	n.seconds = 0.2
	s := sqliteEnqueueLatency(n, nil)
	m, failed := r.runScenario(t.Context(), s, 2)
	if len(failed) > 0 {
		t.Fatal(failed)
	}
	told, err := r.tell(t.Context(), []section{{s, m}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	text, markdown := told.Text(), told.Markdown()
	for _, want := range []string{"sqlite-enqueue-latency", "goqite", "p95 ms", "p95 of an insert by 64 callers"} {
		if !strings.Contains(text, want) {
			t.Errorf("the table lacks %q:\n%s", want, text)
		}
	}
	for _, want := range []string{"## Method", "## SQLite: many callers", "Rounds: 2."} {
		if !strings.Contains(markdown, want) {
			t.Errorf("the page lacks %q:\n%s", want, markdown)
		}
	}
	left, err := os.ReadDir(r.folder)
	if err != nil || len(left) > 0 {
		t.Errorf("cells left %v (%v)", left, err)
	}
}

func TestCellThatFailsIsTold(t *testing.T) {
	t.Parallel()
	r := newTestRig(t)
	s := sqliteEnqueueLatency(small, nil)
	s.entrants = []entrant{{"nobody", cell.Task{Kind: cell.Callers, System: "nobody", Store: cell.SQLite}}}
	m, failed := r.runScenario(t.Context(), s, 1)
	if len(failed) != 1 || !strings.Contains(failed[0].Error(), "nobody, round 1") {
		t.Fatalf("got %v", failed)
	}
	told, err := r.tell(t.Context(), []section{{s, m}}, failed)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(told.Markdown(), "A cell failed and is left out: sqlite-enqueue-latency, nobody, round 1") {
		t.Errorf("the page does not say so:\n%s", told.Markdown())
	}
	if target := told.Sections[0].Targets[0]; target.Met() {
		t.Errorf("a target that was not measured is met: %+v", target)
	}
}

func TestCommandLine(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args   []string
		plans  int
		rounds int
		out    string
		fails  bool
	}{
		"everything is measured and written":      {nil, len(plans), 5, page, false},
		"some scenarios write no page":            {[]string{"-only", "postgres-work,sqlite-end-to-end"}, 2, 5, "", false},
		"some scenarios write a page on request":  {[]string{"-only", "postgres-work", "-out", "x.md"}, 1, 5, "x.md", false},
		"a quick run is one round and no page":    {[]string{"-quick", "-rounds", "5", "-out", "x.md"}, len(plans), 1, "", false},
		"the page can be left out":                {[]string{"-out", "", "-rounds", "1"}, len(plans), 1, "", false},
		"an unknown scenario is refused":          {[]string{"-only", "postgres"}, 0, 0, "", true},
		"no rounds are refused":                   {[]string{"-rounds", "0"}, 0, 0, "", true},
		"what is left on the line is not ignored": {[]string{"quick"}, 0, 0, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := parse(c.args)
			if c.fails != (err != nil) {
				t.Fatalf("error: %v", err)
			}
			if len(got.plans) != c.plans || got.rounds != c.rounds || got.out != c.out {
				t.Errorf("got %d scenarios, %d rounds, page %q", len(got.plans), got.rounds, got.out)
			}
		})
	}
}

func TestEveryScenarioIsWhole(t *testing.T) {
	t.Parallel()
	known := []cell.Kind{cell.Work, cell.Latency, cell.Claims, cell.Callers, cell.Waves, cell.Wave, cell.Looks, cell.Starts, cell.Life, cell.Scrape, cell.Prune, cell.Fleet, cell.Find, cell.First, cell.Steady, cell.Age, cell.Fires, cell.Answers, cell.Waiting, cell.File, cell.Stream, cell.Console, cell.Pressed}
	for _, p := range plans {
		s := p.make(whole, nil)
		if s.name != p.name || s.title == "" || s.method == "" || s.ratio == "" || len(s.goals) == 0 || len(s.headline) == 0 {
			t.Errorf("%s lacks something: %+v", p.name, s)
		}
		// Each figure is 1 in every round, so each ratio must be 1 too. A wrong name of an entrant would give no ratio.
		m := make(measured)
		for _, e := range s.entrants {
			result := make(cell.Result)
			for _, c := range columns {
				result[cell.Figure(c.Key)] = 1
			}
			m[e.name] = []cell.Result{result, result}
			if !slices.Contains(known, e.task.Kind) {
				t.Errorf("%s, %s: kind %q", s.name, e.name, e.task.Kind)
			}
		}
		for _, e := range s.entrants {
			if got := stat.Median(s.ratios(m, e.name)); got != 1 {
				t.Errorf("%s: the ratio of %s is %v", s.name, e.name, got)
			}
		}
		for _, g := range s.goals {
			if got := stat.Median(g.values(m)); got != 1 {
				t.Errorf("%s: %q is %v", s.name, g.text, got)
			}
		}
	}
}

func TestRiverRunsAMillionWithItsBestSlots(t *testing.T) {
	t.Parallel()
	result := func(rate float64) []cell.Result { return []cell.Result{{cell.WorkRate: rate}} }
	earlier := map[string]measured{postgresWorkName: {
		riverWith(100): result(2), riverWith(1000): result(1), riverWith(2000): result(math.NaN()),
	}}
	for _, c := range []struct {
		earlier map[string]measured
		want    string
	}{{nil, riverWith(1000)}, {earlier, riverWith(100)}} {
		s := postgresMillion(whole, c.earlier)
		if !slices.ContainsFunc(s.entrants, func(e entrant) bool { return e.name == c.want }) {
			t.Errorf("%s is not among %v", c.want, s.entrants)
		}
	}
}

func TestRiverOnSQLiteIsBuilt(t *testing.T) {
	t.Parallel()
	r := rig{folder: t.TempDir()}
	program, err := r.riverSQLite(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(program); err != nil {
		t.Error(err)
	}
}

func TestCellEndsWithWhoStartedIt(t *testing.T) {
	t.Parallel()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// The standard input of this cell is closed from the start.
	cmd := exec.Command(program)
	cmd.Env = append(os.Environ(), cell.Env+`={"Kind":"callers","System":"sluice","Store":"sqlite","Place":"`+t.TempDir()+`/q.db","Seconds":60,"Callers":1}`)
	if err := cmd.Run(); err == nil || cmd.ProcessState.ExitCode() != 3 {
		t.Errorf("it ended with %v", err)
	}
}
