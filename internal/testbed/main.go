// Command testbed runs a command with everything that the tests need beside Go, and installs
// missing programs if possible: a C compiler for the race detector, Python and Node for the
// examples, Prometheus, the sqlite3 shell, curl, PgBouncer, and a throw-away PostgreSQL, whose URL
// is in SLUICE_TEST_POSTGRES. A server that the variable already names is used. With -temporal, a
// Temporal server is built beside the command, and SLUICE_TEST_TEMPORAL names it; tests wait for
// it.
//
//	testbed [-temporal] COMMAND [ARG…]
//	testbed [-temporal] -steps N GOAL…
//
// With -steps, testbed runs goals of the Makefile, up to N at a time while processors are idle, and
// prints the time of each. All share the same servers.
//
// Read next: the Makefile, and steps.go.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"github.com/sluice-queue/sluice/internal/debian"
	"github.com/sluice-queue/sluice/internal/pgtest"
	"github.com/sluice-queue/sluice/internal/temporaltest"
)

func main() {
	withTemporal := flag.Bool("temporal", false, "give the command a Temporal server")
	atOnce := flag.Int("steps", 0, "run the arguments as goals of the Makefile, so many at a time")
	flag.Parse()
	command := func() (int, error) { return runCommand(flag.Args()) }
	if *atOnce > 0 {
		command = func() (int, error) { return runSteps(*atOnce, flag.Args()) }
	}
	code, err := run(command, *withTemporal)
	if err != nil {
		fmt.Fprintln(os.Stderr, "testbed:", err)
	}
	os.Exit(code)
}

// usualPort is the port of PostgreSQL unless another process has it. Go keeps the results of tests only if the URL that they
// read from the environment stays the same.
const usualPort = 25432

func run(command func() (int, error), withTemporal bool) (int, error) {
	if flag.NArg() == 0 {
		return 2, errors.New("usage: testbed [-temporal] [-steps N] COMMAND [ARG…]")
	}
	remove, err := useMemory()
	if err != nil {
		return 1, err
	}
	defer remove()
	if withTemporal && os.Getenv(temporaltest.Env) == "" {
		stop, err := startTemporal()
		if err != nil {
			return 1, err
		}
		defer stop()
	}
	if err := errors.Join(findCompiler(), findPrograms()); err != nil {
		return 1, err
	}
	if os.Getenv(pgtest.Env) == "" {
		if err := pgtest.Install(); err != nil {
			return 1, err
		}
		cluster, err := pgtest.Start(pgtest.Options{Port: usualPort})
		if err != nil {
			return 1, err
		}
		defer cluster.Stop()
		if err := os.Setenv(pgtest.Env, cluster.URL); err != nil {
			return 1, err
		}
	}
	return command()
}

// findCompiler installs a C compiler if none is found.
func findCompiler() error {
	for _, name := range []string{os.Getenv("CC"), "gcc", "clang"} {
		if _, err := exec.LookPath(name); err == nil {
			return nil
		}
	}
	if err := debian.Install("gcc", "libc6-dev"); err != nil {
		return fmt.Errorf("there is no C compiler, which the race detector needs; install gcc or clang: %w", err)
	}
	return nil
}

// findPrograms installs Python, Node, Prometheus with promtool, the sqlite3 shell, curl and
// PgBouncer if they are missing.
func findPrograms() error {
	for _, program := range []struct{ name, packaged string }{{"python3", "python3"}, {"node", "nodejs"}, {"prometheus", "prometheus"}, {"sqlite3", "sqlite3"}, {"curl", "curl"}} {
		if _, err := exec.LookPath(program.name); err == nil {
			continue
		}
		if err := debian.Install(program.packaged); err != nil {
			return fmt.Errorf("there is no %s, which tests need: %w", program.name, err)
		}
	}
	return pgtest.InstallPooler()
}

// leaveInterrupts keeps an interrupt from ending testbed. The interrupt also goes to the command;
// testbed waits for it, and then stops the servers.
func leaveInterrupts() { signal.Notify(make(chan os.Signal, 1), os.Interrupt) }

func runCommand(command []string) (int, error) {
	leaveInterrupts()
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			return 128 + int(status.Signal()), nil
		}
		return exit.ExitCode(), nil
	}
	if err != nil {
		return 1, err
	}
	return 0, nil
}
