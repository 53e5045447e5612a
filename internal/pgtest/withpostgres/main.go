// Command withpostgres runs a command with a throw-away PostgreSQL, whose URL is in
// SLUICE_TEST_POSTGRES. It installs PostgreSQL first where it can, and leaves a server that the
// variable names already as it is.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"github.com/sluice-queue/sluice/internal/pgtest"
)

func main() {
	code, err := run(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "withpostgres:", err)
	}
	os.Exit(code)
}

func run(command []string) (int, error) {
	if len(command) == 0 {
		return 2, errors.New("usage: withpostgres COMMAND [ARG…]")
	}
	if os.Getenv(pgtest.Env) == "" {
		if err := pgtest.Install(); err != nil {
			return 1, err
		}
		cluster, err := pgtest.Start(pgtest.Options{})
		if err != nil {
			return 1, err
		}
		defer cluster.Stop()
		if err := os.Setenv(pgtest.Env, cluster.URL); err != nil {
			return 1, err
		}
	}
	// An interrupt goes to the command as well; this waits for it, and then stops the server.
	signal.Ignore(os.Interrupt)
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
