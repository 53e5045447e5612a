package cli_test

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/sluice-queue/sluice/cmd/cli"
)

// leaks are texts that programs quote, each with the secret in it.
var leaks = []struct{ said, secret string }{
	{"the API refused the key sk_live_4eC39HqLyjWDarjtT1zdp7dc", "sk_live_4eC39HqLyjWDarjtT1zdp7dc"},
	{"dial postgres://app:hunter2Secret9@db.example.com/books", "hunter2Secret9"},
	{"no such user ann.lee@example.com", "ann.lee@example.com"},
	{`config: {"password": "correct-Horse-17"}`, "correct-Horse-17"},
}

const wentWrong = "what-went-wrong" // every error contains this text, so the test can see that the errors are stored at all

// leaky is a program for `sluice work` that fails in the way that its job names. The files beside it hold the secrets.
const leaky = `#!/bin/sh
read -r how
case $how in
'"stderr"') cat said >&2; exit 1 ;;
'"cut off"') printf %s "$(cat said)" >&2; kill -9 $$ ;;
'"answer"') cat error.json; exit 1 ;;
'"for good"') cat final.json; exit 1 ;;
'"never"') cat said >&2; exit 65 ;;
*) # of a batch
	id=$(echo "$how" | sed 's/.*"id": *"\([^"]*\)".*/\1/')
	cat said >&2
	echo "no answer: $(cat said)"
	sed "s/ID/$id/" answer.json ;;
esac
`

// TestNoProgramLeavesASecretBehind has programs of `sluice work` quote secrets in everything they report about
// failures.
func TestNoProgramLeavesASecretBehind(t *testing.T) {
	t.Parallel()
	for _, how := range []struct {
		name   string
		flags  []string
		leaves bool
	}{{"by default", nil, false}, {"left alone", []string{"--scrub-without", "all"}, true}} {
		t.Run("sqlite "+how.name, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			log := programsFail(t, "sqlite:"+filepath.Join(folder, "jobs.db"), how.flags)
			looksFor(t, how.leaves, map[string]string{"the log": log, "the bytes of the store": allFiles(t, folder)})
		})
		t.Run("postgres "+how.name, func(t *testing.T) {
			t.Parallel()
			if err := cluster.start(); err != nil {
				t.Fatal(err)
			}
			url := migrated.Copy(t)
			log := programsFail(t, url, how.flags)
			looksFor(t, how.leaves, map[string]string{"the log": log, "the bytes of the store": allRows(t, url)})
		})
	}
}

// programsFail lets jobs die because of their programs, alone and in batches, and returns the output of `sluice work`.
func programsFail(t *testing.T, db string, flags []string) (log string) {
	t.Helper()
	folder := t.TempDir()
	said := wentWrong
	for _, leak := range leaks {
		said += "; " + leak.said
	}
	answer := func(fields map[string]any) string {
		fields["error"] = said
		line, err := json.Marshal(fields)
		if err != nil {
			t.Fatal(err)
		}
		return string(line) + "\n"
	}
	for name, text := range map[string]string{
		"leaky": leaky, "said": said + "\n",
		"error.json": answer(map[string]any{}), "final.json": answer(map[string]any{"permanent": true}), "answer.json": answer(map[string]any{"id": "ID"}),
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	run := func(want int, args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "sluice", append([]string{"--db", db}, args...)...)
		cmd.Dir = folder
		printed, err := cmd.CombinedOutput()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		if code := cmd.ProcessState.ExitCode(); code != want {
			t.Fatalf("%s: exit code %d, want %d\n%s", args, code, want, printed)
		}
		log += string(printed)
	}
	run(0, "migrate", "-q")
	for _, queue := range []string{"alone", "batch"} {
		run(0, "settings", "set", queue, "max_attempts=1", "audit=full", "-q")
	}
	for _, how := range []string{"stderr", "cut off", "answer", "for good", "never"} {
		run(0, "enqueue", "alone", `"`+how+`"`, "-q")
	}
	run(0, "enqueue", "batch", `{}`, "-q")
	worked := append([]string{"--log-format", "json", "--log-level", "debug"}, flags...)
	run(6, append(append([]string{"work", "alone", "--until-empty"}, worked...), "--", "./leaky")...)
	run(6, append(append([]string{"work", "batch", "--batch", "10", "--until-empty"}, worked...), "--", "./leaky")...)
	if dead, code := cli.Run(t.Context(), "--db", db, "dead", "ls", "-o", "ids"); code != 0 || strings.Count(dead, "\n") != 6 {
		t.Fatalf("%d: the dead are not 6:\n%s", code, dead)
	}
	return log
}

// looksFor searches for the secrets. Without scrubbing all of them must be there, which proves that the search finds
// them.
func looksFor(t *testing.T, leaves bool, places map[string]string) {
	t.Helper()
	for where, text := range places {
		if !strings.Contains(text, wentWrong) {
			t.Errorf("%s does not have the errors at all", where)
		}
		for _, leak := range leaks {
			if has := strings.Contains(text, leak.secret); has != leaves {
				t.Errorf("%s: %q is there: %v", where, leak.secret, has)
			}
		}
	}
}

// allFiles reads all files of a folder, so also the write-ahead log of SQLite.
func allFiles(t *testing.T, folder string) string {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, entry := range entries {
		text, err := os.ReadFile(filepath.Join(folder, entry.Name()))
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	return all.String()
}

// allRows reads all tables of a database.
func allRows(t *testing.T, url string) string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	var all string
	const tables = "select string_agg(format('select ''%1$s: '' || t::text from sluice.%1$I t', tablename), ' union all ') from pg_tables where schemaname = 'sluice'"
	if err := conn.QueryRow(t.Context(), tables).Scan(&all); err != nil {
		t.Fatal(err)
	}
	rows, err := conn.Query(t.Context(), all)
	if err != nil {
		t.Fatal(err)
	}
	texts, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(texts, "\n")
}
