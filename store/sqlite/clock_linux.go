package sqlite

import (
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// machine identifies this start of the machine, and returns its steady clock (CLOCK_MONOTONIC).
// Nil: processes share no clock. A container with its own clock counts as a machine.
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

// sinceStart returns how long the machine has been running. The call cannot fail once machine has
// made it successfully.
func sinceStart() time.Duration {
	var at unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &at)
	return time.Duration(at.Nano())
}
