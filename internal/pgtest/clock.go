package pgtest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/sluice-queue/sluice/internal/debian"
)

// fakeClocks is where Debian puts the library that shows a program another time.
const fakeClocks = "/usr/lib/*/faketime/libfaketime.so.1"

// ErrNoFakeClock names the package that a settable clock needs.
var ErrNoFakeClock = errors.New("no clock can be set for PostgreSQL: apt-get install libfaketime")

// installFakeClock returns the path of the library, and installs it if possible.
func installFakeClock() (string, error) {
	if library, err := findFakeClock(); err == nil {
		return library, nil
	}
	if err := debian.Install("libfaketime"); err != nil {
		return "", errors.Join(err, ErrNoFakeClock)
	}
	return findFakeClock()
}

func findFakeClock() (string, error) {
	if found, _ := filepath.Glob(fakeClocks); len(found) > 0 {
		return found[0], nil
	}
	return "", ErrNoFakeClock
}

// fakeClock makes programs that start from now on use the clock of SetClock.
func (c *Cluster) fakeClock() error {
	library, err := installFakeClock()
	if err != nil {
		return err
	}
	c.environment = []string{
		"LD_PRELOAD=" + library, "FAKETIME_TIMESTAMP_FILE=" + c.clockFile(), "FAKETIME_NO_CACHE=1", "DONT_FAKE_MONOTONIC=1",
	}
	return c.SetClock(0)
}

func (c *Cluster) clockFile() string { return filepath.Join(c.folder, "clock") }

// SetClock sets how far ahead the server's clock is. The cluster must have been started with
// Options.Clock.
func (c *Cluster) SetClock(ahead time.Duration) error {
	next := c.clockFile() + ".next"
	if err := os.WriteFile(next, fmt.Appendf(nil, "%+.3f\n", ahead.Seconds()), 0o644); err != nil {
		return err
	}
	return os.Rename(next, c.clockFile())
}
