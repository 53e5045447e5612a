package cli_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// keepRacing matches the commands that run for long and do much at once. They keep the race detector.
const keepRacing = "work|serve|upkeep|dispatch|forward|demo|top|move"

// beQuick replaces all other commands with builds without the race detector, if the tests run with it. Scripts run
// thousands of short commands, and each takes three times as long with the race detector.
func beQuick() error {
	if !racing {
		return nil
	}
	command, err := exec.LookPath("sluice")
	if err != nil {
		return err
	}
	folder := filepath.Dir(filepath.Dir(command))
	raced, plain := filepath.Join(folder, "racing", "sluice"), filepath.Join(folder, "plain", "sluice")
	if err := errors.Join(os.Mkdir(filepath.Dir(raced), 0o755), os.Rename(command, raced)); err != nil {
		return err
	}
	build := exec.Command("go", "test", "-c", "-vet=off", "-o", plain, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build the command without the race detector: %w\n%s", err, out)
	}
	choose := fmt.Sprintf("#!/bin/sh\nfor word; do\n\tcase $word in\n\t%s) exec '%s' \"$@\" ;;\n\t--) break ;;\n\tesac\ndone\nexec '%s' \"$@\"\n", keepRacing, raced, plain)
	return os.WriteFile(command, []byte(choose), 0o755)
}
