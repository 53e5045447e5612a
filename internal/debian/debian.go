// Package debian installs programs that tests need with apt-get, where that can be done.
package debian

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// ErrCannot says that this is no Debian, or that we are neither root nor have sudo without a password.
var ErrCannot = errors.New("packages can be installed on Debian and its kin only, as root or with sudo")

// Install installs packages, and tells on standard error that it does.
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
	// Several tests may come to need something at once, and unattended upgrades hold the lock too.
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
