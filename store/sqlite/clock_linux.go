package sqlite

import (
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// machine names this start of the machine, and gives its steady clock (CLOCK_MONOTONIC); nil: there is none that
// processes share. Containers with a clock of their own count as a machine.
func machine() (boot string, since func() time.Duration) {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", nil
	}
	var at unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &at); err != nil {
		return "", nil
	}
	boot = strings.TrimSpace(string(id))
	if boot == "" {
		return "", nil
	}
	if offsets, err := os.Readlink("/proc/self/ns/time"); err == nil {
		boot += " " + offsets
	}
	return boot, sinceStart
}

// sinceStart is how long the machine runs. It cannot fail where it could once.
func sinceStart() time.Duration {
	var at unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &at)
	return time.Duration(at.Nano())
}
