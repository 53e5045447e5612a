//go:build !linux

package sqlite_test

// systemTroubles are none: other systems are not asked.
func systemTroubles() []trouble { return nil }
