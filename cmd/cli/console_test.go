package cli_test

import (
	"testing"

	"github.com/sluice-queue/sluice/cmd/console"
)

// TestCommandsOfTheConsoleExist parses the commands that the console shows for copying: each command, its flags and its
// arguments.
func TestCommandsOfTheConsoleExist(t *testing.T) {
	t.Parallel()
	lines := console.Commands()
	if len(lines) == 0 {
		t.Fatal("the console shows no command")
	}
	for _, line := range lines {
		if err := parses(line); err != nil {
			t.Errorf("%s: %v", line, err)
		}
	}
}
