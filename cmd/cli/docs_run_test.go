package cli_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluice-queue/sluice/cmd/cli"
	"github.com/sluice-queue/sluice/internal/freeport"
	"github.com/sluice-queue/sluice/internal/pgtest"
	"github.com/sluice-queue/sluice/internal/temporaltest"
)

// docLine is a line of a block of shell commands in a document.
type docLine struct {
	block int
	text  string
}

// tried matches lines with a program that a reader types. The test runs each of them, unless a docMark gives a reason.
var tried = regexp.MustCompile(`^(?:[^#]*[ |(=])?(?:sluice|go|psql|sqlite3|curl)(?: |$)`)

// asksEngine matches lines that need a Temporal server. With -short there is none.
var asksEngine = regexp.MustCompile(`:7233|HOST:PORT|^sluice (ask-engine|engine|dispatch)|^go -C|^curl`)

// TestDocsRun types the lines of every document into a shell, in their order, on a copy of a prepared store.
func TestDocsRun(t *testing.T) {
	t.Parallel()
	all := documentedLines(t)
	countDocLines(t, all)
	prepared := preparedStore(t)
	for path, lines := range all {
		t.Run(strings.TrimPrefix(path, "../../"), func(t *testing.T) {
			t.Parallel()
			r := newDocRun(t, prepared, path, lines)
			for _, line := range lines {
				if markOf(path, line.text) == nil {
					r.line(line)
				}
			}
			r.endBackground()
		})
	}
}

// countDocLines checks how many lines the test runs and leaves, and that each mark matches a line.
func countDocLines(t *testing.T, all map[string][]docLine) {
	t.Helper()
	var run, elsewhere, left int
	used := map[*docMark]bool{}
	for path, lines := range all {
		for _, line := range lines {
			mark := markOf(path, line.text)
			used[mark] = true
			switch {
			case !tried.MatchString(line.text):
			case mark == nil:
				run++
			case mark.file != "":
				elsewhere++
			default:
				left++
			}
		}
	}
	t.Logf("of the documents' lines %d are run here, %d by other tests, and %d by none, each for its reason", run, elsewhere, left)
	if left > maxLeft {
		t.Errorf("%d lines are run by no test, which are more than %d", left, maxLeft)
	}
	for i, mark := range docMarks {
		if !used[&docMarks[i]] {
			t.Errorf("no document has a line %q any more", mark.line)
		}
		if text, err := os.ReadFile(mark.file); mark.file != "" && (err != nil || !strings.Contains(string(text), mark.test)) {
			t.Errorf("no %q in %s runs %q: %v", mark.test, mark.file, mark.line, err)
		}
	}
}

// documents lists the files that readers follow.
func documents(t *testing.T) []string {
	t.Helper()
	paths := []string{"../../README.md", "../../CONTRIBUTING.md", "../../deploy/README.md"}
	for _, pattern := range []string{"../../docs/*.md", "../../docs/guide/*.md", "../../apps/*/README.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, found...)
	}
	return paths
}

// documentedLines reads the shell blocks of all documents.
func documentedLines(t *testing.T) map[string][]docLine {
	t.Helper()
	all := map[string][]docLine{}
	for _, path := range documents(t) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for i, block := range regexp.MustCompile("(?sm)^ *```(?:sh|shell|console)\n(.*?)^ *```").FindAllSubmatch(text, -1) {
			unended := "" // the beginning of a line whose quotes are still open
			for line := range strings.Lines(string(block[1])) {
				if unended += strings.TrimSpace(line); openQuote(unended) {
					continue
				}
				if unended != "" {
					all[path] = append(all[path], docLine{i, unended})
				}
				unended = ""
			}
		}
	}
	return all
}

// docRun is a reader who types the lines of a document.
type docRun struct {
	*scene
	prepared   string // path of the prepared store's file
	folder     string
	env        map[string]string // variables that lines of the document have exported
	block      int
	background []*background
	places     map[string]string // maps addresses of the document to addresses on this machine
}

func newDocRun(t *testing.T, prepared, path string, lines []docLine) *docRun {
	t.Helper()
	folder := t.TempDir()
	r := &docRun{scene: &scene{T: t, logger: slog.New(slog.DiscardHandler)}, prepared: prepared, folder: folder, env: map[string]string{}, places: map[string]string{}}
	r.db = "sqlite:" + filepath.Join(folder, "main.db")
	copies := []string{"main.db"}
	if first := slices.IndexFunc(lines, func(l docLine) bool { return strings.HasPrefix(l.text, "sluice ") }); first >= 0 && !strings.HasPrefix(lines[first].text, "sluice migrate") {
		copies = []string{"main.db", "jobs.db", "edge.db", "shop.db", "payments.db"}
	}
	store, err := os.ReadFile(prepared)
	r.ok(err)
	for _, name := range copies {
		r.ok(os.WriteFile(filepath.Join(folder, name), store, 0o600))
	}
	for name, text := range docFiles {
		r.ok(os.WriteFile(filepath.Join(folder, name), []byte(text), 0o700))
	}
	examples, err := filepath.Glob("../../docs/examples/*")
	r.ok(err)
	for _, path := range examples {
		text, err := os.ReadFile(path)
		r.ok(err)
		r.ok(os.WriteFile(filepath.Join(folder, filepath.Base(path)), text, 0o600))
	}
	page, err := os.ReadFile(path)
	r.ok(err)
	for _, file := range regexp.MustCompile("(?s)```json\n([^`]*)```\n\ninto `([\\w.]+)`").FindAllSubmatch(page, -1) {
		r.ok(os.WriteFile(filepath.Join(folder, string(file[2])), file[1], 0o600))
	}
	r.ok(os.MkdirAll(filepath.Join(folder, ".config/fish/completions"), 0o700))
	r.env["SLUICE_DB"] = r.db
	r.open()
	return r
}

// line types one line, and checks its exit code.
func (r *docRun) line(line docLine) {
	r.Helper()
	if line.block != r.block {
		r.endBackground()
		r.block = line.block
	}
	if set := regexp.MustCompile(`^(?:export )?(\w+)=(\S+)$`).FindStringSubmatch(line.text); set != nil {
		r.env[set[1]] = strings.Trim(r.here(set[2]), "'\"")
		return
	}
	if !tried.MatchString(line.text) || testing.Short() && asksEngine.MatchString(line.text) {
		return
	}
	text, ended := r.given(r.here(line.text))
	defer ended()
	if lasting(text) {
		r.startLasting(text)
		return
	}
	want := exitsOf(line.text)
	printed, code := r.try(text)
	// A process that an earlier line has started may not answer yet.
	for until := time.Now().Add(10 * time.Second); len(r.background) > 0 && !slices.Contains(want, code) && time.Now().Before(until); {
		time.Sleep(50 * time.Millisecond)
		printed, code = r.try(text)
	}
	if id := regexp.MustCompile(`"id": ?"(.+?)"`).FindStringSubmatch(printed); id != nil {
		r.places["ID"] = id[1]
	}
	if !slices.Contains(want, code) {
		r.Errorf("%s: the exit code is %d, want one of %d\ntyped: %s\n%s", line.text, code, want, text, printed)
	}
}

// try runs a line in this process if it is a single `sluice` command, else in a shell.
func (r *docRun) try(line string) (printed string, code int) {
	r.Helper()
	words, plain := shellWords(line)
	if plain && words[0] == "sluice" && len(r.env) == 1 && !slices.Contains(words, "--") {
		for i, word := range words {
			words[i] = r.local(word)
		}
		ctx, cancel := context.WithTimeout(r.Context(), patience)
		defer cancel()
		return cli.Run(ctx, append([]string{"--db", r.local(r.env["SLUICE_DB"])}, words[1:]...)...)
	}
	cmd := r.shell(line)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		r.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// local makes a file name absolute, because this process does not run in the reader's folder.
func (r *docRun) local(word string) string {
	return regexp.MustCompile(`^(|@|sqlite:|\w+=@)([\w.-]+\.(?:db|jsonl?|yaml))$`).ReplaceAllString(word, "${1}"+r.folder+"/$2")
}

func (r *docRun) shell(line string) *exec.Cmd {
	cmd := exec.CommandContext(r.Context(), "bash", "-c", "set -o pipefail\n"+line)
	cmd.Dir = r.folder
	cmd.Env = append(os.Environ(), "NO_COLOR=1", "HOME="+r.folder, "PATH="+r.folder+":"+os.Getenv("PATH"))
	for _, name := range slices.Sorted(maps.Keys(r.env)) {
		cmd.Env = append(cmd.Env, name+"="+r.env[name])
	}
	return cmd
}

// background is a command that runs until somebody ends it.
type background struct {
	*exec.Cmd
	line  string
	said  lockedBuffer
	ended chan struct{}
}

// lasting reports whether a command runs until somebody interrupts it.
func lasting(line string) bool {
	return regexp.MustCompile(`^(sluice|\./app) (serve|upkeep|dispatch|work|top|forward|match)\b`).MatchString(line) &&
		!regexp.MustCompile(` (--once|--until-empty)\b|^sluice (forward status|upkeep now)`).MatchString(line)
}

// startLasting starts a command that runs until the block ends, and waits for its first output.
func (r *docRun) startLasting(line string) {
	r.Helper()
	r.endBackground() // a reader who types in the same terminal ends the last command first
	b := &background{Cmd: r.shell("exec " + line), line: line, ended: make(chan struct{})}
	b.Stdout, b.Stderr = &b.said, &b.said
	r.ok(b.Start())
	go func() { defer close(b.ended); _ = b.Wait() }()
	r.background = append(r.background, b)
	r.until(line+" says something", func() bool {
		select {
		case <-b.ended:
			return true
		default:
			return b.said.String() != "" || r.beganSilently(line)
		}
	})
}

// beganSilently reports whether a forwarder, or a worker with --log-level warn, runs. Both print nothing while all goes
// well.
func (r *docRun) beganSilently(line string) bool {
	ask, shows := []string{"holders"}, ` worker `
	switch {
	case strings.HasPrefix(line, "sluice forward"):
		ask, shows = []string{"forward", "status", "--from", "sqlite:" + filepath.Join(r.folder, "edge.db")}, ` 1$`
	case !strings.Contains(line, "--log-level warn"):
		return false
	}
	printed, _ := cli.Run(r.Context(), append(ask, "--db", r.db)...)
	return regexp.MustCompile(`(?m)` + shows).MatchString(printed)
}

// endBackground interrupts the running commands. Each must have run until then and end with 0, or with 130 if it was
// still starting.
func (r *docRun) endBackground() {
	r.Helper()
	for _, b := range r.background {
		select {
		case <-b.ended:
			r.Errorf("%s: it ended by itself with %d:\n%s", b.line, b.ProcessState.ExitCode(), b.said.String())
			continue
		default:
		}
		if err := b.Process.Signal(os.Interrupt); err != nil {
			r.Errorf("%s: it ended by itself: %v", b.line, err)
			continue
		}
		<-b.ended
		if code := b.ProcessState.ExitCode(); code != 0 && code != 130 {
			r.Errorf("%s: interrupted, its exit code is %d:\n%s", b.line, code, b.said.String())
		}
	}
	r.background = nil
}

// here replaces the addresses in a line with addresses on this machine.
func (r *docRun) here(line string) string {
	line = regexp.MustCompile(`postgres://[\w@.:-]+/\w+[\w?=&-]*`).ReplaceAllStringFunc(line, r.database)
	line = strings.ReplaceAll(line, `"$RESTORED"`, "$RESTORED")
	line = regexp.MustCompile(`\$RESTORED\b`).ReplaceAllStringFunc(line, r.database)
	line = regexp.MustCompile(`127\.0\.0\.1:7233|temporal\.internal:7233|\b\w+\.example\.com:7233|HOST:PORT`).ReplaceAllStringFunc(line, r.engineAddress)
	line = strings.ReplaceAll(line, "/etc/sluice/", r.folder+"/")
	line = regexp.MustCompile(`(?:127\.0\.0\.1|0\.0\.0\.0|localhost):(?:740[01]|80[0-9]{2})|\b9464\b`).ReplaceAllStringFunc(line, func(address string) string {
		port := r.place(address[max(0, len(address)-4):], func() string {
			free, err := freeport.Find()
			r.ok(err)
			return fmt.Sprint(free)
		})
		if !strings.Contains(address, ":") {
			return port
		}
		return "127.0.0.1:" + port
	})
	return strings.ReplaceAll(line, "https://hooks.example.com", r.place("hooks", func() string { return newReceiver(r.T) }))
}

// place returns the counterpart of a document's name on this machine, and finds it on the first call.
func (r *docRun) place(name string, find func() string) string {
	if r.places[name] == "" {
		r.places[name] = find()
	}
	return r.places[name]
}

// database returns an empty, migrated database that stands for an address.
func (r *docRun) database(address string) string {
	r.Helper()
	return r.place(address, func() string {
		r.ok(cluster.start())
		url := pgtest.NewDatabase(r.T)
		if printed, code := cli.Run(r.Context(), "migrate", "-q", "--db", url); code != 0 {
			r.Fatal(printed)
		}
		if printed, code := cli.Run(r.Context(), "settings", "set", "mail", "lease=1m", "--db", url); code != 0 {
			r.Fatal(printed)
		}
		return "'" + url + "'"
	})
}

func (r *docRun) engineAddress(string) string { return temporaltest.Address(r.T) }

// shellWords splits a line as a shell does. At syntax such as a pipe, where a shell does more than split, the words end
// and plain is false.
func shellWords(line string) (words []string, plain bool) {
	var word strings.Builder
	quote, in := rune(0), false
	plain = true
	for i, c := range line {
		switch {
		case quote != 0 && c == quote:
			quote = 0
		case quote == '\'' || quote == '"' && c != '$':
			word.WriteRune(c)
		case c == '$':
			word.WriteRune(c)
			in, plain = true, false
		case strings.ContainsRune("|&;<>(`", c):
			return words, false
		case c == '\'' || c == '"':
			quote, in = c, true
		case c == '#' && !in && (i == 0 || line[i-1] == ' '):
			return words, plain && len(words) > 0
		case c != ' ':
			word.WriteRune(c)
			in = true
		case in:
			words = append(words, word.String())
			word.Reset()
			in = false
		}
	}
	if in {
		words = append(words, word.String())
	}
	return words, plain && len(words) > 0
}

// openQuote reports whether a quote in a line is still open.
func openQuote(line string) bool {
	quote := rune(0)
	for i, c := range line {
		switch {
		case c == quote:
			quote = 0
		case quote == 0 && (c == '\'' || c == '"'):
			quote = c
		case quote == 0 && c == '#' && i > 0 && line[i-1] == ' ':
			return false
		}
	}
	return quote != 0
}

// markOf returns the mark of a line, or nil if TestDocsRun runs the line itself.
func markOf(path, line string) *docMark {
	for i, mark := range docMarks {
		if strings.Contains(path, mark.path) && strings.Contains(line, mark.line) {
			return &docMarks[i]
		}
	}
	return nil
}

// exitsOf returns the exit codes that a line may have.
func exitsOf(line string) []int {
	for pattern, codes := range docExits {
		if regexp.MustCompile(pattern).MatchString(line) {
			return codes
		}
	}
	return []int{0}
}
