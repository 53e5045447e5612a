//go:build !linux

package sqlite

import "time"

// machine returns no clock: on this system, processes share none.
func machine() (boot string, since func() time.Duration) { return "", nil }
