package cli_test

import (
	"context"
	"maps"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/sluice-queue/sluice/cmd/httpapi"
	"github.com/sluice-queue/sluice/store/sqlite"
)

// notScriptedOverHTTP lists scripts that only work on a database, each with the reason.
var notScriptedOverHTTP = map[string]string{
	"migrate":        "is about a database without tables, on which a server does not start",
	"move":           "needs the databases themselves",
	"work_interrupt": "expects upkeep of its worker, which is the server's over HTTP",
	"metrics":        "asks for figures of the database itself",
	"forecast":       "reads what falls due as upkeep beside the server has counted it",
	"stats":          "a command counts what it did as it ends; a server does so every 10 s",
	"queues_many":    "as stats",
	"scheduled":      "asks for a change by plain SQL before upkeep has seen it",
}

// scriptsOverHTTP lists the scripts that also run against a server.
func scriptsOverHTTP(t *testing.T) []string {
	t.Helper()
	return slices.DeleteFunc(scripts(t, onBoth), func(path string) bool {
		return notScriptedOverHTTP[strings.TrimSuffix(filepath.Base(path), ".txt")] != ""
	})
}

// scriptedOverHTTP returns a function that reports whether a script runs a command against a server.
func scriptedOverHTTP(t *testing.T) func(command string) bool {
	t.Helper()
	var all strings.Builder
	for _, path := range scriptsOverHTTP(t) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	return func(command string) bool {
		return regexp.MustCompile(`\bsluice (-q )?` + command + `\b`).MatchString(all.String())
	}
}

// TestScriptsOverHTTP runs the scripts against a server. Commands that need the database run on the database.
func TestScriptsOverHTTP(t *testing.T) {
	t.Parallel()
	names := slices.Collect(maps.Keys(notOverHTTP))
	slices.SortFunc(names, func(a, b string) int { return strings.Compare(b, a) }) // reverse order puts `config show` before `config`
	names = slices.DeleteFunc(names, func(name string) bool { return name == "work" })
	direct := regexp.MustCompile(`\bsluice (-q )?(` + strings.Join(names, "|") + `)\b`)
	says := regexp.MustCompile(`^(! )?std(out|err) `)
	files := rewritten(t, scriptsOverHTTP(t), func(lines []string) {
		for i, line := range lines {
			if !says.MatchString(line) && !strings.Contains(line, "sluice upkeep now ") { // the server does it
				lines[i] = direct.ReplaceAllString(line, "sluice ${1}--db $$FILE ${2}")
			}
		}
	})
	testscript.Run(t, parameters("sqlite", withSessions(t, files), serveScript))
}

// serveScript serves the API of a new file while a script runs, and returns the URL.
func serveScript(env *testscript.Env) (string, error) {
	ctx, path := context.Background(), filepath.Join(env.WorkDir, "jobs.db")
	env.Setenv("FILE", "sqlite:"+path)
	if _, err := sqlite.Migrate(ctx, path); err != nil {
		return "", err
	}
	store, err := sqlite.Open(ctx, path, sqlite.Options{})
	if err != nil {
		return "", err
	}
	server := httptest.NewServer(httpapi.New(store, httpapi.Options{NoLogin: true}))
	env.Defer(func() {
		server.Close()
		_ = store.Close()
	})
	return server.URL, nil
}
