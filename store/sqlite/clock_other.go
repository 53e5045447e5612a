//go:build !linux

package sqlite

import "time"

// machine knows no clock here that all processes share.
func machine() (boot string, since func() time.Duration) { return "", nil }
