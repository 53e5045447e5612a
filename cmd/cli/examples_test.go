package cli_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/sluice-queue/sluice/internal/pgtest"
)

// TestExamplesInOtherLanguagesRun runs the programs that the guide shows, on SQLite, with the real interpreters of
// their languages.
func TestExamplesInOtherLanguagesRun(t *testing.T) {
	t.Parallel()
	for _, example := range []struct {
		file, packaged string
		command        []string
		works          bool // the program works on many jobs at a time
	}{
		{"mails.py", "python3", []string{"python3"}, true},
		{"mails.mjs", "nodejs", []string{"node"}, true},
		{"mail.sh", "dash", []string{"sh"}, false},
	} {
		t.Run(example.file, func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath(example.command[0]); err != nil {
				t.Fatalf("the Debian package %s is needed, which `make test` installs: %v", example.packaged, err)
			}
			path, err := filepath.Abs(filepath.Join("../../docs/examples", example.file))
			if err != nil {
				t.Fatal(err)
			}
			work := []string{"work", "mail", "--slots", "1", "--until-empty"}
			if example.works {
				work = append(work, "--batch", "100", "--silence", "30s")
			}
			runExample(t, append(append(work, "--"), append(example.command, path)...))
		})
	}
}

// runExample works on three jobs, each of which sends a mail: one succeeds at once, one at its second attempt, and one
// never.
func runExample(t *testing.T, work []string) {
	folder := t.TempDir()
	sluice := func(args ...string) string {
		t.Helper()
		cmd, want := exec.CommandContext(t.Context(), "sluice", append(args, "-q")...), 0
		if args[0] == "work" {
			cmd, want = exec.CommandContext(t.Context(), "sluice", args...), 6 // exit code 6, because one job is dead
		}
		cmd.Dir, cmd.Env = folder, append(os.Environ(), "SLUICE_DB=sqlite:jobs.db", "NO_COLOR=1")
		out, err := cmd.CombinedOutput()
		if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != want {
			t.Fatalf("%v: %v, want exit code %d\n%s", args, err, want, out)
		}
		return string(out)
	}
	sluice("migrate")
	sluice("settings", "set", "mail", "backoff_base=10ms", "backoff_jitter=0s")
	ids := map[string]string{}
	for _, to := range []string{"ada", "busy", "nobody"} {
		ids[to] = strings.TrimSpace(sluice("enqueue", "mail", fmt.Sprintf(`{"to": [%q]}`, to), "-o", "ids"))
	}
	sluice(work...)
	for to, want := range map[string][]string{
		"ada":    {`state +completed`, `attempts +0 `, `result +\{"sent": ?1\}`},
		"busy":   {`state +completed`, `attempts +1 `, `result +\{"sent": ?1\}`, `failed 1/1 .*451 try again`},
		"nobody": {`state +dead`, `attempts +1 `, `there is no such user`},
	} {
		shown := sluice("job", ids[to])
		for _, pattern := range want {
			if !regexp.MustCompile(pattern).MatchString(shown) {
				t.Errorf("the job of %s does not show %q:\n%s", to, pattern, shown)
			}
		}
	}
}

// TestDocsShowTheExamplesAsTheyAre compares the programs in the guide with the files that the tests run.
func TestDocsShowTheExamplesAsTheyAre(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile("../../docs/guide/workers-in-other-languages.md")
	if err != nil {
		t.Fatal(err)
	}
	for file, language := range map[string]string{"mails.py": "python", "mails.mjs": "js", "mail.sh": "bash"} {
		text, err := os.ReadFile(filepath.Join("../../docs/examples", file))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(guide), "```"+language+"\n"+string(text)+"```") {
			t.Errorf("the guide does not show %s as it is", file)
		}
	}
}

// TestDocsOfSQLRun runs the SQL of the guide in psql, as a reader would.
func TestDocsOfSQLRun(t *testing.T) {
	t.Parallel()
	if err := cluster.start(); err != nil {
		t.Fatal(err)
	}
	db := pgtest.NewDatabase(t)
	guide, err := os.ReadFile("../../docs/guide/workers-in-other-languages.md")
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)```sql\n(.*?)```").FindSubmatch(guide)
	if block == nil {
		t.Fatal("the guide has no SQL")
	}
	run := func(command string, args ...string) string {
		t.Helper()
		out, err := exec.CommandContext(t.Context(), command, args...).CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", command, err, out)
		}
		return string(out)
	}
	script := filepath.Join(t.TempDir(), "guide.sql")
	if err := os.WriteFile(script, block[1], 0o600); err != nil {
		t.Fatal(err)
	}
	run("sluice", "migrate", "-q", "--db", db)
	run("psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-f", script, db)
	if shown := run("psql", "-X", "-At", "-c", "select state, convert_from(result, 'utf8'), (select count(*) from sent) from sluice.jobs", db); shown != `completed|{"sent": 1}|1`+"\n" {
		t.Errorf("the job is %s", shown)
	}
}
