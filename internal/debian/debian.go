// Package debian installs programs that tests need with apt-get, on Debian and its relatives, as
// root or with sudo without a password.
//
// Begin with [Install]. Callers test first whether the program exists, and show their own advice
// when the error is [ErrCannot].
//
// Read next: packages internal/pgtest and internal/testbed, which use it.
package debian

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// ErrCannot means that this system has no apt-get, or that the user is not root and has no sudo
// without a password.
var ErrCannot = errors.New("packages can be installed on Debian and its kin only, as root or with sudo")

// Install installs packages, and reports this on standard error.
func Install(packages ...string) error {
	apt, err := exec.LookPath("apt-get")
	if err != nil {
		return ErrCannot
	}
	command := []string{apt}
	if os.Geteuid() != 0 {
		sudo, err := exec.LookPath("sudo")
		if err != nil {
			return ErrCannot
		}
		command = []string{sudo, "--non-interactive", apt}
	}
	fmt.Fprintln(os.Stderr, "installing", strings.Join(packages, " "))
	// Several tests may need something at once, and unattended upgrades hold the lock, too.
	install := append([]string{"install", "-q", "-y", "--no-install-recommends", "-o", "DPkg::Lock::Timeout=600"}, packages...)
	for _, arguments := range [][]string{{"update", "-q"}, install} {
		cmd := exec.Command(command[0], append(command[1:], arguments...)...)
		cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
		cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
		if err := cmd.Run(); err != nil {
			return fmt.Errorf("%s: %w", strings.Join(cmd.Args, " "), err)
		}
	}
	return nil
}
