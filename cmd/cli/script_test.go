package cli_test

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/sluice-queue/sluice/cmd/cli"
	"github.com/sluice-queue/sluice/internal/pgtest"
	"github.com/sluice-queue/sluice/store/postgres"
)

// cluster is the PostgreSQL server of these tests. The first test that needs it starts it. Its start is no part of
// TestMain, since testscript.Main ends the process before a cleanup could run.
var cluster = struct {
	start   func() error
	started *pgtest.Cluster
}{}

type mainWithPostgres struct{ *testing.M }

// Run runs the tests and then stops the cluster, if one was started.
func (m mainWithPostgres) Run() int {
	cluster.start = sync.OnceValue(func() (err error) {
		if os.Getenv(pgtest.Env) != "" {
			return nil
		}
		if cluster.started, err = pgtest.Start(pgtest.Options{}); err != nil {
			return err
		}
		return os.Setenv(pgtest.Env, cluster.started.URL)
	})
	// Without this, a program with the race detector sleeps for a second before it ends.
	if err := os.Setenv("GORACE", strings.TrimSpace(os.Getenv("GORACE")+" atexit_sleep_ms=0")); err != nil {
		panic(err)
	}
	// Scripts mostly wait for processes and for jobs to fall due. A flag on the command line wins.
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
	if err := beQuick(); err != nil {
		panic(err)
	}
	code := m.M.Run()
	pgtest.DropTemplates()
	if cluster.started != nil {
		cluster.started.Stop()
	}
	return code
}

func TestMain(m *testing.M) {
	testscript.Main(mainWithPostgres{m}, map[string]func(){
		"sluice":   func() { os.Exit(cli.Patiently(os.Args[1:])) }, // as cmd/sluice does, with more patience
		"session":  serveSession,
		"answerer": answerer,
	})
}

// onBoth is the line that marks scripts for both kinds of store; all other scripts run on SQLite alone.
const onBoth = "# On SQLite and PostgreSQL."

// TestScriptsOnSQLite runs each command of scripts for SQLite alone as a process of its own, as people do.
func TestScriptsOnSQLite(t *testing.T) {
	t.Parallel()
	both := scripts(t, onBoth)
	alone := slices.DeleteFunc(scripts(t, ""), func(path string) bool { return slices.Contains(both, path) })
	testscript.Run(t, parameters("sqlite", append(withSessions(t, both), alone...), func(env *testscript.Env) (string, error) {
		return "sqlite:" + filepath.Join(env.WorkDir, "jobs.db"), nil
	}))
}

func TestScriptsOnPostgres(t *testing.T) {
	t.Parallel()
	if err := cluster.start(); err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, parameters("postgres", withSessions(t, scripts(t, onBoth)), func(env *testscript.Env) (string, error) {
		return databaseOf(t, env), nil
	}))
}

// TestScriptsThroughAPooler runs every command through a PgBouncer in transaction mode, with the defaults.
func TestScriptsThroughAPooler(t *testing.T) {
	t.Parallel()
	if err := cluster.start(); err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, parameters("postgres", withSessions(t, scripts(t, onBoth)), func(env *testscript.Env) (string, error) {
		_, through := pgtest.NewPooler(t, databaseOf(t, env), pgtest.PoolerOptions{})
		return through, nil
	}))
}

// migrated is the template of a database that is up to date.
var migrated = pgtest.Template{Fill: func(ctx context.Context, url string) error {
	_, err := postgres.Migrate(ctx, url)
	return err
}}

// databaseOf returns the database for a script: a migrated one, or an empty one for the script about migration. The
// database is dropped when the whole test ends, since by then no script uses it.
func databaseOf(t *testing.T, env *testscript.Env) string {
	t.Helper()
	if filepath.Base(env.WorkDir) == "script-migrate" {
		return pgtest.NewDatabase(t)
	}
	return migrated.Copy(t)
}

// scripts lists the scripts that contain a text.
func scripts(t *testing.T, says string) []string {
	t.Helper()
	all, err := filepath.Glob("testdata/script/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	var chosen []string
	for _, path := range all {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), says) {
			chosen = append(chosen, path)
		}
	}
	if len(chosen) == 0 {
		t.Fatal("no script is there")
	}
	return chosen
}

// rewritten copies scripts, and lets a function change the lines of each copy.
func rewritten(t *testing.T, paths []string, change func(lines []string)) (copies []string) {
	t.Helper()
	dir := t.TempDir()
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(string(text), "\n")
		change(lines)
		to := filepath.Join(dir, filepath.Base(path))
		if err := os.WriteFile(to, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
			t.Fatal(err)
		}
		copies = append(copies, to)
	}
	return copies
}

func parameters(kind string, files []string, database func(*testscript.Env) (string, error)) testscript.Params {
	return testscript.Params{
		Files: files,
		Setup: func(env *testscript.Env) error {
			url, err := database(env)
			env.Setenv("SLUICE_DB", url)
			env.Setenv("HOME", env.WorkDir)
			env.Setenv("NO_COLOR", "1")
			for _, name := range []string{"GORACE", "GOGC", "GOMEMLIMIT"} {
				env.Setenv(name, os.Getenv(name))
			}
			giveSession(env, files)
			return err
		},
		Condition: func(condition string) (bool, error) {
			switch condition {
			case "root":
				return os.Geteuid() == 0, nil
			case "sqlite", "postgres":
				return condition == kind, nil
			}
			return false, fmt.Errorf("there is no condition %q", condition)
		},
		Cmds: map[string]scriptCommand{
			"exits": exits(byProcess), "await": await(byProcess), "show": show(byProcess), "within": within,
			"keep": keep, "sqlite": runSQL, "receiver": receive, "spans": spans, "port": port, "scrape": scrape, "asks": asks,
		},
	}
}

// scriptCommand is what a word at the beginning of a script's line does.
type scriptCommand = func(ts *testscript.TestScript, not bool, args []string)

// running runs a program for a line of a script, and returns what it printed.
type running func(ts *testscript.TestScript, program string, args ...string) (string, error)

// byProcess runs a program in a process of its own.
func byProcess(ts *testscript.TestScript, program string, args ...string) (string, error) {
	err := ts.Exec(program, args...)
	return ts.ReadFile("stdout"), err
}

// show prints the job with a key, as in `show QUEUE KEY`.
func show(run running) scriptCommand {
	return func(ts *testscript.TestScript, _ bool, args []string) {
		id, err := run(ts, "sluice", "jobs", "--queue", args[0], "--key", args[1], "-o", "ids")
		ts.Check(err)
		_, err = run(ts, "sluice", "job", strings.TrimSpace(id))
		ts.Check(err)
	}
}

// runSQL runs a statement in a SQLite file, as in `sqlite FILE STATEMENT`.
func runSQL(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: sqlite FILE STATEMENT")
	}
	db, err := sql.Open("sqlite", ts.MkAbs(args[0]))
	ts.Check(err)
	defer func() { _ = db.Close() }()
	_, err = db.Exec(args[1])
	ts.Check(err)
}

// exits runs a command that must end with an exit code, as in `exits 3 sluice job ID`.
func exits(run running) scriptCommand {
	return func(ts *testscript.TestScript, _ bool, args []string) {
		want, err := strconv.Atoi(args[0])
		ts.Check(err)
		got := 0
		var exit interface{ ExitCode() int }
		if _, err := run(ts, args[1], args[2:]...); errors.As(err, &exit) {
			got = exit.ExitCode()
		} else {
			ts.Check(err)
		}
		if got != want {
			ts.Fatalf("the exit code is %d, want %d", got, want)
		}
	}
}

// keep puts the output of the last command into a variable, as in `keep ID`. With a pattern it keeps only the match, as
// in `keep ID '"id": "(.*?)"'`.
func keep(ts *testscript.TestScript, _ bool, args []string) {
	text := strings.TrimSpace(ts.ReadFile("stdout"))
	if len(args) > 1 {
		found := regexp.MustCompile(args[1]).FindStringSubmatch(text)
		if found == nil {
			ts.Fatalf("%s is not in %s", args[1], text)
		}
		text = found[len(found)-1]
	}
	ts.Setenv(args[0], text)
}

// await runs a command until a pattern matches its output, as in `await READY sluice holders`.
func await(run running) scriptCommand {
	return func(ts *testscript.TestScript, _ bool, args []string) {
		pattern := regexp.MustCompile("(?m)" + args[0])
		pause := 10 * time.Millisecond // the pause grows, since each try starts a process
		for until := time.Now().Add(patience); time.Now().Before(until); time.Sleep(pause) {
			printed, err := run(ts, args[1], args[2:]...)
			ts.Check(err)
			if pattern.MatchString(printed) {
				return
			}
			pause = min(2*pause, 500*time.Millisecond)
		}
		ts.Fatalf("%s never came", args[0])
	}
}
