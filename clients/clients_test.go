package clients_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/sluice-queue/sluice/internal/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// clients prepare the tests of each client, which then run in an environment that leads to a server.
var clients = map[string]func(t *testing.T) func(t *testing.T, env []string){"python": preparePython, "typescript": prepareTypeScript}

// TestClients runs the tests of each client against a server on SQLite, and against one on PostgreSQL.
func TestClients(t *testing.T) {
	t.Parallel()
	program := build(t)
	tests := make(map[string]func(t *testing.T, env []string))
	for client, prepare := range clients {
		tests[client] = prepare(t)
	}
	for store, address := range map[string]func(t *testing.T) string{
		"sqlite":   func(t *testing.T) string { return "sqlite:" + filepath.Join(t.TempDir(), "sluice.db") },
		"postgres": func(t *testing.T) string { return pgtest.NewDatabase(t) },
	} {
		t.Run(store, func(t *testing.T) {
			t.Parallel()
			env := serve(t, program, address(t), "--login")
			for client, test := range tests {
				t.Run(client, func(t *testing.T) {
					t.Parallel()
					test(t, env)
				})
			}
		})
	}
}

// build builds the command.
func build(t *testing.T) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "sluice")
	runIn(t, "..", os.Environ(), "go", "build", "-o", program, "./cmd/sluice")
	return program
}

var answers = regexp.MustCompile(`msg="server answers" address=(\S+)`)

// serve starts a server that asks for tokens, and returns the environment that leads a client to it.
func serve(t *testing.T, sluice, store string, flags ...string) []string {
	t.Helper()
	env := append(os.Environ(), "SLUICE_DB="+store)
	run(t, env, sluice, "migrate")
	var token struct{ Secret string }
	if err := json.Unmarshal(run(t, env, sluice, "tokens", "create", "tests", "--role", "admin", "--output", "json"), &token); err != nil {
		t.Fatal(err)
	}
	server := exec.Command(sluice, append([]string{"serve", "--listen", "127.0.0.1:0"}, flags...)...)
	server.Env = env
	stderr, err := server.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	address := make(chan string, 1)
	var log bytes.Buffer
	failed := false
	read := make(chan struct{})
	go func() {
		defer close(read)
		for lines := bufio.NewScanner(stderr); lines.Scan(); {
			_, _ = fmt.Fprintln(&log, lines.Text())
			if strings.Contains(lines.Text(), "level=ERROR") && !strings.Contains(lines.Text(), `msg="alert`) { // alerts fire for jobs that tests leave
				failed = true
			}
			if found := answers.FindStringSubmatch(lines.Text()); found != nil {
				address <- found[1]
			}
		}
	}()
	t.Cleanup(func() {
		_ = server.Process.Signal(syscall.SIGTERM)
		<-read
		if err := server.Wait(); err != nil {
			t.Errorf("the server ended: %v", err)
		}
		if t.Failed() || failed {
			t.Errorf("the server's log:\n%s", &log)
		}
	})
	select {
	case at := <-address:
		return append(env, "SLUICE_URL=http://"+at, "SLUICE_TOKEN="+token.Secret)
	case <-read:
		t.Fatalf("the server does not answer:\n%s", &log)
		return nil
	}
}

// run runs a program to its end and returns its output.
func run(t *testing.T, env []string, name string, args ...string) []byte {
	t.Helper()
	return runIn(t, "", env, name, args...)
}

// runIn runs a program in a folder.
func runIn(t *testing.T, folder string, env []string, name string, args ...string) []byte {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir, cmd.Env = folder, env
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s%s", name, strings.Join(args, " "), err, out, &stderr)
	}
	return out
}
