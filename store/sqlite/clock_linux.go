package sqlite

import (
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// machine names this start of the machine, and says how long its steady clock (CLOCK_MONOTONIC) has run. Containers with
// a clock of their own count as a machine.
func machine() (boot string, since time.Duration, known bool) {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", 0, false
	}
	var at unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &at); err != nil {
		return "", 0, false
	}
	boot = strings.TrimSpace(string(id))
	if offsets, err := os.Readlink("/proc/self/ns/time"); err == nil {
		boot += " " + offsets
	}
	return boot, time.Duration(at.Nano()), boot != ""
}
