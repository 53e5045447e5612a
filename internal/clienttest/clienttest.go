// Package clienttest is what tests of programs in other languages need: a server in a process of its own, the interpreters, and the
// built client for TypeScript.
//
// Begin with [Serve]. What is missing is installed, as package internal/debian can.
//
// Read next: the tests in clients, and those of apps/ingredients.
package clienttest

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

	"github.com/sluice-queue/sluice/internal/testcache"
)

// Root returns the folder of the tree, whichever of its modules asks.
func Root(t testing.TB) string {
	t.Helper()
	root, err := testcache.Output(exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/sluice-queue/sluice"))
	if err != nil {
		t.Fatalf("find the tree: %v", err)
	}
	return root
}

// Build builds the command and returns its path.
func Build(t testing.TB) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "sluice")
	Run(t, Root(t), os.Environ(), "go", "build", "-o", program, "./cmd/sluice")
	return program
}

var answers = regexp.MustCompile(`msg="server answers" address=(\S+)`)

// Serve starts a server until the end of the test, and returns the environment that leads a client to it. A line of the server's log
// about an error fails the test.
func Serve(t testing.TB, sluice, store string, flags ...string) []string {
	t.Helper()
	env := append(os.Environ(), "SLUICE_DB="+store)
	Run(t, "", env, sluice, "migrate")
	var token struct{ Secret string }
	if err := json.Unmarshal(Run(t, "", env, sluice, "tokens", "create", "tests", "--role", "admin", "--output", "json"), &token); err != nil {
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

// Run runs a program in a folder to its end, and returns its output. The folder "" is that of the test.
func Run(t testing.TB, folder string, env []string, name string, args ...string) []byte {
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

// Value returns a variable of an environment, in which the last one holds.
func Value(env []string, name string) (value string) {
	for _, entry := range env {
		if found, ok := strings.CutPrefix(entry, name+"="); ok {
			value = found
		}
	}
	return value
}
