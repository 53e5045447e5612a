package pgtest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
)

// Install makes sure that PostgreSQL's programs are there: on Debian and its kin, as root or with
// sudo, it installs them. Elsewhere, and where it may not, the error names the command to run.
func Install() error {
	if _, err := findBinaries(); err == nil {
		return nil
	}
	apt, err := exec.LookPath("apt-get")
	if err != nil {
		return ErrNoPostgres
	}
	command := []string{apt}
	if os.Geteuid() != 0 {
		sudo, err := exec.LookPath("sudo")
		if err != nil {
			return ErrNoPostgres
		}
		command = []string{sudo, "--non-interactive", apt}
	}
	fmt.Fprintln(os.Stderr, "installing PostgreSQL (apt-get install postgresql)")
	for _, arguments := range [][]string{{"update", "-q"}, {"install", "-q", "-y", "--no-install-recommends", "postgresql"}} {
		cmd := exec.Command(command[0], append(command[1:], arguments...)...)
		cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
		cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
		if err := cmd.Run(); err != nil {
			return errors.Join(fmt.Errorf("%v: %w", cmd.Args, err), ErrNoPostgres)
		}
	}
	_, err = findBinaries()
	return err
}
