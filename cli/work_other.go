//go:build !unix

package cli

import "os/exec"

// inGroup does nothing where there are no process groups; the program is killed at its time-out.
func inGroup(*exec.Cmd) {}

func killGroup(*exec.Cmd) bool { return false }
