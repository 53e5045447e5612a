package cli_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/sluice-queue/sluice/cmd/cli"
)

// session is a process that runs the short commands of one script, one after another. A command takes longer to start
// than to run, and the scripts of a kind of store have 900: sessions save 13 s of CPU for each kind. On SQLite each
// command is a process of its own, as for people.
type session struct {
	names   []string // of the variables that a command may read
	process *exec.Cmd
	orders  io.WriteCloser
	answers *json.Decoder
}

// order is a command for a session, and answer is what came of it.
type order struct {
	Args   []string
	Folder string
	Env    map[string]string
}

type answer struct {
	Stdout, Stderr string
	Code           int
}

// exited is the error of a command in a session, as exec.ExitError is that of a process.
type exited int

func (e exited) Error() string { return fmt.Sprintf("exit status %d", int(e)) }
func (e exited) ExitCode() int { return int(e) }

var (
	// shortCommand matches the beginning of a line that a session can run, if its command reads no standard input.
	shortCommand = regexp.MustCompile(`^((?:\[\S+\] )*(?:! )?)((?:exits \d+ |await (?:'[^']*'|\S+) )?sluice |show )`)
	// longCommand matches a command that runs for long. It has a process of its own.
	longCommand = regexp.MustCompile(`^(` + keepRacing + `)$`)
	// inBackground matches the end of a line whose command runs beside the script.
	inBackground = regexp.MustCompile(`&(\w+&)?$`)
	variable     = regexp.MustCompile(`\b[A-Z][A-Z0-9_]*\b`)
	scriptFile   = regexp.MustCompile(`^-- \S+ --$`)
)

// withSessions writes copies of scripts in which sessions run the short commands.
func withSessions(t *testing.T, paths []string) []string {
	t.Helper()
	dir := t.TempDir()
	var copies []string
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(string(text), "\n")
		for i, line := range lines {
			if scriptFile.MatchString(line) {
				break
			}
			if !inBackground.MatchString(line) && (i == 0 || !strings.HasPrefix(lines[i-1], "stdin ")) {
				lines[i] = shortCommand.ReplaceAllString(line, "${1}within $2")
			}
		}
		to := filepath.Join(dir, filepath.Base(path))
		if err := os.WriteFile(to, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
			t.Fatal(err)
		}
		copies = append(copies, to)
	}
	return copies
}

// sessionKey is the key of a script's session.
type sessionKey struct{}

// giveSession gives a script its session. A script names all variables that it sets for its commands.
func giveSession(env *testscript.Env, scripts []string) error {
	s := &session{}
	for _, set := range env.Vars {
		name, _, _ := strings.Cut(set, "=")
		s.names = append(s.names, name)
	}
	for _, path := range scripts {
		if strings.TrimSuffix(filepath.Base(path), ".txt") != strings.TrimPrefix(filepath.Base(env.WorkDir), "script-") {
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		s.names = append(s.names, variable.FindAllString(string(text), -1)...)
	}
	slices.Sort(s.names)
	s.names = slices.Compact(s.names)
	env.Values[sessionKey{}] = s
	env.Defer(s.end)
	return nil
}

// within runs a command of a script in its session, as in `within exits 3 sluice job ID`.
func within(ts *testscript.TestScript, not bool, args []string) {
	s := ts.Value(sessionKey{}).(*session)
	switch args[0] {
	case "exits":
		exitsBy(ts, s.run, args[1:])
	case "await":
		awaitBy(ts, s.run, args[1:])
	case "show":
		showBy(ts, s.run, args[1:])
	default:
		if _, err := s.run(ts, args[0], args[1:]...); (err != nil) != not {
			ts.Fatalf("unexpected end of the command: %v", err)
		}
	}
}

// run runs a command and returns what it printed.
func (s *session) run(ts *testscript.TestScript, program string, args ...string) (string, error) {
	if slices.ContainsFunc(args, longCommand.MatchString) {
		return byProcess(ts, program, args...)
	}
	if s.process == nil {
		ts.Check(s.begin())
	}
	o := order{Args: args, Folder: ts.MkAbs("."), Env: map[string]string{}}
	for _, name := range s.names {
		if value := ts.Getenv(name); value != "" {
			o.Env[name] = value
		}
	}
	var a answer
	ts.Check(json.NewEncoder(s.orders).Encode(o))
	if err := s.answers.Decode(&a); err != nil {
		ts.Fatalf("the session ended during %q: %v", args, err)
	}
	print(ts.Stdout(), a.Stdout)
	print(ts.Stderr(), a.Stderr)
	if a.Code != 0 {
		return a.Stdout, exited(a.Code)
	}
	return a.Stdout, nil
}

// print replaces what a line of a script has printed: only its last command counts.
func print(to io.Writer, text string) {
	to.(*strings.Builder).Reset()
	_, _ = io.WriteString(to, text)
}

func (s *session) begin() (err error) {
	cmd := exec.Command("session")
	cmd.Stderr = os.Stderr
	if s.orders, err = cmd.StdinPipe(); err != nil {
		return err
	}
	answers, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	s.answers = json.NewDecoder(answers)
	if err := cmd.Start(); err != nil {
		return err
	}
	s.process = cmd
	return nil
}

func (s *session) end() {
	if s.process != nil {
		_ = s.orders.Close()
		_ = s.process.Wait()
	}
}

// serveSession is the process of a session.
func serveSession() {
	orders, answers := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for {
		var o order
		err := orders.Decode(&o)
		if errors.Is(err, io.EOF) {
			return
		}
		var a answer
		if err == nil {
			a, err = o.carryOut()
		}
		if err = errors.Join(err, answers.Encode(a)); err != nil {
			panic(err)
		}
	}
}

// carryOut runs the command in its folder, with its variables, an empty standard input and pipes for what it prints.
func (o order) carryOut() (a answer, err error) {
	if err := os.Chdir(o.Folder); err != nil {
		return a, err
	}
	os.Clearenv()
	o.Env["PWD"] = o.Folder
	for name, value := range o.Env {
		if err := os.Setenv(name, value); err != nil {
			return a, err
		}
	}
	in, nothing, err := os.Pipe()
	if err != nil {
		return a, err
	}
	_ = nothing.Close()
	defer func() { _ = in.Close() }()
	out, readOut, err := collect()
	if err != nil {
		return a, err
	}
	problems, readProblems, err := collect()
	if err != nil {
		return a, err
	}
	stdin, stdout, stderr := os.Stdin, os.Stdout, os.Stderr
	defer func() { os.Stdin, os.Stdout, os.Stderr = stdin, stdout, stderr }()
	os.Stdin, os.Stdout, os.Stderr = in, out, problems
	a.Code = cli.Patiently(o.Args)
	a.Stdout, a.Stderr = readOut(), readProblems()
	return a, nil
}

// collect returns the end of a pipe to write to, and a function that closes it and returns what was written.
func collect() (to *os.File, text func() string, err error) {
	from, to, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	read := make(chan string, 1)
	go func() {
		all, _ := io.ReadAll(from)
		_ = from.Close()
		read <- string(all)
	}()
	return to, func() string { _ = to.Close(); return <-read }, nil
}
