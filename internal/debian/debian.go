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

	"github.com/sluice-queue/sluice/internal/testcache"
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
	// Steps of the test command run side by side, and apt-get fails at once when another one updates the lists.
	unlock, err := testcache.Lock("installs", "installs packages")
	if err != nil {
		return err
	}
	defer unlock()
	// Unattended upgrades hold the lock of the packages, too: apt waits for that one. It does not wait
	// for the lock of the lists, so a failed update does not stop this: the lists may be new enough.
	updated := run(command, "update", "-q")
	install := []string{"install", "-q", "-y", "--no-install-recommends", "-o", "DPkg::Lock::Timeout=600"}
	if err := run(command, append(install, packages...)...); err != nil {
		return errors.Join(err, updated)
	}
	return nil
}

// InstallNode installs Node and npm, of which two packages have one each, if they are missing.
func InstallNode() error {
	var missing []string
	for program, packaged := range map[string]string{"node": "nodejs", "npm": "npm"} {
		if _, err := exec.LookPath(program); err != nil {
			missing = append(missing, packaged)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	return Install(missing...)
}

func run(command []string, arguments ...string) error {
	cmd := exec.Command(command[0], append(command[1:], arguments...)...)
	cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w", strings.Join(cmd.Args, " "), err)
	}
	return nil
}
