package languages_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sluice-queue/sluice"
	"github.com/sluice-queue/sluice/apps/ingredients/kitchen"
	"github.com/sluice-queue/sluice/apps/ingredients/languages"
	"github.com/sluice-queue/sluice/internal/clienttest"
	"github.com/sluice-queue/sluice/internal/pgtest"
	"github.com/sluice-queue/sluice/store/remote"
)

// mention is the payload of a job over HTTP.
type mention struct {
	Raw    string `json:"raw"`
	Faults int    `json:"faults,omitempty"`
}

// heard has the mentions that each language takes in for its source. "brokoli" alone is doubtful, and the other source
// confirms it.
var heard = map[string][]mention{
	"recipe":  {{Raw: "tomato paste (3 tbsp)"}, {Raw: "200 g Brokoli"}, {Raw: "basil leaves", Faults: 2}, {Raw: "???"}, {Raw: "durian"}, {Raw: "Heinz CARROTS, 500g"}},
	"scraper": {{Raw: "Dish Soap Lemon 500ml"}, {Raw: "brokoli 1kg"}, {Raw: "Tesco cucumber", Faults: 1}, {Raw: "carrot", Faults: 9}, {Raw: "2 x eggs"}, {Raw: "500 g"}},
}

// become maps each mention to its outcome, and to the number of its failed attempts.
var become = map[string]string{
	"tomato paste (3 tbsp)": "matched tomato puree 0", "200 g Brokoli": "matched broccoli 0", "basil leaves": "matched basil 2", "???": "failed  1",
	"durian": "on hold  0", "Heinz CARROTS, 500g": "matched carrot 0", "Dish Soap Lemon 500ml": "not food  0", "brokoli 1kg": "matched broccoli 0",
	"Tesco cucumber": "matched cucumber 1", "carrot": "failed  5", "2 x eggs": "matched egg 0", "500 g": "failed  1",
}

// TestMatchersWorkOverHTTP has matchers in both languages take in and match mentions through a server. One process of
// each is killed after it has written to the kitchen, before the server knows.
func TestMatchersWorkOverHTTP(t *testing.T) {
	t.Parallel()
	if err := pgtest.Install(); err != nil {
		t.Fatal(err)
	}
	program, programs := clienttest.Build(t), prepare(t)
	for _, store := range []string{"sqlite", "postgres"} {
		t.Run(store, func(t *testing.T) {
			t.Parallel()
			db := pgtest.NewDatabase(t)
			if err := kitchen.Prepare(t.Context(), db, kitchen.Preset(), kitchen.DefaultPantry()); err != nil {
				t.Fatal(err)
			}
			address := db
			if store == "sqlite" {
				address = "sqlite:" + filepath.Join(t.TempDir(), "sluice.db")
			}
			w := open(t, db, clienttest.Serve(t, program, address, "--login"), programs)
			w.takeAll()
			w.kill(map[string]string{"python": "recipe", "node": "scraper"})
			for language := range programs {
				w.start(language, "--lease", "2", "--slots", "3")
			}
			w.endsAs(become)
			w.remembers()
		})
	}
}

// command is the beginning of a command line, and its environment.
type command struct{ words, env []string }

// prepare installs the programs in both languages, and their packages.
func prepare(t *testing.T) map[string]command {
	t.Helper()
	if _, err := languages.Find(t.Context(), "python", t.TempDir()); err != nil { // installs psycopg
		t.Fatal(err)
	}
	python := clienttest.Python(t, "psycopg", "python3", "python3-psycopg")
	found, err := languages.Find(t.Context(), "node", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	path := clienttest.Node(t)
	folder := t.TempDir()
	modules := filepath.Join(folder, "node_modules")
	pg := filepath.Join(strings.TrimPrefix(found.Env[0], "NODE_PATH="), "pg")
	text, err := os.ReadFile("over_http.mjs")
	err = errors.Join(err, os.Mkdir(modules, 0o700), os.Symlink(pg, filepath.Join(modules, "pg")),
		os.Symlink(clienttest.TypeScript(t, path), filepath.Join(modules, "sluice-client")),
		os.WriteFile(filepath.Join(folder, "over_http.mjs"), text, 0o600))
	if err != nil {
		t.Fatal(err)
	}
	return map[string]command{
		"python": {[]string{python, "over_http.py"}, []string{"PYTHONPATH=" + filepath.Join(clienttest.Root(t), "clients", "python", "src"), "PYTHONDONTWRITEBYTECODE=1"}},
		"node":   {[]string{"node", filepath.Join(folder, "over_http.mjs")}, []string{"PATH=" + path}},
	}
}

// works is a kitchen, a server, and the programs that use both.
type works struct {
	*testing.T
	kitchen  *kitchen.Kitchen
	client   *sluice.Client // reads the server's store
	env      []string
	programs map[string]command
}

func open(t *testing.T, db string, env []string, programs map[string]command) *works {
	t.Helper()
	k, err := kitchen.Open(t.Context(), db)
	if err != nil {
		t.Fatal(err)
	}
	store, err := remote.Open(t.Context(), clienttest.Value(env, "SLUICE_URL"), remote.Options{Token: clienttest.Value(env, "SLUICE_TOKEN")})
	if err != nil {
		t.Fatal(err)
	}
	w := &works{t, k, sluice.NewClient(store, sluice.ClientOptions{}), append(env, "INGREDIENTS_DB="+db), programs}
	t.Cleanup(func() {
		if err := errors.Join(k.Close(), store.Close()); err != nil {
			t.Error(err)
		}
	})
	settings := kitchen.Preset()
	settings.Backoff = sluice.Backoff{Base: 10 * time.Millisecond, Factor: 1, Max: 10 * time.Millisecond}
	for _, source := range kitchen.Sources() {
		_, err := w.client.ChangeSettings(t.Context(), w.queue(source), sluice.Act{By: "test", Reason: "preset"}, func(s *sluice.Settings) error {
			*s = settings
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return w
}

// queue makes a queue if it is missing, and returns its name.
func (w *works) queue(name string) string {
	w.Helper()
	if _, err := w.client.EnsureQueue(w.Context(), name, sluice.DefaultSettings(), sluice.Act{By: "test", Reason: "preset"}); err != nil {
		w.Fatal(err)
	}
	return name
}

func (w *works) command(language string, args ...string) *exec.Cmd {
	program := w.programs[language]
	words := append(slices.Clone(program.words), args...)
	cmd := exec.CommandContext(w.Context(), words[0], words[1:]...)
	cmd.Env, cmd.Stderr = append(slices.Clone(w.env), program.env...), w.Output()
	return cmd
}

// takeAll has each language take in the mentions of its source.
func (w *works) takeAll() {
	w.Helper()
	for language, source := range map[string]string{"python": "recipe", "node": "scraper"} {
		var lines bytes.Buffer
		for _, m := range heard[source] {
			if err := json.NewEncoder(&lines).Encode(m); err != nil {
				w.Fatal(err)
			}
		}
		cmd := w.command(language, "take", source)
		cmd.Stdin = &lines
		out, err := cmd.Output()
		if want := fmt.Sprintf("%d mentions of %s taken in\n", len(heard[source]), source); err != nil || string(out) != want {
			w.Fatalf("%s says %q, %v; want %q", language, out, err, want)
		}
	}
}

// start starts a matcher, and terminates it at the end of the test. It must exit with 0.
func (w *works) start(language string, args ...string) {
	w.Helper()
	cmd := w.command(language, append([]string{"work"}, args...)...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	if err := cmd.Start(); err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() {
		if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 0 {
			w.Errorf("the matcher in %s ended: %v", language, err)
		}
	})
}

// kill starts one matcher per language that never settles its jobs. It kills the matcher after two of the jobs are
// decided.
func (w *works) kill(sources map[string]string) {
	w.Helper()
	for language, source := range sources {
		cmd := w.command(language, "work", "--queues", source, "--lease", "2", "--slots", "2", "--work", "3600")
		if err := cmd.Start(); err != nil {
			w.Fatal(err)
		}
		const decided = "select count(*) from ingredients.trail where what in ('matched', 'on hold', 'not food') and resolved_by like $1"
		for n := 0; n < 2; time.Sleep(10 * time.Millisecond) {
			if err := w.kitchen.Pool().QueryRow(w.Context(), decided, language+" %:"+strconv.Itoa(cmd.Process.Pid)+":%").Scan(&n); err != nil {
				w.Fatal(err)
			}
		}
		if err := cmd.Process.Kill(); err != nil {
			w.Fatal(err)
		}
		_ = cmd.Wait() // ends by SIGKILL
	}
}

// jobs returns the jobs of the server.
func (w *works) jobs() []sluice.Job {
	w.Helper()
	page, err := w.client.Jobs(w.Context(), sluice.JobFilter{Limit: 1000})
	if err != nil {
		w.Fatal(err)
	}
	return page.Jobs
}

// endsAs waits for the end of all jobs, and compares the mentions with want. Each mention was decided once, despite the
// kills.
func (w *works) endsAs(want map[string]string) {
	w.Helper()
	for unfinished := true; unfinished; time.Sleep(20 * time.Millisecond) {
		unfinished = slices.ContainsFunc(w.jobs(), func(job sluice.Job) bool { return !job.State.Finished() })
	}
	rows, err := w.kitchen.Pool().Query(w.Context(), `select m.raw, m.state || ' ' || coalesce(m.ingredient, '') || ' ' || count(t.id) filter (where t.what in ('tried', 'failed')),
		count(t.id) filter (where t.what in ('matched', 'on hold', 'not food')), m.state = 'failed'
		from ingredients.mention m left join ingredients.trail t on t.mention = m.id group by m.id`)
	if err != nil {
		w.Fatal(err)
	}
	got := make(map[string]string)
	for rows.Next() {
		var raw, became string
		var decisions int
		var failed bool
		if err := rows.Scan(&raw, &became, &decisions, &failed); err != nil {
			w.Fatal(err)
		}
		if got[raw] = became; failed != (decisions == 0) || decisions > 1 {
			w.Errorf("%s is %s after %d decisions", raw, became, decisions)
		}
	}
	if rows.Err() != nil || !maps.Equal(got, want) {
		w.Errorf("the mentions are %q, %v; want %q", got, rows.Err(), want)
	}
}

// remembers compares the jobs with the mentions. The jobs of a killed matcher ran again, and kept the first verdict.
func (w *works) remembers() {
	w.Helper()
	again := 0
	for _, job := range w.jobs() {
		var state string
		if err := w.kitchen.Pool().QueryRow(w.Context(), "select state from ingredients.mention where job = $1::uuid", job.ID.String()).Scan(&state); err != nil {
			w.Fatal(err)
		}
		if (job.State == sluice.StateDead) != (state == "failed") {
			w.Errorf("the job of a mention that is %s is %s", state, job.State)
		}
		if again += job.Recoveries; job.State != sluice.StateCompleted {
			continue
		}
		full, err := w.client.Job(w.Context(), job.ID)
		if err != nil {
			w.Fatal(err)
		}
		var result struct{ Verdict string }
		if err := json.Unmarshal(full.Result, &result); err != nil || result.Verdict == "" {
			w.Errorf("the result of a mention that is %s is %s, %v", state, full.Result, err)
		}
		if result.Verdict != state && (result.Verdict != "on hold" || state != "matched") { // the other source has confirmed the doubtful name later
			w.Errorf("the result is %s, and the mention %s", result.Verdict, state)
		}
	}
	if again < 4 {
		w.Errorf("%d jobs were recovered from the killed, want 4", again)
	}
}
