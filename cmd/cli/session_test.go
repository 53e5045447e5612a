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
// than to run, and the scripts of a kind of store have 1,200: sessions save 13 s of CPU for each kind, and on a machine
// whose page faults are dear 100 s.
type session struct {
	script  string   // its file
	vars    []string // set before the script, as NAME=VALUE
	names   []string // of all variables that a command may read
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

// withSessions copies scripts, so that sessions run their short commands.
func withSessions(t *testing.T, paths []string) []string {
	t.Helper()
	return rewritten(t, paths, func(lines []string) {
		readsInput := false
		for i, line := range lines {
			if scriptFile.MatchString(line) {
				return
			}
			if !readsInput && !inBackground.MatchString(line) {
				lines[i] = shortCommand.ReplaceAllString(line, "${1}within $2")
			}
			readsInput = strings.HasPrefix(line, "stdin ")
		}
	})
}

// sessionKey is the key of a script's session.
type sessionKey struct{}

// giveSession gives a script its session, whose process begins with the first command.
func giveSession(env *testscript.Env, scripts []string) {
	s := &session{vars: env.Vars}
	name := strings.TrimPrefix(filepath.Base(env.WorkDir), "script-") + ".txt"
	if i := slices.IndexFunc(scripts, func(path string) bool { return filepath.Base(path) == name }); i >= 0 {
		s.script = scripts[i]
	}
	env.Values[sessionKey{}] = s
	env.Defer(s.end)
}

// within runs a command of a script in its session, as in `within exits 3 sluice job ID`.
func within(ts *testscript.TestScript, not bool, args []string) {
	s := ts.Value(sessionKey{}).(*session)
	switch args[0] {
	case "exits":
		exits(s.run)(ts, not, args[1:])
	case "await":
		await(s.run)(ts, not, args[1:])
	case "show":
		show(s.run)(ts, not, args[1:])
	default:
		switch _, err := s.run(ts, args[0], args[1:]...); {
		case err == nil && not:
			ts.Fatalf("the command did not fail")
		case !not:
			ts.Check(err)
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
	replace(ts.Stdout(), a.Stdout)
	replace(ts.Stderr(), a.Stderr)
	if a.Code != 0 {
		return a.Stdout, exited(a.Code)
	}
	return a.Stdout, nil
}

// replace replaces what a line of a script has printed: only its last command counts.
func replace(to io.Writer, text string) {
	to.(*strings.Builder).Reset()
	_, _ = io.WriteString(to, text)
}

// begin starts the process. The script names all variables that it sets.
func (s *session) begin() error {
	text, err := os.ReadFile(s.script)
	if err != nil {
		return err
	}
	s.names = variable.FindAllString(string(text), -1)
	for _, set := range s.vars {
		name, _, _ := strings.Cut(set, "=")
		s.names = append(s.names, name)
	}
	slices.Sort(s.names)
	s.names = slices.Compact(s.names)
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
