//go:build !linux

package sqlite_test

// systemFindings are none: other systems are not asked.
func systemFindings() []trouble { return nil }
