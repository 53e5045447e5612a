package cli_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sluice-queue/sluice/cmd/cli"
)

var (
	// fencedBlock matches fenced code blocks, which TestDocsRun runs.
	fencedBlock = regexp.MustCompile("(?sm)^ *```.*?^ *```")
	// inlineCode matches commands in running text and in tables.
	inlineCode = regexp.MustCompile("[`«](sluice [^`»\n]*)[`»]")
	// longOrRemote matches commands that run long or ask a server. Other tests run these.
	longOrRemote = regexp.MustCompile(`^sluice (dev|demo|sim|probe)\b`)
	// unknownWord matches a word that only the reader can fill in: a word in capital letters, or an ellipsis.
	unknownWord = regexp.MustCompile(`…|\b[A-Z]{2,}\b`)
)

// inlineWords maps words of the documents to names in the prepared store.
var inlineWords = []struct {
	word *regexp.Regexp
	is   string
}{
	{regexp.MustCompile(`^sluice queues rm QUEUE…?`), "sluice queues rm mail.old"}, // the queue mail.old is empty
	{regexp.MustCompile(`\b(QUEUE|executions|mine_upload)\b…?`), "payments"},
	{regexp.MustCompile(`\bID\b`), "JOB"}, // docRun.given replaces JOB with an id
	{regexp.MustCompile(`\bWHY\b`), "tested"},
	{regexp.MustCompile(`\bTIME\b`), "30s"},
	{regexp.MustCompile(`\bN\b`), "5"},
}

// inlineExits maps commands that the documents only mention to their exit codes.
var inlineExits = map[string]int{
	"sluice jobs --state ready":        2, // the changelog tells the reader about this error
	"sluice requeue --undo":            2, // the documents only name the flags of these five
	"sluice requeue --beside-open-run": 2,
	"sluice reschedule --undo":         2,
	"sluice dead delete --all":         2,
	"sluice edit --all":                2,
	"sluice resume mail --tenant acme": 3, // nobody has paused the tenant
}

// TestInlineCommandsOfTheDocsRun runs the commands in the text and the tables of the documents, each on a prepared
// store of its own. The test only parses commands that run until an interrupt, ask an engine or a server, or leave a
// value to the reader.
func TestInlineCommandsOfTheDocsRun(t *testing.T) {
	t.Parallel()
	prepared, run := preparedStore(t), 0
	all := inlineCommands(t)
	for line := range inlineExits {
		if !slices.Contains(all, line) {
			t.Errorf("no document has %q any more", line)
		}
	}
	for _, line := range all {
		text := line
		for _, of := range inlineWords {
			text = of.word.ReplaceAllString(text, of.is)
		}
		if lasting(text) || asksEngine.MatchString(text) || longOrRemote.MatchString(text) || unknownWord.MatchString(strings.ReplaceAll(text, "JOB", "")) {
			continue
		}
		run++
		t.Run(line, func(t *testing.T) {
			t.Parallel()
			r := newDocRun(t, prepared, "../../README.md", nil)
			given, ended := r.given(text)
			defer ended()
			want := exitsOf(line)
			if code, other := inlineExits[line]; other {
				want = []int{code}
			}
			if printed, code := r.try(given); !slices.Contains(want, code) {
				t.Errorf("the exit code is %d, want one of %d\n%s", code, want, printed)
			}
		})
	}
	t.Logf("of %d commands in text %d are run, the others parsed", len(all), run)
	if run < 2*len(all)/3 {
		t.Errorf("of %d commands in text only %d are run", len(all), run)
	}
}

// inlineCommands lists each command in the text that has an argument or a flag, once. Other matches are mere names of
// commands.
func inlineCommands(t *testing.T) (all []string) {
	t.Helper()
	decisions, err := filepath.Glob("../../docs/decisions/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range slices.Concat(documents(t), decisions, []string{"../../CHANGELOG.md", "../../SECURITY.md"}) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range inlineCode.FindAllSubmatch(fencedBlock.ReplaceAll(text, nil), -1) {
			line := string(found[1])
			words, _ := shellWords(line)
			command, _, err := cli.Root().Find(words[1:])
			if err == nil && command.CommandPath() != line && !slices.Contains(all, line) {
				all = append(all, line)
			}
		}
	}
	return all
}

// TestFlagsOfAKnownSetNameIt gives flags an unknown value; the error must list the known values.
func TestFlagsOfAKnownSetNameIt(t *testing.T) {
	t.Parallel()
	const states = "queued claimed dispatched uncertain completed dead cancelled"
	db := "sqlite:" + preparedStore(t)
	for line, set := range map[string]string{
		"jobs --state nonsense":                           states,
		"jobs --state queued,nonsense":                    states,
		"jobs --state ready":                              "jobs that are shown as ready are queued",
		"cancel --all --state nonsense":                   states,
		"jobs -o nonsense":                                "table, json, jsonl, ids",
		"dead ls -o nonsense":                             "table, json, jsonl, ids",
		"stats --by nonsense":                             "neither queue nor tenant",
		"forecast --by nonsense":                          "neither queue nor tenant",
		"stats --every 5m":                                "10s, 1m or 1h",
		"forecast --bucket 7m":                            "1m, 5m or 1h",
		"audit --object nonsense":                         "job queue tenant tier alert operation",
		"holders --log-format nonsense":                   "text nor json",
		"holders --log-level nonsense":                    "debug, info, warn, error",
		"upkeep --once --scrub-without nonsense":          "email, phone",
		"enqueue mail {} --key k --key-scope nonsense":    "unfinished, window, forever",
		"enqueue mail {} --key k --on-duplicate nonsense": "keep, replace, coalesce",
		"enqueue mail {} --after-failure nonsense":        "cancel, run, wait",
		"queues policy --declared nonsense":               "on or off",
	} {
		printed, code := cli.Run(t.Context(), append(strings.Fields(line), "--db", db)...)
		if code != 2 || !strings.Contains(printed, set) {
			t.Errorf("%s: exit code %d, want 2 and %q:\n%s", line, code, set, printed)
		}
	}
}
