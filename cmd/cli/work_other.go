//go:build !unix

package cli

import "os/exec"

// inGroup does nothing without process groups; the program is killed at its timeout.
func inGroup(*exec.Cmd) {}

func killGroup(*exec.Cmd) bool { return false }
