//go:build !race || !unix

package cli_test

// beQuick does nothing: without the race detector, commands are quick.
func beQuick() error { return nil }
